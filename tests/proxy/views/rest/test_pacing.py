"""Readers get a share of the time while the scheduler works, and all of it otherwise."""

from __future__ import annotations

from contextlib import ExitStack

import anyio
import pytest

from licorne.proxy.views.rest.limits import BURST_SECONDS, SHARE, Pace


class Clock:
    """A time that passes when it is waited for, and work that is done by saying so."""

    def __init__(self) -> None:
        self.now = 0.0
        self.worked = 0.0
        self.waited = 0.0
        self.busy = True
        self.announced = 0
        self.pace = Pace(
            lambda: self.busy,
            lambda: self.announced,
            now=lambda: self.now,
            worked=lambda: self.worked,
            wait=self.wait,
            sleep=self.sleep,
        )

    async def wait(self, seconds: float) -> None:
        self.sleep(seconds)

    def sleep(self, seconds: float) -> None:
        assert self.waited < 1_000, "it waits without an end"
        self.waited += seconds
        self.now += seconds

    def step(self, seconds: float) -> None:
        """Work on another thread; this one, which is that of the event loop, does not."""
        with self.pace.step():
            self.worked += seconds
        self.worked -= seconds

    def turn(self) -> float:
        """Return how long a request waits for its turn."""
        before = self.waited
        assert anyio.run(self.pace.turn)
        return self.waited - before


def test_readers_wait_when_they_have_had_their_share() -> None:
    """They go on when the share has grown again; what is done for them on other threads counts."""
    clock = Clock()
    clock.turn()
    clock.step(BURST_SECONDS / 2)
    assert 0 == clock.turn()
    clock.step(0.3)

    had = 0.3 - BURST_SECONDS / 2
    assert had / SHARE - 0.01 < clock.turn() < had / SHARE + 0.1


def test_a_long_list_waits_between_its_steps_too() -> None:
    """A request that has begun takes no more than its share."""
    clock = Clock()
    for _ in range(20):
        clock.step(0.1)

    assert clock.waited > (19 * 0.1 - BURST_SECONDS) / SHARE - 0.1


def test_readers_of_a_scheduler_that_has_nothing_to_do_wait_no_longer_than_they_work() -> None:
    """Its time is theirs."""
    clock = Clock()
    clock.busy = False
    for _ in range(100):
        clock.now += 0.01
        clock.step(0.01)

    assert 0 == clock.waited


def test_a_scheduler_that_has_just_announced_something_counts_as_one_that_works() -> None:
    """It may only wait for its resource manager, which readers would keep from the processor."""
    clock = Clock()
    clock.busy = False
    for _ in range(100):
        clock.announced += 1
        clock.now += 0.01
        clock.step(0.01)
    assert clock.waited > 1
    clock.now += 10
    assert 0 == clock.turn()
    before = clock.waited
    for _ in range(100):
        clock.now += 0.01
        clock.step(0.01)

    assert before == clock.waited


def test_other_work_of_the_event_loop_does_not_keep_readers_out() -> None:
    """A program that embeds the application may have a loop with much else to do."""
    clock = Clock()
    for _ in range(10):
        clock.turn()
        clock.worked += 100.0
    clock.turn()

    assert clock.waited < 15.0


def test_a_step_is_charged_before_it_is_done() -> None:
    """Otherwise many would begin at once, before any of them has cost something."""
    clock = Clock()
    with ExitStack() as steps:
        for _ in range(3):
            steps.enter_context(clock.pace.step())

    assert clock.waited > 0.9 * BURST_SECONDS / SHARE


def test_short_steps_begin_side_by_side_when_long_ones_are_long_ago() -> None:
    """What a step is charged at first follows what steps took."""
    clock = Clock()
    for _ in range(100):
        clock.step(0.0)
    clock.now += 100.0
    before = clock.waited
    with ExitStack() as steps:
        for _ in range(100):
            steps.enter_context(clock.pace.step())

    assert before == clock.waited


@pytest.mark.parametrize("charged", [0.0, 10.0])
def test_nothing_waits_for_a_server_that_stops(charged: float) -> None:
    """It answers that it stops."""
    clock = Clock()
    clock.step(charged)
    clock.pace.is_closed = True
    clock.step(0.0)

    assert not anyio.run(clock.pace.turn)
    assert 0 == clock.waited
