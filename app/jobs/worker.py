"""The worker: claims jobs, keeps their leases, hands them to handlers, retries or buries them."""

import asyncio
import random
from collections.abc import Callable, Coroutine, Mapping
from datetime import timedelta
from enum import Enum, auto
from typing import Protocol

import structlog
from msgspec import Struct

from app.domain.documents import StoredError
from app.domain.errors import JobCancelled, KroshkaError, LeaseLost, StoreUnavailable
from app.domain.jobs import JobKind, JobState, Lease
from app.domain.ports import JobQueue
from app.jobs.identity import WorkerIdentity
from app.jobs.retry import MAX_FAILURES, RetryLater, backoff, stored, verdict, worker_lost

OUTAGE_POLL_S = 10.0
HOUSEKEEPING_S = 10.0
PRUNE_EVERY_S = 3_600.0


class JobHandler(Protocol):
    """Work of one kind. `handle` ends the job itself, in the transaction that makes its result visible."""

    @property
    def endures(self) -> bool:
        """True for clean-up, which is never given up for errors that may pass."""

    async def handle(self, lease: Lease) -> None:
        """Raises a KroshkaError; cancelling it must be safe at every await."""

    async def abandon(self, lease: Lease, error: StoredError, state: JobState) -> None:
        """Ends the job as dead or cancelled and tells what it worked on. Raises LeaseLost."""


class JobResult(Struct, frozen=True):
    """For counters: `result` is done, retried, dead, cancelled, lost or released."""

    kind: JobKind
    result: str


class _Stop(Enum):
    """Why a handler was stopped from outside."""

    LEASE_LOST = auto()
    CANCELLED = auto()
    SHUTDOWN = auto()


class _Run:
    """A handler at work."""

    def __init__(self, lease: Lease, handler: JobHandler) -> None:
        self.lease, self.handler = lease, handler
        self.task = asyncio.ensure_future(handler.handle(lease))
        self.stopped_by: _Stop | None = None

    def stop(self, why: _Stop) -> None:
        self.stopped_by = self.stopped_by or why
        self.task.cancel()


