"""The index of a trace knows each kind of event."""

from __future__ import annotations

import pytest

from licorne.lockcheck.prediction.trace_index import TraceIndex
from licorne.lockcheck.traces.trace import Event, EventKind, Trace, TracedExecution, TracedLock

KINDS = [kind for kind in EventKind if kind is not EventKind.END]


def indexed(kind: EventKind) -> TraceIndex:
    """Return the index of a trace with one event."""
    executions = {1: TracedExecution("first", "first"), 2: TracedExecution("second", "second")}
    return TraceIndex(Trace((Event(kind, 1, 2),), executions, {2: TracedLock("lock", None, None)}, {}))


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_event_is_indexed(kind: EventKind) -> None:
    """One that is added must say what it needs."""
    assert {1: [0]} == indexed(kind).of_execution


def test_a_kind_that_is_not_indexed_is_not_taken_for_a_join() -> None:
    """The end of a trace is no event of an execution."""
    with pytest.raises(AssertionError, match="event 0: END is unknown"):
        indexed(EventKind.END)
