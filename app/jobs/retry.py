"""Whether to try a failed job again, and when. Pure: error, counters and random source are arguments."""

import random

from msgspec import Struct

from app.domain.documents import StoredError
from app.domain.errors import (
    EmbedderUnavailable,
    JobCancelled,
    KroshkaError,
    PermanentError,
    TransientError,
    Unavailable,
)
from app.domain.jobs import JobState, Lease

MAX_FAILURES = 8
OUTAGE_CAP_S = 30.0

_DOWN = frozenset({"refused", "circuit_open", "overloaded"})
_DOCUMENTS_FAULT = frozenset({"bad_answer", "status_4xx", "status_5xx"})


class RetryLater(Struct, frozen=True):
    """`counts` is False when the attempt was nobody's fault (an upstream is down)."""

    delay_s: float
    counts: bool


class GiveUp(Struct, frozen=True):
    """The job ends in this state."""

    state: JobState


def backoff(attempt: int, rng: random.Random, base_s: float = 2.0, cap_s: float = 300.0) -> float:
    """Seconds to wait after failed attempt number `attempt` (from 1): exponential with full jitter.

    Source: M. Brooker, Exponential Backoff and Jitter, AWS Architecture Blog, 2015.
    """
    # The exponent is bounded before the power is taken: a job may have been claimed a million times.
    return rng.uniform(0.0, min(cap_s, base_s * 2.0 ** min(attempt - 1, 32)))


def verdict(error: Exception, lease: Lease, *, failures: int, endures: bool, rng: random.Random) -> RetryLater | GiveUp:
    """What becomes of a job whose handler raised `error` after `failures` failed attempts in a row.

    `endures`: the job removes what is not visible any more, so it is never buried for errors that may pass.
    """
    if isinstance(error, JobCancelled):
        return GiveUp(JobState.CANCELLED)
    if isinstance(error, PermanentError):
        return GiveUp(JobState.DEAD)
    if is_outage(error):
        # Every waiting job meets the same outage: they keep asking, but not each of them every second.
        return RetryLater(max(backoff(lease.attempt, rng, cap_s=OUTAGE_CAP_S), _hint_s(error)), counts=False)
    if failures + 1 >= MAX_FAILURES and not endures:
        return GiveUp(JobState.DEAD)
    return RetryLater(max(backoff(failures + 1, rng), _hint_s(error)), counts=True)


def is_outage(error: Exception) -> bool:
    """Whether an upstream is down as a whole, so that this document is not to blame.

    An embedder that answers nonsense or 5xx, or an index that loses the connection, may be choking on this very
    document; that counts.
    """
    if isinstance(error, EmbedderUnavailable):
        return error.cause not in _DOCUMENTS_FAULT
    return isinstance(error, Unavailable) and error.cause in _DOWN


def stored(error: Exception) -> StoredError:
    """The error as it is shown to people. What is not ours stays in the log: it may quote the document."""
    if isinstance(error, KroshkaError):
        return StoredError(error.code, str(error))
    return StoredError("internal_error", f"an internal error ({type(error).__name__}); see the service's log")


def worker_lost(failures: int) -> StoredError:
    """For a job whose workers died again and again."""
    return StoredError("worker_lost", f"the process that worked on this died {failures} times without getting further")


def _hint_s(error: Exception) -> float:
    return error.retry_after_s if isinstance(error, TransientError) else 0.0
