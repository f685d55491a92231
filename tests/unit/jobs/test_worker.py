"""The worker loop on a real queue."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from app.domain.documents import DEFAULT_WORKSPACE, StoredError
from app.domain.errors import DocumentUnreadable, EmbedderUnavailable, IndexUnavailable, JobCancelled
from app.domain.jobs import Job, JobKind, JobProgress, JobState, Lease
from app.jobs.identity import WorkerIdentity
from app.jobs.worker import JobHandler, JobResult, Worker
from tests.support.aio import run
from tests.support.store import World, database_url, open_world

Work = Callable[[World, Lease], Awaitable[None]]


class Handler:
    """Does what the test says, and remembers what it was asked for."""

    def __init__(self, world: World, work: Work, *, endures: bool = False) -> None:
        self._world, self._work, self.endures = world, work, endures
        self.leases: list[Lease] = []
        self.abandoned: list[tuple[str, JobState]] = []
        self.cancelled = 0
        self.started = asyncio.Event()

    async def handle(self, lease: Lease) -> None:
        self.leases.append(lease)
        self.started.set()
        try:
            await self._work(self._world, lease)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise

    async def abandon(self, lease: Lease, error: StoredError, state: JobState) -> None:
        self.abandoned.append((error.code, state))
        await self._world.queue.finish(lease, state, error)


async def done(world: World, lease: Lease) -> None:
    await world.queue.finish(lease, JobState.DONE)


async def for_ever(_world: World, _lease: Lease) -> None:
    await asyncio.sleep(3_600)


def raising(error: Exception) -> Work:
    async def work(_world: World, _lease: Lease) -> None:
        raise error

    return work


@pytest.fixture
def url(tmp_path: Path) -> str:
    return database_url("sqlite", tmp_path)


@asynccontextmanager
async def working(
    world: World,
    handler: JobHandler,
    *,
    results: list[JobResult] | None = None,
    wake: asyncio.Event | None = None,
    lease_s: float = 30.0,
    poll_s: float = 0.02,
    concurrency: int = 1,
) -> AsyncIterator[Worker]:
    worker = Worker(
        queue=world.queue,
        handlers=dict.fromkeys(JobKind, handler),
        identity=WorkerIdentity.here(),
        wake=wake,
        concurrency=concurrency,
        lease_s=lease_s,
        poll_s=poll_s,
        on_result=(results if results is not None else []).append,
    )
    running = asyncio.ensure_future(worker.run())
    try:
        yield worker
    finally:
        await worker.stop(grace_s=0)
        await running


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    while not await condition():  # noqa: ASYNC110 (the database is what is waited for)
        await asyncio.sleep(0.01)


async def ended(world: World, state: JobState, jobs: int = 1) -> None:
    async def condition() -> bool:
        return len(await world.queue.jobs(DEFAULT_WORKSPACE, state=state)) >= jobs

    await until(condition)


async def job_of(world: World, lease: Lease) -> Job:
    return await world.queue.job(DEFAULT_WORKSPACE, lease.id)


def test_jobs_are_worked_off(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            for n in range(5):
                await world.accept(f"{n}.md")
            handler, results = Handler(world, done), list[JobResult]()
            async with working(world, handler, results=results, concurrency=2):
                # The results, not the rows: a row is done a moment before its handler knows.
                await until(lambda: asyncio.sleep(0, len(results) == 5))
            assert len(await world.queue.jobs(DEFAULT_WORKSPACE, state=JobState.DONE)) == 5
            assert len(handler.leases) == 5
            assert results == [JobResult(JobKind.INGEST, "done")] * 5

    run(story())


def test_a_wake_up_is_faster_than_the_poll(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            wake = asyncio.Event()
            handler = Handler(world, done)
            async with working(world, handler, wake=wake, poll_s=3_600):
                await asyncio.sleep(0.05)
                await world.accept()
                wake.set()
                await ended(world, JobState.DONE)

    run(story())


def test_a_job_queued_by_another_process_is_found_by_polling(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world, working(world, Handler(world, done)):
            await asyncio.sleep(0.05)
            await world.accept()
            await ended(world, JobState.DONE)

    run(story())


def test_a_permanent_error_buries_the_job_through_its_handler(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            await world.accept()
            handler = Handler(world, raising(DocumentUnreadable("not a text")))
            async with working(world, handler):
                await ended(world, JobState.DEAD)
            assert handler.abandoned == [("document_unreadable", JobState.DEAD)]
            job = await job_of(world, handler.leases[0])
            assert job.error == StoredError("document_unreadable", "not a text")

    run(story())


def test_what_may_pass_is_tried_again_and_dies_after_eight_failures(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            await world.accept()
            handler, results = Handler(world, raising(IndexUnavailable("reset", cause="reset"))), list[JobResult]()
            async with working(world, handler, results=results):
                for n in range(1, 8):
                    await until(lambda n=n: _is(len(results) == n))  # type: ignore[misc]
                    await world.make_due()
                await ended(world, JobState.DEAD)
            assert [result.result for result in results] == ["retried"] * 7 + ["dead"]
            assert handler.abandoned == [("index_unavailable", JobState.DEAD)]

    run(story())


async def _is(value: bool) -> bool:
    return value


def test_an_embedder_that_is_down_burns_no_attempts(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            await world.accept()
            handler, results = (
                Handler(world, raising(EmbedderUnavailable("down", cause="refused"))),
                list[JobResult](),
            )
            async with working(world, handler, results=results):
                for n in range(1, 12):
                    await until(lambda n=n: _is(len(results) == n))  # type: ignore[misc]
                    await world.make_due()
            assert handler.abandoned == []
            assert handler.leases[-1].failures == 0

    run(story())


def test_workers_that_die_again_and_again_bury_the_job(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            await world.accept()
            for _ in range(8):
                await world.claim("gone")
                await world.let_leases_expire()
            handler = Handler(world, done)
            async with working(world, handler):
                await ended(world, JobState.DEAD)
            assert handler.leases == []
            assert handler.abandoned == [("worker_lost", JobState.DEAD)]

    run(story())


def test_nine_restarts_do_not_kill_a_long_document_that_gets_further(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            await world.accept()
            for n in range(9):
                lease = await world.claim("gone")
                await world.queue.heartbeat(lease, JobProgress(stage="embed", done=n + 1, total=100))
                await world.let_leases_expire()
            handler = Handler(world, done)
            async with working(world, handler):
                await ended(world, JobState.DONE)
            assert handler.leases[0].failures == 0

    run(story())


def test_the_lease_is_kept_while_the_handler_works(url: str) -> None:
    async def story() -> None:
        async with open_world(url, lease_s=0.3) as world:
            await world.accept()
            handler = Handler(world, for_ever)
            async with working(world, handler, lease_s=0.3):
                await handler.started.wait()
                await asyncio.sleep(0.9)
                assert await world.queue.claim("other") is None
            assert len(handler.leases) == 1

    run(story())


def test_a_handler_whose_lease_was_taken_is_stopped(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            await world.accept()
            handler, results = Handler(world, for_ever), list[JobResult]()
            async with working(world, handler, lease_s=0.15, results=results):
                await handler.started.wait()
                await world.execute("UPDATE job SET worker = 'other', attempts = attempts + 1")
                await until(lambda: _is(bool(results)))
            assert results[0].result == "lost"
            assert (handler.cancelled, handler.abandoned) == (1, [])
            assert (await job_of(world, handler.leases[0])).state is JobState.RUNNING, "it is the other's now"

    run(story())


def test_a_cancelled_job_is_stopped_even_in_the_middle_of_a_long_step(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            accepted = await world.accept()
            assert accepted.job_id is not None
            handler = Handler(world, for_ever)
            async with working(world, handler, lease_s=0.15):
                await handler.started.wait()
                await world.queue.cancel(DEFAULT_WORKSPACE, accepted.job_id)
                await ended(world, JobState.CANCELLED)
            assert handler.abandoned == [("job_cancelled", JobState.CANCELLED)]

    run(story())


def test_a_handler_that_sees_the_cancellation_itself_is_treated_alike(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            await world.accept()
            handler = Handler(world, raising(JobCancelled("cancelled on request")))
            async with working(world, handler):
                await ended(world, JobState.CANCELLED)
            assert handler.abandoned == [("job_cancelled", JobState.CANCELLED)]

    run(story())


def test_a_clean_stop_gives_the_running_job_back_without_blame(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            await world.accept()
            handler = Handler(world, for_ever)
            async with working(world, handler):
                await handler.started.wait()
            assert (await job_of(world, handler.leases[0])).state is JobState.QUEUED
            again = await world.claim("next")
            assert (again.attempt, again.failures) == (2, 0)

    run(story())


def test_a_clean_stop_lets_a_job_end_within_the_grace(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            await world.accept()
            go_on = asyncio.Event()

            async def waits(world: World, lease: Lease) -> None:
                await go_on.wait()
                await done(world, lease)

            handler = Handler(world, waits)
            async with working(world, handler) as worker:
                await handler.started.wait()
                stopping = asyncio.ensure_future(worker.stop(grace_s=10))
                await asyncio.sleep(0)
                go_on.set()
                await stopping
            assert (await job_of(world, handler.leases[0])).state is JobState.DONE

    run(story())


def test_a_cancelled_worker_gives_its_job_back(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            await world.accept()
            handler = Handler(world, for_ever)
            worker = Worker(queue=world.queue, handlers=dict.fromkeys(JobKind, handler), identity=WorkerIdentity.here())
            running = asyncio.ensure_future(worker.run())
            await handler.started.wait()
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            assert (await job_of(world, handler.leases[0])).state is JobState.QUEUED

    run(story())


def test_jobs_of_a_process_that_died_on_this_host_are_freed_early(url: str) -> None:
    async def story() -> None:
        async with open_world(url, lease_s=3_600, write_timeout_s=0.05) as world:
            await world.accept()
            dead = msgspec.structs.replace(WorkerIdentity.here(), pid=2**22 + 1)
            await world.claim(dead.worker(0))
            handler = Handler(world, done)
            async with working(world, handler):
                await ended(world, JobState.DONE)
            assert handler.leases[0].failures == 1

    run(story())


def test_jobs_that_ended_long_ago_are_pruned(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            await world.indexed()
            await world.execute("UPDATE job SET updated_at = '2001-01-01 00:00:00.000000'")
            async with working(world, Handler(world, done)):

                async def none_left() -> bool:
                    return not await world.queue.counts()

                await until(none_left)
            assert await world.queue.prune(keep=timedelta()) == 0

    run(story())
