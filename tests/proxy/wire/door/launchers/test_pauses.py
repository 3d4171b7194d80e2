"""How long the next worker of a partition is waited for."""

from __future__ import annotations

import threading

import pytest

from licorne import LicorneError
from licorne.proxy.wire.door.workers import GrowingPauses


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


def test_each_worker_that_is_lost_soon_makes_the_pause_longer() -> None:
    """The first one is replaced at once; the pause doubles, up to 5 s."""
    pauses, found = GrowingPauses(Clock()), []
    for _ in range(8):
        found.append(pauses.next_seconds("a"))
        pauses.started("a")
        pauses.failed("a")

    assert found == [0.0, 0.0, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0]


def test_workers_that_do_not_start_make_the_pause_longer_too() -> None:
    """A worker before them that did well does not count again with each of them."""
    clock = Clock()
    pauses, found = GrowingPauses(clock), []
    pauses.started("a")
    for _ in range(4):
        clock.seconds += 60
        pauses.failed("a")
        found.append(pauses.next_seconds("a"))

    assert found == [0.0, 0.2, 0.4, 0.8]


def test_a_worker_that_did_well_is_replaced_at_once() -> None:
    """Whatever was before it."""
    clock = Clock()
    pauses = GrowingPauses(clock)
    for _ in range(5):
        pauses.failed("a")
    pauses.started("a")
    clock.seconds += 10
    pauses.failed("a")

    assert pauses.next_seconds("a") == 0.0


def test_a_partition_does_not_wait_for_the_workers_of_another_one() -> None:
    """Each has its own count."""
    pauses = GrowingPauses(Clock())
    for _ in range(5):
        pauses.failed("a")

    assert (pauses.next_seconds("b"), pauses.next_seconds("a")) == (0.0, 1.6)


def test_who_gives_up_does_not_wait() -> None:
    """Also where there is no pause."""
    given_up = threading.Event()
    given_up.set()

    with pytest.raises(LicorneError, match="the worker of partition 'a' was given up before it started"):
        GrowingPauses().wait("a", given_up)
