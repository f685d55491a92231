"""A circuit breaker (M. Nygard, Release It!, 2007): a helper that fails is left alone for a while.

    closed ── failures in a row, or one that lasts ──▶ open ── cool-down over ──▶ half open ── good ──▶ closed
                                                         ▲                            │
                                                         └────────────── bad ─────────┘

No lock: all methods run on the event loop and none of them waits.
"""

import random
import time
from collections.abc import Callable
from enum import Enum, auto

from msgspec import Struct

_MAX_DOUBLINGS = 16  # bounds the power, the cool-down has its own cap


class Verdict(Enum):
    """What a call says about the helper. PERMANENT opens the circuit at once; NONE says nothing (cancelled, unfair)."""

    GOOD = auto()
    BAD = auto()
    PERMANENT = auto()
    NONE = auto()


class Admission(Struct, frozen=True):
    """Leave to make one call; every admission must be given back by `leave`."""

    period: int


class CircuitBreaker:
    """Opens after `failure_threshold` failures in a row. Each opening in a row doubles the cool-down, up to the cap."""

    def __init__(
        self,
        *,
        failure_threshold: int = 5,
        cool_down_s: float = 2.0,
        max_cool_down_s: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
        rng: random.Random | None = None,
        on_change: Callable[[str], None] | None = None,
    ) -> None:
        """`on_change` hears `closed`, `half_open`, `open`. The jitter takes up to half of a cool-down away."""
        self._failure_threshold, self._cool_down_s, self._max_cool_down_s = (
            failure_threshold,
            cool_down_s,
            max_cool_down_s,
        )
        self._clock, self._rng, self._on_change = clock, rng or random.SystemRandom(), on_change
        self._failures, self._openings, self._period = 0, 0, 0
        self._open_until: float | None = None
        self._probing = False

    @property
    def state(self) -> str:
        if self._open_until is None:
            return "closed"
        return "half_open" if self._probing else "open"

    def remaining_s(self) -> float:
        """Seconds until the next probe may go; 0 when calls are let in."""
        return max(0.0, self._open_until - self._clock()) if self._open_until is not None else 0.0

    def enter(self) -> Admission | None:
        """None while the circuit is open, and while its one probe is under way."""
        if self._open_until is not None:
            if self._probing or self._clock() < self._open_until:
                return None
            self._probing = True
            self._tell()
        return Admission(self._period)

    def leave(self, admission: Admission, verdict: Verdict) -> None:
        """Counts only what was admitted in the present period: stragglers from before an opening say nothing new."""
        if admission.period != self._period:
            return
        if verdict is Verdict.NONE:
            self._probing = False
        elif verdict is Verdict.GOOD:
            self._close()
        else:
            self._failures += 1
            if self._probing or verdict is Verdict.PERMANENT or self._failures >= self._failure_threshold:
                self._open()

    def _close(self) -> None:
        was_open, self._failures = self._open_until is not None, 0
        if was_open:
            self._period, self._openings = self._period + 1, 0
            self._open_until, self._probing = None, False
            self._tell()

    def _open(self) -> None:
        doubled = self._cool_down_s * 2.0 ** min(self._openings, _MAX_DOUBLINGS)
        cool_down_s = min(self._max_cool_down_s, doubled) * self._rng.uniform(0.5, 1.0)
        self._period, self._openings = self._period + 1, self._openings + 1
        self._open_until, self._probing, self._failures = self._clock() + cool_down_s, False, 0
        self._tell()

    def _tell(self) -> None:
        if self._on_change is not None:
            self._on_change(self.state)
