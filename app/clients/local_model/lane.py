"""One thread that does one thing at a time, seen from the event loop."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from app.domain.deadline import Deadline
from app.domain.errors import EmbedderUnavailable

T = TypeVar("T")


class Lane:
    """Work is done in the order of arrival. What was given up while it waited is never begun."""

    def __init__(self, name: str) -> None:
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)
        self._closed = False

    async def run(self, work: Callable[[], T], deadline: Deadline) -> T:
        """`work`'s result. EmbedderUnavailable when the deadline comes first; work that had begun is then wasted."""
        if self._closed:
            raise EmbedderUnavailable("the embedder has been closed", cause="refused")
        if deadline.expired():
            raise EmbedderUnavailable("no time was left for embedding", cause="timeout")
        try:
            async with asyncio.timeout(deadline.remaining_s()):
                return await asyncio.get_running_loop().run_in_executor(self._executor, work)
        except TimeoutError:
            raise EmbedderUnavailable("embedding took longer than the deadline allows", cause="timeout") from None

    async def aclose(self) -> None:
        """Returns when the thread has ended: after the work in hand and what still waits for it."""
        self._closed = True
        await asyncio.to_thread(self._executor.shutdown)
