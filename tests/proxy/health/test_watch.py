"""When the watch over a scheduler does what; the time is that of the test."""

from __future__ import annotations

import threading

from support.proxy.listening import WAIT_SECONDS

from licorne import RequestError
from licorne.actors.services.log import Log
from licorne.proxy.health.watch import HealthWatch


class Watched:
    """A watch that notes what it does."""

    def __init__(self, interval_seconds: float = 30) -> None:
        self.done: list[str] = []
        self.interval_seconds = interval_seconds
        self.watch = HealthWatch(
            lambda: self.done.append("check"),
            lambda: self.done.append("record"),
            lambda: self.interval_seconds,
            Log(),
        )

    def at(self, now: float) -> tuple[list[str], float]:
        """Return what is done then, and in how many seconds something is due again."""
        self.done.clear()
        seconds = self.watch.step(now)
        return list(self.done), seconds


def test_the_first_check_is_at_the_start_and_others_follow() -> None:
    """The history begins a minute later."""
    watched = Watched()

    assert (["check"], 30) == watched.at(1000)
    assert ([], 10) == watched.at(1020)
    assert (["check"], 30) == watched.at(1030)
    assert (["check", "record"], 30) == watched.at(1060)


def test_an_interval_of_zero_ends_the_checks() -> None:
    """The first one is made all the same, and the history goes on."""
    watched = Watched(interval_seconds=0)

    assert (["check"], 60) == watched.at(0)
    assert (["record"], 60) == watched.at(60)


def test_another_interval_counts_from_the_last_check() -> None:
    """Also where it is due already."""
    watched = Watched()
    watched.at(0)
    watched.interval_seconds = 5

    assert (["check"], 5) == watched.at(10)


def test_what_fails_does_not_end_the_watch() -> None:
    """A scheduler that is being stopped, or a bug of ours."""
    for error in (RequestError("it has been stopped"), RuntimeError("a bug")):
        watched = Watched()

        def fails(error: Exception = error) -> None:
            raise error

        watched.watch._check = fails

        assert ([], 30) == watched.at(0)
        assert (["record"], 30) == watched.at(60)


def test_the_thread_ends_with_the_watch() -> None:
    """It begins with the first call of `wake`, and not before."""
    ran = threading.Event()
    watch = HealthWatch(ran.set, lambda: None, lambda: 30, Log())
    assert watch._thread is None

    watch.wake()
    assert ran.wait(WAIT_SECONDS)
    watch.close()

    assert watch._thread is not None
    assert not watch._thread.is_alive()
