"""Writing and reading a trace: what comes in comes out, in the order in which it happened."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.lockcheck.interpreter_lock import EITHER_WAY, take_for_granted

from licorne.lockcheck import Lock
from licorne.lockcheck.findings.terms import Frame
from licorne.lockcheck.prediction.trace_index import TraceIndex
from licorne.lockcheck.sessions.recording import recording
from licorne.lockcheck.traces.trace import Event, EventKind, TracedExecution, TracedLock, read_trace
from licorne.lockcheck.traces.writer import TraceWriter

NUMBERS = st.integers(1, 1 << 40)
EVENTS = st.lists(
    st.builds(
        Event,
        st.sampled_from([kind for kind in EventKind if kind is not EventKind.END]),
        NUMBERS,
        NUMBERS,
        st.sampled_from(["R", "W"]),
        st.sampled_from(["block", "timed", "try"]),
        st.one_of(st.just(0), NUMBERS),
    )
)
TEXTS = st.text(max_size=20)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a trace is written, over and over."""
    return tmp_path_factory.mktemp("trace") / "locks.lct"


@given(events=EVENTS, name=TEXTS, key=st.none() | TEXTS, line=st.integers(1))
def test_what_is_written_is_read(
    path: Path, events: list[Event], name: str, key: str | None, line: int
) -> None:
    """Every event, in order, with all names."""
    execution, lock, site = (
        TracedExecution(name, "role"),
        TracedLock(name, key, None),
        Frame(name, line, "f", "source"),
    )

    things = {EventKind.JOIN: execution, EventKind.SIGNAL: None, EventKind.AWAIT: None}

    def write() -> None:
        writer = TraceWriter(path, 8192, 64)
        for event in events:
            thing = things.get(event.kind, lock)
            writer.event(event, lambda thing=thing, at=event.site: (execution, thing, site if at else None))  # type: ignore[misc] # bound
        writer.close()

    write()
    trace = read_trace(path)

    assert tuple(events) == trace.events
    assert trace.notices == ()
    assert dict.fromkeys({event.execution for event in events}, execution).items() <= trace.executions.items()
    assert {lock} >= set(trace.locks.values())
    assert dict.fromkeys({event.site for event in events} - {0}, site) == trace.sites


def test_more_names_than_a_segment_can_number_go_into_the_next(tmp_path: Path) -> None:
    """However large the segments are."""
    path = tmp_path / "locks.lct"
    writer = TraceWriter(path, 1 << 22, 2)
    execution = TracedExecution("unit", "unit")
    events = [Event(EventKind.SIGNAL, 1, number) for number in range(1, 70_001)]
    for event in events:
        writer.event(event, lambda: (execution, None, None))
    used_bytes = writer.used_bytes
    writer.close()

    assert used_bytes > 1 << 22
    assert tuple(events) == read_trace(path).events


@EITHER_WAY
def test_a_segment_that_was_left_takes_nothing_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, has_interpreter_lock: bool
) -> None:
    """Not even where it has room: what comes late must not stand before what came in time."""
    take_for_granted(monkeypatch, has_interpreter_lock=has_interpreter_lock)
    path = tmp_path / "locks.lct"
    writer = TraceWriter(path, 8192, 4)
    execution, lock = TracedExecution("unit", "unit"), TracedLock("x" * 200, None, None)
    write, (word,) = writer.event(Event(EventKind.TOOK, 1, 1), lambda: (execution, lock, None))
    number, now = 1, write
    while now == write:
        number += 1
        now, _ = writer.event(Event(EventKind.TOOK, 1, number), lambda: (execution, lock, None))

    with pytest.raises(ValueError, match="closed"):
        write(word)
    writer.close()
    assert [*range(1, number + 1)] == [event.object for event in read_trace(path).events]


@EITHER_WAY
def test_threads_that_exclude_each_other_do_so_in_the_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, has_interpreter_lock: bool
) -> None:
    """Also where a segment ends every few hundred events."""
    take_for_granted(monkeypatch, has_interpreter_lock=has_interpreter_lock)
    path, threads, times = tmp_path / "locks.lct", 4, 2_000
    with recording(path, segment_bytes=8192, segments=64) as opened:
        lock = Lock("lock")

        def work() -> None:
            for _ in range(times):
                with lock:
                    pass

        workers = [threading.Thread(target=work) for _ in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    trace = read_trace(path)
    order = [event.kind for event in trace.events if event.kind in {EventKind.TOOK, EventKind.LEFT}]

    assert ([], ()) == (opened.faults, trace.notices)
    assert [EventKind.TOOK, EventKind.LEFT] * threads * times == order
    assert threads * times == len(TraceIndex(trace).sections)
