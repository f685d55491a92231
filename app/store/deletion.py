"""Deleting documents and collections: invisible at once, removed by jobs."""

from uuid import UUID, uuid4

from sqlalchemy import and_, exists, insert, literal_column, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from app.domain.errors import CollectionNotFound, DocumentNotFound
from app.domain.jobs import JobKind, JobState
from app.store.queueing import LIVE, RUNNING, enqueue, fresh_job
from app.store.tables import collection, document, job, workspace
from app.store.types import database_time


async def delete_document(connection: AsyncConnection, workspace_id: UUID, document_id: UUID) -> UUID:
    """See Catalog.delete_document. A second call returns the first one's job while that is on its way."""
    locked = (
        select(document.c.deleted_at)
        .where(document.c.id == document_id, document.c.workspace_id == workspace_id)
        .with_for_update()
    )
    found = (await connection.execute(locked)).first()
    if found is None:
        raise DocumentNotFound(document_id)
    if found.deleted_at is None:
        await _stop_jobs(connection, [document_id])
        await _mark_deleted(connection, [document_id])
        await next_epoch(connection, workspace_id)
    return await enqueue(connection, JobKind.DELETE, workspace_id=workspace_id, document_id=document_id)


async def delete_collection(connection: AsyncConnection, workspace_id: UUID, collection_id: UUID) -> int:
    """See Catalog.delete_collection; returns how many documents had to be queued for deletion."""
    this = and_(
        collection.c.id == collection_id,
        collection.c.workspace_id == workspace_id,
        collection.c.deleted_at.is_(None),
    )
    if (await connection.execute(select(collection.c.id).where(this).with_for_update())).first() is None:
        raise CollectionNotFound(collection_id)
    document_ids = await _locked_documents(connection, collection_id)
    await _stop_jobs(connection, document_ids)
    await connection.execute(update(collection).where(this).values(deleted_at=database_time()))
    await _mark_deleted(connection, document_ids)
    await next_epoch(connection, workspace_id)
    await _queue_deletions(connection, workspace_id, document_ids)
    await drop_empty_collection(connection, collection_id)
    return len(document_ids)


async def next_epoch(connection: AsyncConnection, workspace_id: UUID) -> int:
    """The workspace's next epoch; its row stays locked, so commit order is epoch order."""
    statement = (
        update(workspace)
        .where(workspace.c.id == workspace_id)
        .values(epoch=workspace.c.epoch + 1)
        .returning(workspace.c.epoch)
    )
    return int((await connection.execute(statement)).scalar_one())


async def drop_empty_collection(connection: AsyncConnection, collection_id: UUID) -> None:
    """Removes the row of a deleted collection once its last document is gone.

    The caller holds the collection's row or the last of its documents; a row that stays by a race is invisible.
    """
    has_documents = exists().where(document.c.collection_id == collection_id)
    gone = collection.delete().where(
        collection.c.id == collection_id, collection.c.deleted_at.is_not(None), ~has_documents
    )
    await connection.execute(gone)


async def _locked_documents(connection: AsyncConnection, collection_id: UUID) -> list[UUID]:
    live = and_(document.c.collection_id == collection_id, document.c.deleted_at.is_(None))
    statement = select(document.c.id).where(live).order_by(document.c.id).with_for_update()
    return list((await connection.execute(statement)).scalars())


SLICE = 1_000
"""Ids in one IN list: well under the parameter limits of SQLite (32,766) and asyncpg (32,767)."""


def _slices(ids: list[UUID]) -> list[list[UUID]]:
    return [ids[start : start + SLICE] for start in range(0, len(ids), SLICE)]


async def _stop_jobs(connection: AsyncConnection, document_ids: list[UUID]) -> None:
    """Cancels queued jobs and asks running ones to stop; a delete job stays."""
    for ids in _slices(document_ids):
        theirs = and_(job.c.document_id.in_(ids), job.c.kind != JobKind.DELETE.value)
        # All rows are locked in order of id before the first is changed, or this deadlocks with a claim.
        await connection.execute(select(job.c.id).where(theirs, LIVE).order_by(job.c.id).with_for_update())
        await connection.execute(update(job).where(theirs, RUNNING).values(cancel_requested=True))
        queued = job.c.state == literal_column("'queued'")
        cancelled = {"state": JobState.CANCELLED.value, "updated_at": database_time()}
        await connection.execute(update(job).where(theirs, queued, LIVE).values(**cancelled))


async def _mark_deleted(connection: AsyncConnection, document_ids: list[UUID]) -> None:
    values = {"deleted_at": database_time(), "updated_at": database_time()}
    for ids in _slices(document_ids):
        await connection.execute(update(document).where(document.c.id.in_(ids)).values(**values))


async def _queue_deletions(connection: AsyncConnection, workspace_id: UUID, document_ids: list[UUID]) -> None:
    now = (await connection.execute(select(database_time()))).scalar_one()
    rows = [
        fresh_job(uuid4(), JobKind.DELETE, workspace_id=workspace_id, document_id=document_id, now=now)
        for document_id in document_ids
    ]
    if rows:
        await connection.execute(insert(job), rows)
