"""A handler's hold on its job: progress reports, and a lease that is long enough for the next index write."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from app.domain.errors import JobCancelled
from app.domain.jobs import JobProgress, Lease
from app.domain.ports import JobQueue

T = TypeVar("T")

REPORT_EVERY_S = 1.0


class Tenure:
    """Heartbeats of one handler run; the worker beats beside it at its own pace.

    The database cannot fence the index. So no index write starts unless the lease was prolonged at most
    `renew_after_s` ago, which leaves more of it than a write may take.
    """

    def __init__(
        self, *, queue: JobQueue, lease: Lease, renew_after_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._queue, self.lease, self._renew_after_s, self._clock = queue, lease, renew_after_s, clock
        self._renewed_at = self._reported_at = self._stage_began_at = clock()
        self._stage, self._done_before = "", 0

    async def report(self, stage: str, done: int, total: int) -> None:
        """Tells how far the stage is, at most once a second. Raises LeaseLost or JobCancelled."""
        now = self._clock()
        if stage != self._stage:
            self._stage, self._stage_began_at, self._done_before = stage, now, done
        if now - self._reported_at < REPORT_EVERY_S:
            return
        elapsed_s = now - self._stage_began_at
        rate = (done - self._done_before) / elapsed_s if elapsed_s > 0 else 0.0
        self._reported_at = now
        await self._beat(JobProgress(stage=stage, done=done, total=total, per_second=round(rate, 2)))

    async def before_index_write(self) -> None:
        """Prolongs the lease if it might run out during the write. Raises LeaseLost or JobCancelled."""
        if self._clock() - self._renewed_at > self._renew_after_s:
            await self._beat(None)

    async def _beat(self, progress: JobProgress | None) -> None:
        sent_at = self._clock()
        if await self._queue.heartbeat(self.lease, progress):
            raise JobCancelled("cancelled on request")
        self._renewed_at = sent_at


async def to_the_end(write: Awaitable[T]) -> T:
    """Awaits a write to the index; a cancelled caller waits for its end too.

    Else the job could be given back, and run by another worker, while the write is still on its way. The write has
    its own deadline.
    """
    task = asyncio.ensure_future(write)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        if not task.cancelled():
            task.exception()
        raise
