"""Job statements that other transactions contain: enqueue, guard, end. All take the caller's connection."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import ColumnElement, and_, case, insert, literal, literal_column, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from app.domain.documents import StoredError
from app.domain.errors import JobCancelled, LeaseLost
from app.domain.jobs import JobKind, JobState, Lease
from app.store.tables import job
from app.store.types import DatabaseTime, database_time

NOW = timedelta()

LIVE = job.c.state.in_([literal_column("'queued'"), literal_column("'running'")])
RUNNING = job.c.state == literal_column("'running'")

PRIORITY = {JobKind.DELETE: 0, JobKind.INGEST: 5, JobKind.PURGE: 7}
"""Lower runs first: deletions are promises, purges are housekeeping."""


async def enqueue(
    connection: AsyncConnection,
    kind: JobKind,
    *,
    workspace_id: UUID,
    document_id: UUID,
    revision_id: UUID | None = None,
    after: timedelta = NOW,
) -> UUID:
    """A new job, or one more wish for the live one of the same kind and subject: it runs again when it has ended."""
    key = dedupe_key(kind, revision_id or document_id)
    more = update(job).where(job.c.dedupe_key == key, LIVE).values(wanted=job.c.wanted + 1).returning(job.c.id)
    live: UUID | None = (await connection.execute(more)).scalar()
    if live is not None:
        return live
    job_id = uuid4()
    values = fresh_job(
        job_id,
        kind,
        workspace_id=workspace_id,
        document_id=document_id,
        revision_id=revision_id,
        now=database_time(),
        run_after=database_time(after),
    )
    await connection.execute(insert(job).values(**values))
    return job_id


def fresh_job(
    job_id: UUID,
    kind: JobKind,
    *,
    workspace_id: UUID,
    document_id: UUID,
    revision_id: UUID | None = None,
    now: datetime | DatabaseTime,
    run_after: datetime | DatabaseTime | None = None,
) -> dict[str, Any]:
    """Column values of a new job, due at `run_after` (by the database's clock; None means at once)."""
    return {
        "id": job_id,
        "kind": kind.value,
        "workspace_id": workspace_id,
        "document_id": document_id,
        "revision_id": revision_id,
        "dedupe_key": dedupe_key(kind, revision_id or document_id),
        "priority": PRIORITY[kind],
        "run_after": now if run_after is None else run_after,
        "wanted": 1,
        "state": JobState.QUEUED.value,
        "cancel_requested": False,
        "attempts": 0,
        "failures": 0,
        "progressed": False,
        "furthest": 0,
        "payload": {},
        "created_at": now,
        "updated_at": now,
    }


def dedupe_key(kind: JobKind, subject: UUID) -> str:
    """At most one live job has this key: kind, and the revision (ingest, purge) or document (delete) it is about."""
    return f"{kind.value}:{subject}"


def held_by(lease: Lease) -> ColumnElement[bool]:
    """The fence: true only while this very claim holds the job."""
    return and_(job.c.id == lease.id, job.c.worker == lease.worker, job.c.attempts == lease.attempt, RUNNING)


async def guard(connection: AsyncConnection, lease: Lease, *, lease_s: float) -> bool:
    """Fences this transaction and prolongs the lease; True when cancelling was asked for. Raises LeaseLost.

    An UPDATE, because a SELECT does not fence: the row stays locked until this transaction commits.
    """
    values = {"lease_until": database_time(timedelta(seconds=lease_s)), "updated_at": database_time()}
    return await update_held(connection, lease, values)


async def guard_or_cancel(connection: AsyncConnection, lease: Lease, *, lease_s: float) -> None:
    """As `guard`, but raises JobCancelled."""
    if await guard(connection, lease, lease_s=lease_s):
        raise JobCancelled("cancelled on request")


async def update_held(connection: AsyncConnection, lease: Lease, values: dict[str, Any]) -> bool:
    """Changes the job if this claim holds it; True when cancelling was asked for. Raises LeaseLost."""
    statement = update(job).where(held_by(lease)).values(**values).returning(job.c.cancel_requested)
    row = (await connection.execute(statement)).first()
    if row is None:
        raise LeaseLost(f"job {lease.id} is held by another worker or has ended")
    return bool(row.cancel_requested)


async def end(connection: AsyncConnection, lease: Lease, state: JobState, error: StoredError | None = None) -> None:
    """Ends the claim. `done` only if nobody wished for more since it began, else it is queued again."""
    final: ColumnElement[Any] = literal(state.value)
    if state is JobState.DONE:
        final = case((job.c.wanted == lease.wanted, final), else_=literal(JobState.QUEUED.value))
    values = {
        "state": final,
        "error": error,
        "lease_until": None,
        "worker": None,
        "failures": 0,
        "run_after": database_time(),
        "updated_at": database_time(),
    }
    await update_held(connection, lease, values)


async def live_job(connection: AsyncConnection, kind: JobKind, subject: UUID) -> UUID | None:
    """The queued or running job of this kind for a revision (ingest, purge) or document (delete)."""
    statement = select(job.c.id).where(job.c.dedupe_key == dedupe_key(kind, subject), LIVE)
    found: UUID | None = (await connection.execute(statement)).scalar()
    return found
