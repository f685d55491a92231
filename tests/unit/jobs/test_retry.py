"""Back-off and the verdict on a failed job."""

import random
from uuid import UUID

import pytest

from app.domain.errors import (
    DeadlineExceeded,
    DocumentUnreadable,
    EmbedderUnavailable,
    IndexUnavailable,
    JobCancelled,
    TransientError,
)
from app.domain.jobs import JobKind, JobState, Lease
from app.jobs.retry import MAX_FAILURES, GiveUp, RetryLater, backoff, is_outage, stored, verdict

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


def judge(error: Exception, *, failures: int = 0, endures: bool = False) -> RetryLater | GiveUp:
    return verdict(error, LEASE, failures=failures, endures=endures, rng=random.Random(1))


@pytest.mark.parametrize(("attempt", "highest"), [(1, 2.0), (2, 4.0), (5, 32.0), (9, 300.0), (10_000, 300.0)])
def test_the_delay_doubles_up_to_the_cap_with_full_jitter(attempt: int, highest: float) -> None:
    rng = random.Random(7)
    delays = [backoff(attempt, rng) for _ in range(500)]
    assert 0 <= min(delays) < highest * 0.05
    assert highest * 0.95 < max(delays) <= highest


def test_a_permanent_error_ends_the_job_at_once() -> None:
    assert judge(DocumentUnreadable("broken")) == GiveUp(JobState.DEAD)
    assert judge(JobCancelled("stop")) == GiveUp(JobState.CANCELLED)


def test_what_may_pass_is_tried_eight_times() -> None:
    for failures in range(MAX_FAILURES - 1):
        decision = judge(DeadlineExceeded("late"), failures=failures)
        assert isinstance(decision, RetryLater)
        assert decision.counts
    assert judge(DeadlineExceeded("late"), failures=MAX_FAILURES - 1) == GiveUp(JobState.DEAD)


def test_a_mistake_of_ours_counts_as_a_failed_attempt_and_quotes_nothing() -> None:
    error = KeyError("text of a document")
    assert isinstance(judge(error), RetryLater)
    assert judge(error, failures=7) == GiveUp(JobState.DEAD)
    assert "text of a document" not in stored(error).message
    assert stored(error).code == "internal_error"


def test_clean_up_is_never_given_up_for_what_may_pass() -> None:
    decision = judge(IndexUnavailable("gone", cause="reset"), failures=1_000, endures=True)
    assert isinstance(decision, RetryLater)
    assert decision.delay_s <= 300


@pytest.mark.parametrize("cause", ["refused", "timeout", "reset", "circuit_open", "overloaded"])
def test_an_embedder_that_is_down_burns_no_attempts(cause: str) -> None:
    decision = judge(EmbedderUnavailable("down", cause=cause), failures=MAX_FAILURES - 1)
    assert isinstance(decision, RetryLater)
    assert not decision.counts
    assert 1.0 <= decision.delay_s <= 30.0


@pytest.mark.parametrize(
    ("error", "outage"),
    [
        (EmbedderUnavailable("nonsense", cause="bad_answer"), False),
        (EmbedderUnavailable("500", cause="status_5xx"), False),
        (IndexUnavailable("down", cause="refused"), True),
        (IndexUnavailable("it died on this batch", cause="reset"), False),
        (DeadlineExceeded("late"), False),
    ],
)
def test_an_error_that_the_document_may_have_caused_counts(error: Exception, outage: bool) -> None:
    assert is_outage(error) is outage


def test_a_hint_of_the_upstream_is_kept() -> None:
    decision = judge(EmbedderUnavailable("later", cause="overloaded", retry_after_s=45.0))
    assert isinstance(decision, RetryLater)
    assert decision.delay_s >= 45.0
    assert isinstance(judge(TransientError("soon")), RetryLater)