class Worker:
    """`concurrency` loops in this process. `wake` is set by whoever queues a job here; others are found by polling."""

    def __init__(
        self,
        *,
        queue: JobQueue,
        handlers: Mapping[JobKind, JobHandler],
        identity: WorkerIdentity,
        wake: asyncio.Event | None = None,
        concurrency: int = 1,
        lease_s: float = 30.0,
        poll_s: float = 1.0,
        keep_ended: timedelta = timedelta(days=1),
        rng: random.Random | None = None,
        on_result: Callable[[JobResult], None] = lambda _: None,
    ) -> None:
        self._queue, self._handlers, self._identity = queue, handlers, identity
        self._wake = wake or asyncio.Event()
        self._concurrency, self._beat_s, self._poll_s = concurrency, lease_s / 3, poll_s
        self._keep_ended, self._rng = keep_ended, rng or random.Random()  # noqa: S311 (jitter)
        self._on_result = on_result
        self._stopping = False
        self._runs: set[_Run] = set()
        self._log = structlog.get_logger("kroshka.jobs")

    async def run(self) -> None:
        """Works until `stop`, or until cancelled: then running jobs go back to the queue at once."""
        async with asyncio.TaskGroup() as group:
            house = group.create_task(self._keep_house())
            loops = [group.create_task(self._loop(self._identity.worker(n))) for n in range(self._concurrency)]
            await asyncio.wait(loops)
            house.cancel()

    async def stop(self, *, grace_s: float = 5.0) -> None:
        """Claims nothing more; running jobs have `grace_s` to end, then they are given back without blame."""
        self._stopping = True
        self._wake.set()
        if self._runs:
            await asyncio.wait({run.task for run in self._runs}, timeout=grace_s)
        for run in self._runs:
            run.stop(_Stop.SHUTDOWN)

    async def _loop(self, worker: str) -> None:
        troubles = 0
        while not self._stopping:
            self._wake.clear()
            try:
                lease = await self._queue.claim(worker)
            except StoreUnavailable as error:
                troubles += 1
                self._log.warning("claim_failed", cause=error.cause)
                await asyncio.sleep(backoff(troubles, self._rng, cap_s=OUTAGE_POLL_S))
                continue
            troubles = 0
            if lease is not None:
                await self._work(lease)
            elif not self._stopping:
                await self._idle()

    async def _idle(self) -> None:
        try:
            async with asyncio.timeout(self._poll_s):
                await self._wake.wait()
        except TimeoutError:
            return

    async def _work(self, lease: Lease) -> None:
        handler = self._handlers[lease.kind]
        if lease.failures >= MAX_FAILURES and not handler.endures:
            await self._safely(lease, handler.abandon(lease, worker_lost(lease.failures), JobState.DEAD))
            return
        run = _Run(lease, handler)
        self._runs.add(run)
        beat = asyncio.ensure_future(self._beat(run))
        try:
            await asyncio.wait({run.task})
        except asyncio.CancelledError:
            run.stop(_Stop.SHUTDOWN)
            await asyncio.wait({run.task})
            raise
        finally:
            beat.cancel()
            self._runs.discard(run)
            await self._settle(run)

    async def _beat(self, run: _Run) -> None:
        while True:
            await asyncio.sleep(self._beat_s)
            try:
                if await self._queue.heartbeat(run.lease):
                    return run.stop(_Stop.CANCELLED)
            except LeaseLost:
                return run.stop(_Stop.LEASE_LOST)
            except StoreUnavailable as error:
                # The lease outlives two missed beats; the handler's own writes are fenced in any case.
                self._log.warning("heartbeat_failed", cause=error.cause)

    async def _settle(self, run: _Run) -> None:
        if run.task.cancelled():
            await self._stopped(run)
        elif (error := run.task.exception()) is None:
            self._report(run.lease, "done")
        elif isinstance(error, LeaseLost):
            self._report(run.lease, "lost")
        elif isinstance(error, Exception):
            await self._safely(run.lease, self._failed(run, error))
        else:
            raise error

    async def _stopped(self, run: _Run) -> None:
        if run.stopped_by is _Stop.LEASE_LOST:
            self._report(run.lease, "lost")
        elif run.stopped_by is _Stop.CANCELLED:
            error = stored(JobCancelled("cancelled on request"))
            await self._safely(run.lease, run.handler.abandon(run.lease, error, JobState.CANCELLED))
        else:
            await self._safely(run.lease, self._release(run.lease))

    async def _release(self, lease: Lease) -> None:
        await self._queue.postpone(lease, delay=timedelta())
        self._report(lease, "released")

    async def _failed(self, run: _Run, error: Exception) -> None:
        lease = run.lease
        if not isinstance(error, KroshkaError):
            self._log.error("job_error", kind=lease.kind.value, job=str(lease.id), exc_info=error)
        failures = await self._queue.failures(lease)
        decision = verdict(error, lease, failures=failures, endures=run.handler.endures, rng=self._rng)
        if isinstance(decision, RetryLater):
            delay = timedelta(seconds=decision.delay_s)
            await self._queue.retry_later(lease, stored(error), delay=delay, counts=decision.counts)
            self._report(lease, "retried", code=stored(error).code)
        else:
            await run.handler.abandon(lease, stored(error), decision.state)
            self._report(lease, decision.state.value, code=stored(error).code)

    async def _safely(self, lease: Lease, ending: Coroutine[object, object, None]) -> None:
        """An ending that cannot be written leaves the lease to run out: the job is claimed again."""
        try:
            await ending
        except LeaseLost:
            self._report(lease, "lost")
        except StoreUnavailable as error:
            self._log.warning("job_ending_failed", kind=lease.kind.value, job=str(lease.id), cause=error.cause)

    def _report(self, lease: Lease, result: str, **details: str) -> None:
        self._on_result(JobResult(lease.kind, result))
        self._log.info("job_ended", kind=lease.kind.value, job=str(lease.id), result=result, **details)

    async def _keep_house(self) -> None:
        """Frees the jobs of dead processes of this host, and prunes what ended long ago."""
        rounds = 0
        while True:
            try:
                await self._release_dead()
                if rounds % int(PRUNE_EVERY_S / HOUSEKEEPING_S) == 0:
                    await self._queue.prune(keep=self._keep_ended)
            except StoreUnavailable as error:
                self._log.warning("housekeeping_failed", cause=error.cause)
            rounds += 1
            await asyncio.sleep(HOUSEKEEPING_S)

    async def _release_dead(self) -> None:
        holders = await self._queue.running_workers(self._identity.prefix)
        dead = [worker for worker in holders if not self._identity.is_alive(worker)]
        if dead and await self._queue.release_dead_workers(dead):
            self._log.info("dead_workers_released", workers=len(dead))
