"""One thread, in order, and nothing is begun that nobody waits for."""

import asyncio
import threading

import pytest

from app.clients.local_model.lane import Lane
from app.domain.deadline import Deadline
from app.domain.errors import EmbedderUnavailable
from tests.support.aio import run

LONG_S = 20.0


def test_work_is_done_in_the_order_of_arrival_by_one_thread() -> None:
    async def story() -> None:
        lane, seen = Lane("test"), []
        await asyncio.gather(
            *(lane.run(lambda n=n: seen.append((n, threading.get_ident())), Deadline.after(LONG_S)) for n in range(20))
        )
        assert [number for number, _ in seen] == list(range(20))
        assert len({thread for _, thread in seen}) == 1
        await lane.aclose()

    run(story())


def test_work_that_was_given_up_while_it_waited_is_never_begun() -> None:
    async def story() -> None:
        lane, release, begun = Lane("test"), threading.Event(), []
        first = asyncio.create_task(lane.run(release.wait, Deadline.after(LONG_S)))
        given_up = asyncio.create_task(lane.run(lambda: begun.append("given up"), Deadline.after(LONG_S)))
        wanted = asyncio.create_task(lane.run(lambda: begun.append("wanted"), Deadline.after(LONG_S)))
        await asyncio.sleep(0)
        given_up.cancel()
        await asyncio.gather(given_up, return_exceptions=True)
        release.set()
        await asyncio.gather(first, wanted)
        assert begun == ["wanted"]
        await lane.aclose()

    run(story())


def test_a_deadline_ends_the_waiting_and_skips_the_work() -> None:
    async def story() -> None:
        lane, release, begun = Lane("test"), threading.Event(), []
        first = asyncio.create_task(lane.run(release.wait, Deadline.after(LONG_S)))
        await asyncio.sleep(0)
        with pytest.raises(EmbedderUnavailable) as caught:
            await lane.run(lambda: begun.append("late"), Deadline.after(0.02))
        assert caught.value.cause == "timeout"
        release.set()
        await first
        await lane.aclose()
        assert begun == []

    run(story())


def test_an_expired_deadline_is_refused_at_once() -> None:
    async def story() -> None:
        lane, begun = Lane("test"), []
        with pytest.raises(EmbedderUnavailable) as caught:
            await lane.run(lambda: begun.append("late"), Deadline.after(-1))
        assert caught.value.cause == "timeout"
        await lane.aclose()
        assert begun == []

    run(story())


def test_errors_of_the_work_reach_the_caller() -> None:
    async def story() -> None:
        lane = Lane("test")
        with pytest.raises(ZeroDivisionError):
            await lane.run(lambda: 1 // 0, Deadline.after(LONG_S))
        await lane.aclose()

    run(story())


def test_closing_ends_the_thread_and_refuses_what_comes_later() -> None:
    async def story() -> None:
        lane = Lane("test-lane-closing")
        await lane.run(lambda: None, Deadline.after(LONG_S))
        await lane.aclose()
        await lane.aclose()
        assert not [thread for thread in threading.enumerate() if thread.name.startswith("test-lane-closing")]
        with pytest.raises(EmbedderUnavailable, match="closed"):
            await lane.run(lambda: None, Deadline.after(LONG_S))

    run(story())
