"""The link to a resource manager: order, a thread of its own, congestion, its end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest
from support.waiting import WAIT_SECONDS, wait_until

from licorne.actors.services import rm_link
from licorne.actors.services.rm_link import RmLink
from licorne.model.values.messages import Announcement, NodesAnswered


class Buffered:
    """A buffer that counts its bursts.

    Attributes:
        free: whether it has room.
        bursts: how many have ended.
    """

    def __init__(self) -> None:
        self.free = True
        self.bursts = 0

    def has_room(self) -> bool:
        return self.free

    def begin_burst(self) -> None:
        """Begin."""

    def end_burst(self) -> None:
        self.bursts += 1


class Manager:
    """What is at the other end: remembers what it gets, and when it was relieved.

    Args:
        buffer: its buffer, if it has one.

    Attributes:
        got: the names of what it got, in order.
        reliefs: how much it had got whenever a congestion ended.
        react: called with each name, after it was noted.
    """

    def __init__(self, buffer: Buffered | None = None) -> None:
        self.got: list[str] = []
        self.threads: set[str] = set()
        self.reliefs: list[int] = []
        self.relieved = threading.Event()
        self.react: Callable[[str], object] = lambda _: None
        self.link = RmLink("test", self._deliver, self._on_congestion_end, buffer=buffer)

    def _deliver(self, announcement: Announcement) -> None:
        assert isinstance(announcement, NodesAnswered)
        (name,) = announcement.accepted
        self.got.append(name)
        self.threads.add(threading.current_thread().name)
        self.react(name)

    def _on_congestion_end(self) -> None:
        self.reliefs.append(len(self.got))
        self.relieved.set()

    def tell(self, *names: str) -> None:
        """Announce these, and have them delivered."""
        for name in names:
            self.link.announce(NodesAnswered((name,), ()))
        self.link.flush()


class Gate:
    """Keeps the first delivery inside until the test opens it."""

    def __init__(self, manager: Manager) -> None:
        self.open = threading.Event()
        self.reached = threading.Event()
        manager.react = self._hold
        manager.tell("gate")
        assert self.reached.wait(WAIT_SECONDS)

    def _hold(self, name: str) -> None:
        if name == "gate":
            self.reached.set()
            assert self.open.wait(WAIT_SECONDS)


@pytest.fixture
def manager() -> Iterator[Manager]:
    """Give a manager with a link, which is closed at the end."""
    manager = Manager()
    yield manager
    manager.link.close()


@pytest.fixture
def bound_8(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a link congested by eight announcements."""
    monkeypatch.setattr(rm_link, "BACKLOG_MAX", 8)


def names(count: int) -> list[str]:
    return [f"n{number}" for number in range(count)]


def test_announcements_are_delivered_in_order_on_a_thread_of_the_link(manager: Manager) -> None:
    """Also more of them than one batch takes; the thread has the RM's name."""
    manager.tell(*names(700))
    manager.link.close()

    assert names(700) == manager.got
    assert {"licorne-rm-test"} == manager.threads


def test_what_was_not_flushed_is_delivered_at_the_end() -> None:
    """To close loses nothing."""
    manager = Manager()
    manager.link.announce(NodesAnswered(("last",), ()))
    manager.link.close()

    assert ["last"] == manager.got


def test_who_announces_never_waits_for_the_manager(manager: Manager) -> None:
    """All that is announced meanwhile comes afterwards, in order."""
    gate = Gate(manager)
    manager.tell(*names(5))

    assert ["gate"] == manager.got
    gate.open.set()
    manager.link.close()
    assert ["gate", *names(5)] == manager.got


def test_a_callback_that_raises_is_counted(manager: Manager) -> None:
    """The next announcement is delivered all the same."""

    def fail(name: str) -> None:
        if name == "n1":
            raise ValueError("on purpose")

    manager.react = fail
    manager.tell(*names(3))
    manager.link.close()

    assert names(3) == manager.got
    assert 1 == manager.link.failures


