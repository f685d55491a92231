"""Progress reports, lease renewal before index writes, and writes that are seen to their end."""

import asyncio
from typing import Any
from uuid import UUID

import pytest

from app.domain.errors import JobCancelled
from app.domain.jobs import JobKind, JobProgress, Lease
from app.ingestion.tenure import Tenure, to_the_end
from app.ingestion.timing import StageTimes
from tests.support.aio import run

LEASE = Lease(
    id=UUID(int=1),
    kind=JobKind.INGEST,
    workspace_id=UUID(int=2),
    document_id=UUID(int=3),
    revision_id=UUID(int=4),
    worker="w",
    attempt=1,
    failures=0,
    wanted=1,
)


class Beats:
    """A queue of which only the heartbeat is used."""

    def __init__(self) -> None:
        self.seen: list[JobProgress | None] = []
        self.cancelled = False

    async def heartbeat(self, lease: Lease, progress: JobProgress | None = None) -> bool:
        self.seen.append(progress)
        return self.cancelled


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def tenure(beats: Any, clock: Clock) -> Tenure:
    return Tenure(queue=beats, lease=LEASE, renew_after_s=10.0, clock=clock)


def test_progress_is_told_at_most_once_a_second_with_its_rate() -> None:
    async def story() -> None:
        beats, clock = Beats(), Clock()
        held = tenure(beats, clock)
        await held.report("embed", 0, 100)
        for done in range(1, 41):
            clock.now_s = 100.0 + done / 8  # eighths have no rounding
            await held.report("embed", done, 100)
        assert [progress.done for progress in beats.seen if progress] == [8, 16, 24, 32, 40]
        assert beats.seen[-1] == JobProgress(stage="embed", done=40, total=100, per_second=8.0)

    run(story())


def test_a_resumed_stage_counts_its_rate_from_where_it_began() -> None:
    async def story() -> None:
        beats, clock = Beats(), Clock()
        held = tenure(beats, clock)
        await held.report("embed", 50, 100)
        clock.now_s += 2
        await held.report("embed", 60, 100)
        assert beats.seen == [JobProgress(stage="embed", done=60, total=100, per_second=5.0)]

    run(story())


def test_the_lease_is_prolonged_before_a_write_only_when_it_has_aged() -> None:
    async def story() -> None:
        beats, clock = Beats(), Clock()
        held = tenure(beats, clock)
        clock.now_s += 9.9
        await held.before_index_write()
        assert beats.seen == []
        clock.now_s += 0.2
        await held.before_index_write()
        await held.before_index_write()
        assert beats.seen == [None]

    run(story())


def test_a_cancellation_is_seen_at_a_report() -> None:
    async def story() -> None:
        beats, clock = Beats(), Clock()
        beats.cancelled = True
        clock_ahead = tenure(beats, clock)
        clock.now_s += 11
        with pytest.raises(JobCancelled):
            await clock_ahead.before_index_write()

    run(story())


def test_a_cancelled_handler_waits_for_the_end_of_its_index_write() -> None:
    async def story() -> None:
        begun, may_end, ended = asyncio.Event(), asyncio.Event(), []

        async def write() -> None:
            begun.set()
            await may_end.wait()
            ended.append(True)

        handler = asyncio.ensure_future(to_the_end(write()))
        await begun.wait()
        handler.cancel()
        await asyncio.sleep(0)
        assert not handler.done()
        may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await handler
        assert ended == [True]

    run(story())


def fail_after(seconds: float, times: StageTimes, clock: Clock) -> None:
    with times.stage("embed"):
        clock.now_s += seconds
        raise LookupError


def test_stage_times_add_up_also_when_a_stage_fails() -> None:
    clock = Clock()
    times = StageTimes(clock)
    for seconds in (1.0, 2.5):
        with pytest.raises(LookupError):
            fail_after(seconds, times, clock)
    assert times.seconds == {"embed": 3.5}
