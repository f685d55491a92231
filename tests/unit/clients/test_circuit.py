"""The circuit breaker, on a clock of its own."""

import random

import pytest

from app.clients.circuit import CircuitBreaker, Verdict


class Bench:
    """A circuit with a clock that the test moves; `changes` is what the circuit told."""

    def __init__(self, *, failure_threshold: int = 3, cool_down_s: float = 2.0, max_cool_down_s: float = 60.0) -> None:
        self.now_s, self.changes = 100.0, list[str]()
        self.circuit = CircuitBreaker(
            failure_threshold=failure_threshold,
            cool_down_s=cool_down_s,
            max_cool_down_s=max_cool_down_s,
            clock=lambda: self.now_s,
            rng=random.Random(7),
            on_change=self.changes.append,
        )

    def call(self, verdict: Verdict) -> bool:
        """Whether the call was let in."""
        admission = self.circuit.enter()
        if admission is None:
            return False
        self.circuit.leave(admission, verdict)
        return True

    def fail(self, times: int) -> None:
        for _ in range(times):
            assert self.call(Verdict.BAD)

    def cool_down(self) -> float:
        """Lets the cool-down pass; returns how long it was."""
        waited_s = self.circuit.remaining_s()
        self.now_s += waited_s
        return waited_s


def test_it_opens_after_that_many_failures_in_a_row_and_lets_nobody_in() -> None:
    bench = Bench(failure_threshold=3)
    bench.fail(2)
    assert bench.circuit.state == "closed"
    bench.fail(1)
    assert bench.circuit.state == "open"
    assert not bench.call(Verdict.GOOD)


def test_a_success_between_failures_starts_the_count_again() -> None:
    bench = Bench(failure_threshold=3)
    bench.fail(2)
    bench.call(Verdict.GOOD)
    bench.fail(2)
    assert bench.circuit.state == "closed"


def test_a_failure_that_lasts_opens_it_at_once() -> None:
    bench = Bench(failure_threshold=3)
    assert bench.call(Verdict.PERMANENT)
    assert not bench.call(Verdict.GOOD)


def test_after_the_cool_down_exactly_one_probe_goes_until_it_has_ended() -> None:
    bench = Bench()
    bench.fail(3)
    bench.cool_down()
    probe = bench.circuit.enter()
    assert probe is not None
    assert bench.circuit.state == "half_open"
    assert bench.circuit.enter() is None
    bench.circuit.leave(probe, Verdict.GOOD)
    assert bench.circuit.state == "closed"
    assert bench.call(Verdict.GOOD)


def test_a_probe_that_was_called_off_leaves_its_place_to_the_next() -> None:
    bench = Bench()
    bench.fail(3)
    bench.cool_down()
    assert bench.call(Verdict.NONE)
    assert bench.circuit.state == "open"
    assert bench.call(Verdict.GOOD)
    assert bench.circuit.state == "closed"


def test_the_cool_down_grows_with_jitter_and_has_a_cap() -> None:
    bench = Bench(cool_down_s=2.0, max_cool_down_s=10.0)
    bench.fail(3)
    waits_s = [bench.cool_down()]
    for _ in range(30):
        assert bench.call(Verdict.BAD)
        waits_s.append(bench.cool_down())
    for opening, waited_s in enumerate(waits_s):
        whole_s = min(10.0, 2.0 * 2**opening)
        assert whole_s / 2 <= waited_s <= whole_s + 1e-6
    assert len(set(waits_s)) > 20


def test_the_cool_down_is_short_again_after_a_recovery() -> None:
    bench = Bench(cool_down_s=2.0)
    bench.fail(3)
    for _ in range(4):
        bench.cool_down()
        bench.call(Verdict.BAD)
    bench.cool_down()
    assert bench.call(Verdict.GOOD)
    bench.fail(3)
    assert bench.cool_down() <= 2.0


@pytest.mark.parametrize("verdict", [Verdict.GOOD, Verdict.BAD, Verdict.PERMANENT])
def test_stragglers_from_before_the_opening_change_nothing(verdict: Verdict) -> None:
    bench = Bench()
    straggler = bench.circuit.enter()
    assert straggler is not None
    bench.fail(3)
    remaining_s = bench.circuit.remaining_s()
    bench.circuit.leave(straggler, verdict)
    assert bench.circuit.state == "open"
    assert bench.circuit.remaining_s() == remaining_s


def test_every_change_is_told_once() -> None:
    bench = Bench()
    bench.fail(3)
    bench.cool_down()
    bench.call(Verdict.BAD)
    bench.cool_down()
    bench.call(Verdict.GOOD)
    bench.call(Verdict.GOOD)
    assert bench.changes == ["open", "half_open", "open", "half_open", "closed"]
