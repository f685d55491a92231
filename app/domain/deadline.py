"""A point in time by which an answer is due, handed from stage to stage."""

import time
from collections.abc import Callable

from msgspec import Struct

from app.domain.errors import DeadlineExceeded

Clock = Callable[[], float]


class Deadline(Struct, frozen=True):
    """`at` is in seconds of the monotonic clock, which all processes of one host share."""

    at: float
    clock: Clock = time.monotonic

    @classmethod
    def after(cls, seconds: float, clock: Clock = time.monotonic) -> "Deadline":
        return cls(at=clock() + seconds, clock=clock)

    def remaining_s(self) -> float:
        """Seconds left, never negative."""
        return max(0.0, self.at - self.clock())

    def expired(self) -> bool:
        return self.clock() >= self.at

    def sooner(self, seconds: float) -> "Deadline":
        """The earlier of this deadline and `seconds` from now: a stage's own limit inside the request's."""
        return Deadline(at=min(self.at, self.clock() + seconds), clock=self.clock)

    def check(self, stage: str) -> None:
        """Raises DeadlineExceeded when the time is over."""
        if self.expired():
            raise DeadlineExceeded(f"no time left for {stage}")
