"""Cancelling a job on request."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from app.domain.documents import RevisionState, StoredError
from app.domain.errors import Conflict, JobCancelled, JobNotFound
from app.domain.jobs import JobKind, JobState
from app.store.flipping import fail_revision, lock_live_document
from app.store.queueing import enqueue
from app.store.rows import AnyRow
from app.store.tables import job
from app.store.types import database_time

CANCELLED = StoredError(JobCancelled.code, "cancelled on request")


async def cancel(connection: AsyncConnection, *, workspace_id: UUID, job_id: UUID, purge_after: timedelta) -> AnyRow:
    """See JobQueue.cancel; returns the job's row. Lock order: document, job."""
    this = (job.c.id == job_id, job.c.workspace_id == workspace_id)
    known = (await connection.execute(select(job.c.document_id).where(*this))).first()
    if known is None:
        raise JobNotFound(job_id)
    await lock_live_document(connection, known.document_id)
    found = (await connection.execute(select(job).where(*this).with_for_update())).one()
    _check_cancellable(found)
    if found.state == JobState.RUNNING:
        values: dict[str, Any] = {"cancel_requested": True}
    else:
        values = {"state": JobState.CANCELLED.value, "error": CANCELLED}
        await _cancel_revision(connection, found, purge_after)
    changed = update(job).where(*this).values(**values, updated_at=database_time()).returning(*job.c)
    return (await connection.execute(changed)).one()


def _check_cancellable(found: AnyRow) -> None:
    if found.kind != JobKind.INGEST:
        raise Conflict(f"a {found.kind} job cannot be cancelled: what it removes is not visible any more")
    if found.state not in (JobState.QUEUED, JobState.RUNNING):
        raise Conflict(f"the job is {found.state} already")


async def _cancel_revision(connection: AsyncConnection, found: AnyRow, purge_after: timedelta) -> None:
    await fail_revision(connection, found.revision_id, RevisionState.CANCELLED, CANCELLED)
    await enqueue(
        connection,
        JobKind.PURGE,
        workspace_id=found.workspace_id,
        document_id=found.document_id,
        revision_id=found.revision_id,
        after=purge_after,
    )
