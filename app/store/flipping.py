"""The two ends of an ingest: the flip, and the failure."""

from datetime import timedelta
from uuid import UUID

from sqlalchemy import and_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from app.domain.documents import RevisionState, StoredError
from app.domain.errors import JobCancelled, LeaseLost
from app.domain.jobs import JobKind, JobState, Lease
from app.store.accepting import is_current
from app.store.deletion import next_epoch
from app.store.generations import WRITTEN
from app.store.queueing import end, enqueue, held_by
from app.store.rows import AnyRow
from app.store.tables import chunk, document, generation, job, revision, revision_generation
from app.store.types import database_time


async def flip(connection: AsyncConnection, *, lease: Lease, revision_id: UUID, purge_after: timedelta) -> str:
    """See RevisionStore.flip. Lock order: document, generations, workspace, job."""
    if not await lock_live_document(connection, lease.document_id):
        return "deleted"
    await _check_held(connection, lease)
    if await _unverified(connection, revision_id):
        return "again"
    number = (await connection.execute(select(revision.c.number).where(revision.c.id == revision_id))).scalar_one()
    old = await _current(connection, lease.document_id)
    if old is not None and old.number > number:
        return "superseded"
    epoch = await next_epoch(connection, lease.workspace_id)
    if old is not None and old.id != revision_id:
        await _retire(connection, old.id, lease, epoch=epoch, purge_after=purge_after)
        await _carry_over_switched_off(connection, old.id, revision_id)
    ready = {"state": RevisionState.READY.value, "current_from": epoch, "error": None}
    await connection.execute(update(revision).where(revision.c.id == revision_id).values(**ready))
    await connection.execute(
        update(document).where(document.c.id == lease.document_id).values(updated_at=database_time())
    )
    await end(connection, lease, JobState.DONE)
    return "flipped"


async def fail(
    connection: AsyncConnection,
    *,
    lease: Lease,
    revision_id: UUID,
    error: StoredError,
    job_state: JobState,
    purge_after: timedelta,
) -> None:
    """See RevisionStore.fail. A revision that is current stays what it is."""
    await lock_live_document(connection, lease.document_id)
    state = RevisionState.CANCELLED if job_state is JobState.CANCELLED else RevisionState.FAILED
    await fail_revision(connection, revision_id, state, error)
    await enqueue(
        connection,
        JobKind.PURGE,
        workspace_id=lease.workspace_id,
        document_id=lease.document_id,
        revision_id=revision_id,
        after=purge_after,
    )
    await end(connection, lease, job_state, error)


async def fail_revision(
    connection: AsyncConnection, revision_id: UUID, state: RevisionState, error: StoredError
) -> None:
    """Marks a revision that never was current."""
    never_current = and_(revision.c.id == revision_id, revision.c.current_from.is_(None))
    await connection.execute(update(revision).where(never_current).values(state=state.value, error=error))


async def lock_live_document(connection: AsyncConnection, document_id: UUID) -> bool:
    """Locks the document's row; False when it is gone or being deleted."""
    statement = select(document.c.deleted_at).where(document.c.id == document_id).with_for_update()
    found = (await connection.execute(statement)).first()
    return found is not None and found.deleted_at is None


async def _check_held(connection: AsyncConnection, lease: Lease) -> None:
    # Locks the job's row: nobody can take it over, or cancel it, before this transaction ends.
    statement = select(job.c.cancel_requested).where(held_by(lease)).with_for_update()
    found = (await connection.execute(statement)).first()
    if found is None:
        raise LeaseLost(f"job {lease.id} is held by another worker or has ended")
    if found.cancel_requested:
        raise JobCancelled("cancelled on request")


async def _unverified(connection: AsyncConnection, revision_id: UUID) -> bool:
    """Whether a generation that is written to has no verification of this revision."""
    written = generation.c.state.in_(WRITTEN)
    lock = select(generation.c.id).where(written).order_by(generation.c.id).with_for_update(read=True)
    await connection.execute(lock)
    # Read in the next statement: only a fresh snapshot shows what the lock waited for.
    wanted = set((await connection.execute(select(generation.c.id).where(written))).scalars())
    verified = select(revision_generation.c.generation_id).where(revision_generation.c.revision_id == revision_id)
    return bool(wanted - set((await connection.execute(verified)).scalars()))


async def _current(connection: AsyncConnection, document_id: UUID) -> AnyRow | None:
    statement = select(revision).where(revision.c.document_id == document_id, *is_current(revision.c))
    return (await connection.execute(statement)).first()


async def _retire(
    connection: AsyncConnection, old_id: UUID, lease: Lease, *, epoch: int, purge_after: timedelta
) -> None:
    await connection.execute(update(revision).where(revision.c.id == old_id).values(current_until=epoch))
    await enqueue(
        connection,
        JobKind.PURGE,
        workspace_id=lease.workspace_id,
        document_id=lease.document_id,
        revision_id=old_id,
        after=purge_after,
    )


async def _carry_over_switched_off(connection: AsyncConnection, old_id: UUID, new_id: UUID) -> None:
    """A passage that somebody switched off stays so in the next revision, found by its content."""
    off = select(chunk.c.content_hash).where(chunk.c.revision_id == old_id, chunk.c.enabled.is_(False))
    same = and_(chunk.c.revision_id == new_id, chunk.c.content_hash.in_(off))
    await connection.execute(update(chunk).where(same).values(enabled=False, version=chunk.c.version + 1))
