"""The books of one search: stage times, degradations and notes."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from app.domain.errors import Unavailable, UpstreamRefused
from app.domain.search import Degradation


class Turn:
    """Collects what the answer tells about the way to it. Times are in milliseconds."""

    def __init__(self, *, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock, self._began = clock, clock()
        self.timings_ms: dict[str, float] = {}
        self.degraded: list[Degradation] = []
        self.notes: list[str] = []

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Adds the time inside to the stage, also when it fails."""
        began = self._clock()
        try:
            yield
        finally:
            self.timings_ms[name] = self.timings_ms.get(name, 0.0) + (self._clock() - began) * 1000

    def degrade(self, stage: str, error: Exception) -> None:
        """Records that a helper was missing; the search goes on without it."""
        self.degraded.append(
            Degradation(stage=stage, cause=cause_of(error), after_ms=round(self.timings_ms.get(stage, 0.0), 1))
        )

    def total_ms(self) -> float:
        return (self._clock() - self._began) * 1000

    def rounded_timings(self) -> dict[str, float]:
        return {name: round(ms, 1) for name, ms in self.timings_ms.items()} | {"total": round(self.total_ms(), 1)}


def cause_of(error: Exception) -> str:
    """One word of the closed set of causes."""
    if isinstance(error, Unavailable | UpstreamRefused):
        return error.cause
    return "timeout" if isinstance(error, TimeoutError) else "missing"
