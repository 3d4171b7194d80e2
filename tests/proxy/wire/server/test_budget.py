"""The share of the time that questions may take."""

from __future__ import annotations

import pytest

from licorne.proxy.wire.server.core import BURST_SECONDS, SHARE, Budget


class Clock:
    """A clock that goes on when something waits for it."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.waited = 0.0

    def now(self) -> float:
        return self.seconds

    def work(self, seconds: float) -> None:
        self.seconds += seconds

    def wait(self, seconds: float) -> None:
        self.seconds += seconds
        self.waited += seconds


def test_steps_that_come_now_and_then_do_not_wait() -> None:
    """What a person asks is answered at once."""
    clock = Clock()
    budget = Budget(clock.now, clock.wait)
    for _ in range(100):
        with budget.step():
            clock.work(0.5)
        clock.work(0.5 / SHARE)

    assert 0 == clock.waited


def test_steps_that_come_one_after_the_other_take_their_share() -> None:
    """A flood of questions leaves the time to what has to be placed; the first ones have a burst."""
    clock = Clock()
    budget = Budget(clock.now, clock.wait)
    for _ in range(1_000):
        with budget.step():
            clock.work(0.1)

    assert pytest.approx((1_000 * 0.1 - BURST_SECONDS) / SHARE, rel=0.02) == clock.seconds


def test_a_step_that_fails_is_counted() -> None:
    """It took its time all the same."""
    clock = Clock()
    budget = Budget(clock.now, clock.wait)

    def fail() -> None:
        with budget.step():
            clock.work(2 * BURST_SECONDS)
            raise ZeroDivisionError

    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            fail()

    assert pytest.approx(BURST_SECONDS / SHARE - 2 * BURST_SECONDS, rel=0.3) == clock.waited
