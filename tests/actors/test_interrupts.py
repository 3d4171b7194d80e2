"""Ctrl-C on the main thread: it surfaces in the caller, and tears nothing apart."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from types import FrameType

import pytest
from support.waiting import WAIT_SECONDS

from licorne.actors.services.interrupts import Uninterrupted, run_uninterrupted, start_thread

VALUE: ContextVar[str] = ContextVar("VALUE", default="none")


class InterruptedError_(Exception):  # noqa: N801, N818 - the builtin of that name is something else
    """What the handler raises."""


@pytest.fixture(autouse=True)
def handler() -> Iterator[None]:
    """Have an interrupt raise an error of ours."""

    def interrupt(_: int, __: FrameType | None) -> None:
        raise InterruptedError_

    before = signal.signal(signal.SIGINT, interrupt)
    yield
    signal.signal(signal.SIGINT, before)


def test_what_is_whole_runs_elsewhere_and_its_result_comes_back() -> None:
    """With the caller's context, as a program's own log has it."""
    VALUE.set("the caller's")

    assert (True, "the caller's") == run_uninterrupted(
        lambda: (threading.current_thread() is not threading.main_thread(), VALUE.get())
    )


def test_what_is_whole_raises_in_the_caller() -> None:
    """Whatever it raises."""
    with pytest.raises(ZeroDivisionError):
        run_uninterrupted(lambda: 1 // 0)


def test_on_another_thread_it_runs_there() -> None:
    """No handler runs there, and a thread costs time."""
    ran: list[threading.Thread] = []
    thread = threading.Thread(target=lambda: ran.append(run_uninterrupted(threading.current_thread)))
    thread.start()
    thread.join(WAIT_SECONDS)

    assert [thread] == ran


def test_an_interrupt_ends_the_wait_and_not_what_is_waited_for() -> None:
    """The caller hears of it at once."""
    go, done = threading.Event(), threading.Event()

    def work() -> None:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        go.wait(WAIT_SECONDS)
        done.set()

    with pytest.raises(InterruptedError_):
        run_uninterrupted(work)
    assert not done.is_set()
    go.set()

    assert done.wait(WAIT_SECONDS)


def test_a_section_is_interrupted_at_its_end() -> None:
    """Also one inside another one: the outer one counts."""
    steps: list[str] = []

    def section() -> None:
        with Uninterrupted():
            with Uninterrupted():
                signal.raise_signal(signal.SIGINT)
                steps.append("inner")
            steps.append("outer")

    with pytest.raises(InterruptedError_):
        section()
    assert ["inner", "outer"] == steps
    with pytest.raises(InterruptedError_):
        signal.raise_signal(signal.SIGINT)


def test_a_second_interrupt_is_handled_at_once() -> None:
    """Who presses the keys again does not want to wait."""
    steps: list[str] = []

    def section() -> None:
        with Uninterrupted():
            signal.raise_signal(signal.SIGINT)
            steps.append("first")
            signal.raise_signal(signal.SIGINT)
            steps.append("second")

    with pytest.raises(InterruptedError_):
        section()
    assert ["first"] == steps


@pytest.mark.parametrize("handler_of_the_system", [signal.SIG_IGN, signal.SIG_DFL])
def test_a_handler_of_the_system_stays(handler_of_the_system: signal.Handlers) -> None:
    """It is no code of the interpreter, and tears nothing apart."""
    signal.signal(signal.SIGINT, handler_of_the_system)
    with Uninterrupted():
        assert handler_of_the_system is signal.getsignal(signal.SIGINT)


def test_where_no_thread_can_be_started_the_caller_does_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the end of the interpreter there are none, and a program may stop its scheduler then."""

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    ran: list[str] = []

    assert start_thread(lambda: ran.append("here"), "name") is None
    assert (["here"], 7) == (ran, run_uninterrupted(lambda: 7))


def test_an_interrupt_while_a_thread_starts_is_raised_when_it_has_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What `Thread.start` makes of an interrupt inside of it looks like an interpreter that starts none."""
    start = threading.Thread.start
    runs: list[str] = []
    done = threading.Event()

    def interrupted_start(thread: threading.Thread) -> None:
        start(thread)
        try:
            signal.raise_signal(signal.SIGINT)
        except InterruptedError_ as interrupt:
            raise RuntimeError("release unlocked lock") from interrupt

    def run() -> None:
        runs.append(threading.current_thread().name)
        done.set()

    monkeypatch.setattr(threading.Thread, "start", interrupted_start)
    with pytest.raises(InterruptedError_):
        start_thread(run, "a-thread")

    assert done.wait(WAIT_SECONDS)
    assert runs == ["a-thread"]
