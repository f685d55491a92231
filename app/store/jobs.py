"""The job queue in the metadata database."""

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

from sqlalchemy import CTE, Select, and_, case, delete, exists, func, literal, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from app.domain.documents import StoredError
from app.domain.errors import JobNotFound
from app.domain.jobs import Job, JobProgress, JobState, Lease
from app.store.cancelling import cancel
from app.store.cursors import checked_limit
from app.store.database import Database
from app.store.queueing import RUNNING, end, held_by, update_held
from app.store.rows import AnyRow, job_of, lease_of
from app.store.tables import job
from app.store.types import database_time

ENDED = (JobState.DONE.value, JobState.CANCELLED.value, JobState.DEAD.value)


class SqlJobQueue:
    """The JobQueue port. All times are the database's clock.

    `write_timeout_s` is the longest time that a write to the index may take: what a dead worker began may land until
    then, so its job is not given to another one earlier.
    """

    def __init__(self, *, database: Database, lease_s: float = 30.0, write_timeout_s: float = 10.0) -> None:
        self._database = database
        self._lease = timedelta(seconds=lease_s)
        self._write_timeout = timedelta(seconds=write_timeout_s)

    async def claim(self, worker: str) -> Lease | None:
        """The next due job, leased to `worker`; None when there is none.

        Two claims can never run one document: the partial unique index on running jobs refuses the second, which
        starts over and takes the next job.
        """
        # A look first: a poll of an idle worker must not take SQLite's write lock.
        if not await self._database.fetch(select(_next_due().c.id)):
            return None
        row = await self._database.write(partial(_claim, worker=worker, lease=self._lease))
        return None if row is None else lease_of(row)

    async def heartbeat(self, lease: Lease, progress: JobProgress | None = None) -> bool:
        """Prolongs the lease; True when cancelling was asked for. Raises LeaseLost."""
        values: dict[str, Any] = {"lease_until": database_time(self._lease), "updated_at": database_time()}
        if progress is not None:
            values |= _progress_values(progress)

        async def transaction(connection: AsyncConnection) -> bool:
            return await update_held(connection, lease, values)

        return await self._database.write(transaction)

    async def retry_later(self, lease: Lease, error: StoredError, *, delay: timedelta, counts: bool) -> None:
        """Back to the queue after `delay`. A counted failure after progress is the first in a row."""
        failures = case((job.c.progressed, 0), else_=job.c.failures)
        await self._give_back(lease, delay, {"error": error, "failures": failures + 1 if counts else failures})

    async def postpone(self, lease: Lease, *, delay: timedelta, payload: dict[str, Any] | None = None) -> None:
        """Back to the queue without blame. Raises LeaseLost."""
        await self._give_back(lease, delay, {} if payload is None else {"payload": payload})

    async def failures(self, lease: Lease) -> int:
        """Failed attempts in a row; an attempt that made progress clears them. Raises LeaseLost."""
        statement = select(job.c.id, case((job.c.progressed, 0), else_=job.c.failures)).where(held_by(lease))
        rows = await self._database.fetch(statement)
        return int(rows[0][1]) if rows else lease.failures

    async def finish(self, lease: Lease, state: JobState, error: StoredError | None = None) -> None:
        """Ends the job; `done` with new wishes since the claim queues it again. Raises LeaseLost."""

        async def transaction(connection: AsyncConnection) -> None:
            await end(connection, lease, state, error)

        await self._database.write(transaction)

    async def running_workers(self, worker_prefix: str) -> list[str]:
        """Workers that hold a job now and whose id begins so."""
        statement = select(job.c.worker).where(RUNNING, job.c.worker.startswith(worker_prefix, autoescape=True))
        return sorted({row.worker for row in await self._database.fetch(statement)})

    async def release_dead_workers(self, dead: Sequence[str]) -> int:
        """Cuts their leases to now + the write time-out; returns how many were longer."""
        soon = database_time(self._write_timeout)

        async def transaction(connection: AsyncConnection) -> int:
            longer = and_(RUNNING, job.c.worker.in_(dead), job.c.lease_until > soon)
            return (await connection.execute(update(job).where(longer).values(lease_until=soon))).rowcount

        return await self._database.write(transaction)

    async def prune(self, *, keep: timedelta) -> int:
        """Deletes jobs that ended longer ago than `keep`; returns how many."""

        async def transaction(connection: AsyncConnection) -> int:
            old = and_(job.c.state.in_(ENDED), job.c.updated_at < database_time(-keep))
            return (await connection.execute(delete(job).where(old))).rowcount

        return await self._database.write(transaction)

    async def job(self, workspace_id: UUID, job_id: UUID) -> Job:
        """Raises JobNotFound."""
        rows = await self._database.fetch(select(job).where(job.c.id == job_id, job.c.workspace_id == workspace_id))
        if not rows:
            raise JobNotFound(job_id)
        return job_of(rows[0])

    async def jobs(self, workspace_id: UUID, *, state: JobState | None = None, limit: int = 50) -> list[Job]:
        """Newest first. Raises InvalidInput for a limit outside 1–200."""
        statement = select(job).where(job.c.workspace_id == workspace_id)
        if state is not None:
            statement = statement.where(job.c.state == state.value)
        newest_first = statement.order_by(job.c.created_at.desc(), job.c.id).limit(checked_limit(limit))
        return [job_of(row) for row in await self._database.fetch(newest_first)]

    async def cancel(self, workspace_id: UUID, job_id: UUID) -> Job:
        """A queued ingest ends at once, a running one at its next batch. Raises JobNotFound, or Conflict."""
        stop = partial(cancel, workspace_id=workspace_id, job_id=job_id, purge_after=self._write_timeout)
        return job_of(await self._database.write(stop))

    async def counts(self) -> dict[tuple[str, str], int]:
        """Jobs by (kind, state)."""
        statement = select(job.c.kind, job.c.state, func.count().label("jobs")).group_by(job.c.kind, job.c.state)
        return {(row.kind, row.state): row.jobs for row in await self._database.fetch(statement)}

    async def _give_back(self, lease: Lease, delay: timedelta, values: dict[str, Any]) -> None:
        queued = {
            "state": JobState.QUEUED.value,
            "worker": None,
            "lease_until": None,
            "run_after": database_time(delay),
            "updated_at": database_time(),
        }

        async def transaction(connection: AsyncConnection) -> None:
            await update_held(connection, lease, queued | values)

        await self._database.write(transaction)


