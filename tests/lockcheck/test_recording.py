"""Traces: what a run writes, what survives a crash, and what is said of what does not."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from licorne.lockcheck import Condition, LockUsageError, RLock, RWLock
from licorne.lockcheck.command import main
from licorne.lockcheck.prediction import predict
from licorne.lockcheck.recording import recording
from licorne.lockcheck.trace import EventKind, TraceFileError
from licorne.lockcheck.trace_file import TraceWriter, read_trace
from licorne.lockcheck.witness import role_of

if TYPE_CHECKING:
    from pathlib import Path

REVERSED = """
import threading
from licorne.lockcheck import RLock, RWLock
a, b = RLock("a"), RWLock("b", key="x")
def one():
    with a, b.read():
        pass
def two():
    with b.write(), a:
        pass
threads = [threading.Thread(target=work) for work in (one, two)]
for thread in threads:
    thread.start()
    {after_start}
for thread in threads:
    thread.join()
"""


def some_events(path: Path, times: int, segment_bytes: int = 8192, segments: int = 8) -> None:
    """Record a lock that is taken so many times."""
    with recording(path, segment_bytes=segment_bytes, segments=segments):
        lock = RLock("a", key=1)
        for _ in range(times):
            with lock:
                pass


@pytest.mark.parametrize(("after_start", "code"), [("pass", 1), ("thread.join()", 0)])
def test_a_deadlock_that_did_not_happen_is_predicted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], after_start: str, code: int
) -> None:
    """Unless one thread begins after the other has ended."""
    program, trace = tmp_path / "program.py", tmp_path / "locks.lct"
    program.write_text(REVERSED.format(after_start=after_start))

    assert main(["record", "--trace", str(trace), str(program)]) == 0
    assert code == main(["analyze", str(trace)])
    assert f"{code} deadlocks predicted" in capsys.readouterr().out


def test_an_event_set_while_holding_orders_what_follows(tmp_path: Path) -> None:
    """Who waits for a signal comes after what came before the signal."""
    path = tmp_path / "locks.lct"
    with recording(path):
        a, b, done = RLock("a"), RLock("b"), threading.Event()

        def first() -> None:
            with a, b:
                pass
            done.set()

        thread = threading.Thread(target=first)
        thread.start()
        done.wait()
        with b, a:
            pass
        thread.join()

    assert predict(read_trace(path)).found == ()


def test_a_trace_says_lock_mode_and_place(tmp_path: Path) -> None:
    """As they can be found again in another run."""
    path = tmp_path / "locks.lct"
    with recording(path), RWLock("queue", key="root.a").read():
        pass
    trace = read_trace(path)
    took, left = (event for event in trace.events if event.kind in {EventKind.TOOK, EventKind.LEFT})

    assert (took.mode, left.mode) == ("R", "R")
    assert str(trace.locks[took.object]) == "queue root.a"
    assert "RWLock" in trace.sites[took.site].source
    assert trace.notices == ()


def test_a_condition_leaves_its_lock_and_takes_it_again(tmp_path: Path) -> None:
    """As often as it was held."""
    path = tmp_path / "locks.lct"
    with recording(path):
        lock = RLock("a")
        condition = Condition(lock)
        with lock, condition:
            condition.wait(0.001)
    trace = read_trace(path)
    (serial,) = (number for number, traced in trace.locks.items() if traced.name == "a")
    kinds = [event.kind for event in trace.events if event.object == serial]

    assert [EventKind.TOOK] * 2 + [EventKind.LEFT] * 2 == kinds[:4] == kinds[4:]


def test_a_recorder_that_fails_is_counted_and_the_program_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as when the disk is full."""

    def broken(*_: object) -> None:
        raise OSError("no space left")

    with recording(tmp_path / "locks.lct") as opened:
        lock = RLock("a")
        monkeypatch.setattr(TraceWriter, "event", broken)
        with lock:
            pass
        monkeypatch.undo()

    assert ["OSError: no space left"] * 2 == opened.faults


def test_a_torn_tail_is_cut_off(tmp_path: Path) -> None:
    """The rest is read, and a notice says where it ends."""
    path = tmp_path / "locks.lct"
    some_events(path, 3)
    whole, data = read_trace(path), bytearray(path.read_bytes())
    end = len(data.rstrip(b"\0"))
    data[end - 40 : end] = b"\xff" * 40  # the end of the trace, and what was left last
    path.write_bytes(data)
    torn = read_trace(path)

    assert torn.events == whole.events[: len(torn.events)]
    assert 0 < len(torn.events) < len(whole.events)
    assert torn.notices[0].startswith("the trace was not closed: it is cut off at offset ")


def test_a_full_ring_loses_its_beginning_and_says_so(tmp_path: Path) -> None:
    """What is left has its names."""
    path = tmp_path / "locks.lct"
    some_events(path, 1000, segments=2)
    trace = read_trace(path)

    assert "segments were written over" in trace.notices[0]
    assert {"a 1"} == {str(lock) for lock in trace.locks.values()}
    assert predict(trace).found == ()


def test_a_foreign_file_is_refused_with_the_offset(tmp_path: Path) -> None:
    """And so is one that was cut."""
    path = tmp_path / "locks.lct"
    path.write_bytes(b"something else, long enough for a head")
    with pytest.raises(TraceFileError, match="the magic at offset 0 is missing"):
        read_trace(path)
    assert main(["analyze", str(path)]) == 2
    some_events(path, 1)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(TraceFileError, match="the head at offset 16 says"):
        read_trace(path)


def test_a_ring_that_is_too_small_is_refused(tmp_path: Path) -> None:
    """It could not hold one event with its names."""
    with (
        pytest.raises(LockUsageError, match="1 segments of 8192 bytes is too small"),
        recording(tmp_path / "t", segment_bytes=8192, segments=1),
    ):
        pass


@pytest.mark.parametrize(
    ("name", "role"),
    [("Thread-3 (work)", "work"), ("Thread-3", "Thread"), ("pool-0_1", "pool"), ("MainThread", "MainThread")],
)
def test_a_role_has_no_numbers(name: str, role: str) -> None:
    """They differ from run to run."""
    assert role == role_of(name)