def _begun(buffer: Buffered) -> Manager:
    """Return a manager whose link has begun: it takes what a thread that flushes delivers."""
    manager = Manager(buffer)

    def is_delivered_here() -> bool:
        manager.tell("probe")
        return threading.current_thread().name in manager.threads

    wait_until(is_delivered_here)
    manager.got.clear()
    manager.threads.clear()
    buffer.bursts = 0
    return manager


def test_a_manager_with_a_buffer_is_called_by_the_thread_that_flushes() -> None:
    """There is no hand-over, and all that is announced by then is one burst."""
    buffer = Buffered()
    manager = _begun(buffer)
    manager.tell(*names(3))

    assert (names(3), 1) == (manager.got, buffer.bursts)
    assert {threading.current_thread().name} == manager.threads
    manager.link.close()


def test_the_thread_that_flushes_does_not_wait_for_a_full_buffer() -> None:
    """The thread of the link delivers then, behind what came before."""
    buffer = Buffered()
    manager = _begun(buffer)
    manager.tell("first")
    buffer.free = False
    manager.tell(*names(3))
    manager.link.close()

    assert ["first", *names(3)] == manager.got
    assert {threading.current_thread().name, "licorne-rm-test"} == manager.threads
    assert 1 == buffer.bursts


# -------------------------------------------------------------------------------------- congestion


@pytest.mark.usefixtures("bound_8")
def test_a_link_is_congested_from_the_bound_on(manager: Manager) -> None:
    """One less is not enough; and what comes then is taken still."""
    gate = Gate(manager)
    manager.tell(*names(7))
    assert not manager.link.is_congested()
    manager.tell("eighth", "ninth")

    assert manager.link.is_congested()
    gate.open.set()
    manager.link.close()
    assert ["gate", *names(7), "eighth", "ninth"] == manager.got


def test_a_congestion_ends_when_half_is_delivered(manager: Manager, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not at once, lest it begin again at once; `on_congestion_end` is called, once."""
    monkeypatch.setattr(rm_link, "BACKLOG_MAX", 1000)
    gate = Gate(manager)
    manager.tell(*names(1000))
    assert manager.link.is_congested()
    seen: list[bool] = []
    manager.react = lambda _: seen.append(manager.link.is_congested())
    gate.open.set()
    assert manager.relieved.wait(WAIT_SECONDS)
    manager.link.close()

    (relief,) = manager.reliefs
    assert 500 <= relief < 1001
    assert [True] * (relief - 1) + [False] * (1001 - relief) == seen


@pytest.mark.usefixtures("bound_8")
def test_a_link_that_was_never_congested_reports_no_end_of_it(manager: Manager) -> None:
    """Below the bound nothing waits for it."""
    gate = Gate(manager)
    manager.tell(*names(7))
    assert not manager.link.is_congested()
    gate.open.set()
    manager.link.close()

    assert [] == manager.reliefs


@pytest.mark.usefixtures("bound_8")
def test_a_link_may_be_congested_again(manager: Manager) -> None:
    """Each congestion ends once."""
    for _ in range(2):
        manager.relieved.clear()
        gate = Gate(manager)
        manager.tell(*names(8))
        assert manager.link.is_congested()
        gate.open.set()
        assert manager.relieved.wait(WAIT_SECONDS)
        assert not manager.link.is_congested()

    assert 2 == len(manager.reliefs)


# ------------------------------------------------------------------------------------------ the end


def test_a_callback_may_close_the_link(manager: Manager) -> None:
    """It does not wait for itself, and the rest is delivered before the thread ends."""
    closed = threading.Event()

    def close(name: str) -> None:
        if name == "n0":
            manager.link.close()
            closed.set()

    manager.react = close
    manager.tell(*names(3))
    assert closed.wait(WAIT_SECONDS)
    manager.link.close()

    assert names(3) == manager.got


def test_a_closed_link_has_no_thread() -> None:
    """Also if it was closed twice."""
    before = set(threading.enumerate())
    manager = Manager()
    manager.link.close()
    manager.link.close()

    assert before == set(threading.enumerate())