def _progress_values(progress: JobProgress) -> dict[str, Any]:
    # Only going further than any attempt before is progress: else a job that always fails at the same place, after
    # doing the same work again, would never run out of attempts.
    further = literal(progress.done) > job.c.furthest
    return {
        "progress": progress,
        "progressed": or_(job.c.progressed, further),
        "furthest": case((further, literal(progress.done)), else_=job.c.furthest),
    }


async def _claim(connection: AsyncConnection, *, worker: str, lease: timedelta) -> AnyRow | None:
    due = _next_due(locked=True)
    crashed = job.c.state == JobState.RUNNING.value
    failures = case((job.c.progressed, 0), (crashed, job.c.failures + 1), else_=job.c.failures)
    statement = (
        update(job)
        .where(job.c.id.in_(select(due.c.id)))
        .values(
            state=JobState.RUNNING.value,
            worker=worker,
            attempts=job.c.attempts + 1,
            failures=failures,
            progressed=False,
            lease_until=database_time(lease),
            updated_at=database_time(),
        )
        .returning(*job.c)
    )
    return (await connection.execute(statement)).first()


def _next_due(*, locked: bool = False) -> CTE:
    """The oldest due job of the workspace with the fewest running ones, of a document without a running job."""
    waiting, other = job.alias("waiting"), job.alias("other")
    now = database_time()
    running = (select(job.c.workspace_id, func.count().label("jobs")).where(RUNNING).group_by(job.c.workspace_id)).cte(
        "running"
    )
    is_due = or_(
        and_(waiting.c.state == "queued", waiting.c.run_after <= now),
        and_(waiting.c.state == "running", waiting.c.lease_until < now),
    )
    occupied = exists().where(
        other.c.document_id == waiting.c.document_id, other.c.state == "running", other.c.id != waiting.c.id
    )
    due: Select[UUID] = (
        select(waiting.c.id)
        .outerjoin(running, running.c.workspace_id == waiting.c.workspace_id)
        .where(is_due, ~occupied)
        .order_by(func.coalesce(running.c.jobs, 0), waiting.c.priority, waiting.c.created_at)
        .limit(1)
    )
    return (due.with_for_update(of=waiting, skip_locked=True) if locked else due).cte("due")
