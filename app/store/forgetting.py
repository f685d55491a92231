"""Removing rows for good: a purged revision's chunks, a deleted document."""

from uuid import UUID

from sqlalchemy import delete, exists, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from app.domain.jobs import JobState, Lease
from app.store.accepting import ENDED_BADLY
from app.store.deletion import drop_empty_collection
from app.store.flipping import lock_live_document
from app.store.queueing import LIVE, end, guard_or_cancel
from app.store.tables import chunk, collection, document, job, revision, revision_generation

HISTORY = 10
"""Originals that a document keeps, its current one included; older ones go with their blobs."""


async def purgeable_chunk_ids(
    connection: AsyncConnection, *, lease: Lease, lease_s: float, revision_id: UUID
) -> list[UUID] | None:
    """See RevisionStore.purgeable_chunk_ids."""
    await lock_live_document(connection, lease.document_id)
    await guard_or_cancel(connection, lease, lease_s=lease_s)
    over = or_(revision.c.current_until.is_not(None), revision.c.state.in_(ENDED_BADLY))
    known = (await connection.execute(select(revision.c.id, over.label("over")).filter_by(id=revision_id))).first()
    if known is None or not known.over:
        return None
    return list((await connection.execute(select(chunk.c.id).where(chunk.c.revision_id == revision_id))).scalars())


async def forget_revision(connection: AsyncConnection, *, lease: Lease, revision_id: UUID) -> list[str]:
    """See RevisionStore.forget_revision."""
    await lock_live_document(connection, lease.document_id)
    await connection.execute(delete(revision_generation).where(revision_generation.c.revision_id == revision_id))
    await connection.execute(delete(chunk).where(chunk.c.revision_id == revision_id))
    unused = await _shorten_history(connection, lease.document_id)
    await end(connection, lease, JobState.DONE)
    return unused


async def _shorten_history(connection: AsyncConnection, document_id: UUID) -> list[str]:
    """Deletes revisions beyond the last ten that hold nothing any more; returns their blobs without a reference."""
    mine = revision.c.document_id == document_id
    kept = select(revision.c.id).where(mine).order_by(revision.c.number.desc()).limit(HISTORY)
    kept_ids = list((await connection.execute(kept)).scalars())
    over = or_(revision.c.current_until.is_not(None), revision.c.state.in_(ENDED_BADLY))
    has_rows = exists().where(chunk.c.revision_id == revision.c.id)
    has_job = exists().where(job.c.revision_id == revision.c.id, job.c.document_id == document_id, LIVE)
    old = select(revision.c.id, revision.c.blob_key).where(
        mine, revision.c.id.not_in(kept_ids), over, ~has_rows, ~has_job
    )
    found = (await connection.execute(old)).all()
    ids = [row.id for row in found]
    await connection.execute(delete(revision_generation).where(revision_generation.c.revision_id.in_(ids)))
    await connection.execute(delete(revision).where(revision.c.id.in_(ids)))
    return await _unreferenced(connection, [row.blob_key for row in found])


async def _unreferenced(connection: AsyncConnection, keys: list[str]) -> list[str]:
    used = set((await connection.execute(select(revision.c.blob_key).where(revision.c.blob_key.in_(keys)))).scalars())
    return [key for key in keys if key not in used]


async def forget_document(connection: AsyncConnection, *, lease: Lease) -> None:
    """See RevisionStore.forget_document."""
    collection_id = await _lock_deleted_collection(connection, lease.document_id)
    await lock_live_document(connection, lease.document_id)
    revisions = select(revision.c.id).where(revision.c.document_id == lease.document_id)
    await connection.execute(delete(revision_generation).where(revision_generation.c.revision_id.in_(revisions)))
    await connection.execute(delete(chunk).where(chunk.c.revision_id.in_(revisions)))
    await connection.execute(delete(revision).where(revision.c.document_id == lease.document_id))
    await connection.execute(delete(document).where(document.c.id == lease.document_id))
    if collection_id is not None:
        await drop_empty_collection(connection, collection_id)
    await end(connection, lease, JobState.DONE)


async def _lock_deleted_collection(connection: AsyncConnection, document_id: UUID) -> UUID | None:
    """The document's collection, its row locked, when that is waiting to be deleted too."""
    statement = (
        select(collection.c.id)
        .join(document, document.c.collection_id == collection.c.id)
        .where(document.c.id == document_id, collection.c.deleted_at.is_not(None))
        .with_for_update(of=collection)
    )
    found: UUID | None = (await connection.execute(statement)).scalar()
    return found
