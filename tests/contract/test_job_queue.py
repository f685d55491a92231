"""The JobQueue port, on every database."""

import asyncio
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest

from app.domain.documents import DEFAULT_WORKSPACE, StoredError
from app.domain.errors import Conflict, InvalidInput, JobNotFound, LeaseLost
from app.domain.jobs import JobKind, JobProgress, JobState
from tests.support.aio import run
from tests.support.store import DATABASES, database_url, open_world

BROKEN = StoredError("broken", "it broke")
NO_DELAY = timedelta()


@pytest.fixture(params=DATABASES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return database_url(request.param, tmp_path)


def test_a_claimed_job_is_not_given_to_anybody_else(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            accepted = await world.accept()
            lease = await world.claim("w1")
            assert (lease.id, lease.kind, lease.revision_id) == (accepted.job_id, JobKind.INGEST, accepted.revision_id)
            assert (lease.attempt, lease.failures, lease.wanted) == (1, 0, 1)
            assert await world.queue.claim("w2") is None

    run(story())


def test_of_two_claims_at_once_one_wins(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            await world.accept()
            leases = await asyncio.gather(*(world.queue.claim(f"w{n}") for n in range(8)))
            assert sum(lease is not None for lease in leases) == 1

    run(story())


def test_many_claims_at_once_take_different_jobs(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            for n in range(8):
                await world.accept(f"{n}.md")
            leases = await asyncio.gather(*(world.queue.claim(f"w{n}") for n in range(8)))
            assert len({lease.id for lease in leases if lease is not None}) == 8

    run(story())


def test_a_document_has_one_running_job_however_many_are_queued(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            await world.accept("A.md", "one")
            await world.accept("A.md", "two")
            await world.accept("B.md", "one")
            leases = await asyncio.gather(*(world.queue.claim(f"w{n}") for n in range(4)))
            held = [lease for lease in leases if lease is not None]
            assert len(held) == 2
            assert len({lease.document_id for lease in held}) == 2

    run(story())


def test_the_oldest_job_of_the_workspace_with_fewest_running_ones_comes_first(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            other = uuid4()
            await world.catalog.ensure_workspace(other, "other")
            theirs = await world.catalog.create_collection(other, "Theirs")
            for name in ("1.md", "2.md", "3.md"):
                await world.accept(name)
                await asyncio.sleep(0.002)
            await world.accept("late.md", collection_id=theirs.id, workspace_id=other)
            first, second, third = [await world.claim(f"w{n}") for n in range(3)]
            assert (first.workspace_id, second.workspace_id, third.workspace_id) == (
                DEFAULT_WORKSPACE,
                other,
                DEFAULT_WORKSPACE,
            )

    run(story())


def test_deleting_goes_before_ingesting(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            doomed = await world.accept("old.md")
            await world.accept("new.md")
            await world.catalog.delete_document(DEFAULT_WORKSPACE, doomed.document_id)
            assert (await world.claim()).kind is JobKind.DELETE

    run(story())


def test_a_job_whose_lease_ran_out_is_claimed_again_and_the_attempt_counted(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            await world.accept()
            first = await world.claim("w1")
            await world.let_leases_expire()
            second = await world.claim("w2")
            assert second.id == first.id
            assert (second.attempt, second.failures) == (2, 1)

    run(story())


def test_a_heartbeat_keeps_the_lease(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            await world.accept()
            lease = await world.claim("w1")
            await world.let_leases_expire()
            assert await world.queue.heartbeat(lease) is False
            assert await world.queue.claim("w2") is None

    run(story())


def test_everything_is_refused_after_another_worker_took_the_lease(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            await world.accept()
            old = await world.claim("w1")
            await world.let_leases_expire()
            new = await world.claim("w2")
            for attempt in (
                world.queue.heartbeat(old),
                world.queue.finish(old, JobState.DONE),
                world.queue.retry_later(old, BROKEN, delay=NO_DELAY, counts=True),
                world.queue.postpone(old, delay=NO_DELAY),
            ):
                with pytest.raises(LeaseLost):
                    await attempt
            assert (await world.queue.job(DEFAULT_WORKSPACE, new.id)).state is JobState.RUNNING
            await world.queue.finish(new, JobState.DONE)

    run(story())


def test_the_same_worker_cannot_use_its_earlier_lease(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            await world.accept()
            old = await world.claim("w1")
            await world.let_leases_expire()
            await world.claim("w1")
            with pytest.raises(LeaseLost):
                await world.queue.finish(old, JobState.DONE)

    run(story())


def test_progress_is_shown_and_clears_the_failures(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            await world.accept()
            for _ in range(3):
                await world.claim()
                await world.let_leases_expire()
            lease = await world.claim()
            assert (lease.failures, await world.queue.failures(lease)) == (3, 3)
            progress = JobProgress(stage="embed", done=8, total=100, per_second=4.0)
            await world.queue.heartbeat(lease, progress)
            assert await world.queue.failures(lease) == 0
            assert (await world.queue.job(DEFAULT_WORKSPACE, lease.id)).progress == progress
            await world.let_leases_expire()
            assert (await world.claim()).failures == 0

    run(story())


def test_doing_the_same_work_again_is_no_progress(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            await world.accept()
            for expected in (0, 0, 1, 2):
                lease = await world.claim()
                assert lease.failures == expected
                await world.queue.heartbeat(lease, JobProgress(stage="embed", done=8, total=100))
                await world.let_leases_expire()

    run(story())


def test_a_retry_waits_for_its_delay_and_counts_only_when_it_should(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            await world.accept()
            await world.queue.retry_later(await world.claim(), BROKEN, delay=timedelta(hours=1), counts=True)
            assert await world.queue.claim("w1") is None
            await world.make_due()
            lease = await world.claim()
            assert lease.failures == 1
            assert (await world.queue.job(DEFAULT_WORKSPACE, lease.id)).error == BROKEN
            await world.queue.retry_later(lease, BROKEN, delay=NO_DELAY, counts=False)
            assert (await world.claim()).failures == 1

    run(story())


def test_a_postponed_job_keeps_its_note(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            await world.accept()
            await world.queue.postpone(await world.claim(), delay=NO_DELAY, payload={"swept": True})
            lease = await world.claim()
            assert lease.payload == {"swept": True}
            assert lease.failures == 0
            await world.queue.postpone(lease, delay=timedelta(hours=1))
            assert await world.queue.claim("w1") is None

    run(story())


def test_a_wish_that_came_during_the_run_queues_the_job_again(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            accepted = await world.indexed()
            first = await world.catalog.delete_document(DEFAULT_WORKSPACE, accepted.document_id)
            lease = await world.claim()
            again = await world.catalog.delete_document(DEFAULT_WORKSPACE, accepted.document_id)
            assert again == first == lease.id
            await world.queue.finish(lease, JobState.DONE)
            assert (await world.queue.job(DEFAULT_WORKSPACE, first)).state is JobState.QUEUED
            await world.queue.finish(await world.claim(), JobState.DONE)
            assert (await world.queue.job(DEFAULT_WORKSPACE, first)).state is JobState.DONE

    run(story())


def test_a_failed_job_says_why(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            await world.accept()
            lease = await world.claim()
            await world.queue.finish(lease, JobState.DEAD, BROKEN)
            job = await world.queue.job(DEFAULT_WORKSPACE, lease.id)
            assert (job.state, job.error) == (JobState.DEAD, BROKEN)
            assert await world.queue.counts() == {("ingest", "dead"): 1}

    run(story())


def test_cancelling_a_queued_ingest_ends_it_and_queues_its_purge(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            accepted = await world.accept()
            assert accepted.job_id is not None
            job = await world.queue.cancel(DEFAULT_WORKSPACE, accepted.job_id)
            assert job.state is JobState.CANCELLED
            document = await world.catalog.document(DEFAULT_WORKSPACE, accepted.document_id)
            assert document.status == "cancelled"
            assert await world.queue.counts() == {("ingest", "cancelled"): 1, ("purge", "queued"): 1}
            with pytest.raises(Conflict):
                await world.queue.cancel(DEFAULT_WORKSPACE, accepted.job_id)

    run(story())


def test_cancelling_a_running_ingest_is_told_to_its_worker(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            await world.accept()
            lease = await world.claim()
            assert (await world.queue.cancel(DEFAULT_WORKSPACE, lease.id)).state is JobState.RUNNING
            assert await world.queue.heartbeat(lease) is True

    run(story())


def test_a_deletion_cannot_be_cancelled(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            accepted = await world.accept()
            job_id = await world.catalog.delete_document(DEFAULT_WORKSPACE, accepted.document_id)
            with pytest.raises(Conflict, match="delete"):
                await world.queue.cancel(DEFAULT_WORKSPACE, job_id)

    run(story())


def test_jobs_of_another_workspace_are_not_found(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            accepted = await world.accept()
            assert accepted.job_id is not None
            stranger = uuid4()
            for attempt in (
                world.queue.job(stranger, accepted.job_id),
                world.queue.cancel(stranger, accepted.job_id),
            ):
                with pytest.raises(JobNotFound):
                    await attempt
            assert await world.queue.jobs(stranger) == []

    run(story())


def test_jobs_are_listed_newest_first_and_by_state(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            for name in ("1.md", "2.md", "3.md"):
                await world.accept(name)
                await asyncio.sleep(0.002)
            running = await world.claim()
            jobs = await world.queue.jobs(DEFAULT_WORKSPACE)
            assert [job.created_at for job in jobs] == sorted((job.created_at for job in jobs), reverse=True)
            only = await world.queue.jobs(DEFAULT_WORKSPACE, state=JobState.RUNNING)
            assert [job.id for job in only] == [running.id]
            assert len(await world.queue.jobs(DEFAULT_WORKSPACE, limit=2)) == 2
            with pytest.raises(InvalidInput, match="limit"):
                await world.queue.jobs(DEFAULT_WORKSPACE, limit=0)

    run(story())


def test_the_lease_of_a_dead_worker_is_cut_to_the_write_timeout(url: str) -> None:
    async def story() -> None:
        async with open_world(url, lease_s=3600.0, write_timeout_s=0.15) as world:
            await world.accept("A.md")
            await world.accept("B.md")
            await world.claim("host:1:dead:0")
            await world.claim("host:2:alive:0")
            assert await world.queue.running_workers("host:") == ["host:1:dead:0", "host:2:alive:0"]
            assert await world.queue.running_workers("ho%t:") == []
            assert await world.queue.release_dead_workers(["host:1:dead:0"]) == 1
            # Not at once: what the dead worker began to write may still land.
            assert await world.queue.claim("host:3:new:0") is None
            await asyncio.sleep(0.3)
            assert (await world.claim("host:3:new:0")).failures == 1
            assert await world.queue.claim("host:3:new:0") is None

    run(story())


def test_ended_jobs_are_pruned_after_their_time(url: str) -> None:
    async def story() -> None:
        async with open_world(url) as world:
            await world.indexed("A.md")
            await world.accept("B.md")
            assert await world.queue.prune(keep=timedelta(days=1)) == 0
            assert await world.queue.prune(keep=timedelta(seconds=-1)) == 1
            assert await world.queue.counts() == {("ingest", "queued"): 1}

    run(story())
