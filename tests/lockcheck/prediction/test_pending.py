"""Which part of a trace is searched for cycles: what can lie on one, and no more."""

from __future__ import annotations

import gc
from collections.abc import Iterable

import pytest

from licorne.lockcheck.commands.command import gc_paused
from licorne.lockcheck.findings.terms import Mode, RWPolicy
from licorne.lockcheck.prediction.prediction import PendingAcquisitions, predict
from licorne.lockcheck.prediction.trace_index import TraceIndex
from licorne.lockcheck.traces.trace import Event, EventKind, Trace, TracedExecution, TracedLock

Chain = tuple[int, tuple[tuple[int, "Mode"], ...]]


def chain(execution: int, *locks: int, mode: Mode = "W") -> Chain:
    """Return what an execution takes, each lock while it holds the ones before."""
    return execution, tuple((lock, mode) for lock in locks)


def trace_of(chains: Iterable[Chain], policy: RWPolicy | None = None) -> Trace:
    """Return the trace of executions that take their chains one after the other."""
    events = []
    for execution, locks in chains:
        events += [Event(EventKind.TOOK, execution, lock, mode) for lock, mode in locks]
        events += [Event(EventKind.LEFT, execution, lock, mode) for lock, mode in reversed(locks)]
    names = {event.object: TracedLock("lock", str(event.object), policy) for event in events}
    executions = {event.execution: TracedExecution(f"unit-{event.execution}", "unit") for event in events}
    return Trace(tuple(events), executions, names, {})


def wanted(chains: Iterable[Chain], policy: RWPolicy | None = None) -> list[tuple[int, int]]:
    """Return the executions and locks of the pending acquisitions that a trace leaves to be searched."""
    return [
        (pending.execution, pending.object)
        for pending in PendingAcquisitions(TraceIndex(trace_of(chains, policy))).all
    ]


def test_where_all_go_the_same_way_nothing_is_searched() -> None:
    """However many locks there are."""
    assert [] == wanted(chain(at % 3, 1 + at % 7, 10 + at, 100 + at % 5) for at in range(60))


def test_only_what_lies_on_a_cycle_is_searched() -> None:
    """Once for all events that are alike; what leads there, and what leads away, is left out."""
    chains = [chain(1, 1, 2, 3, 4), chain(1, 1, 2, 3, 4), chain(2, 3, 2), chain(3, 1, 4)]

    assert [(1, 3), (2, 2)] == wanted(chains)


def test_a_bare_writer_is_searched_where_readers_stand_behind_it() -> None:
    """With readers first it is nobody's obstacle."""
    readers = [chain(1, 1, 2, mode="R"), chain(2, 2, 1, mode="R")]
    chains = [*readers, chain(3, 1), chain(4, 2), chain(5, 9)]

    assert [(1, 2), (2, 1), (3, 1), (4, 2)] == wanted(chains, "writer")
    assert [(1, 2), (2, 1)] == wanted(chains, "reader")


@pytest.mark.parametrize(("mode", "together"), [("R", True), ("W", False)])
def test_two_can_stand_beside_each_other_unless_a_gate_keeps_one_out(mode: Mode, *, together: bool) -> None:
    """Readers of the gate pass it together."""
    chains: list[Chain] = [(1, ((9, mode), (1, "W"), (2, "W"))), (2, ((9, "R"), (2, "W"), (1, "W")))]
    trace = trace_of(chains, "reader")
    one, other = PendingAcquisitions(TraceIndex(trace)).all

    assert one.can_stand_beside(other) is other.can_stand_beside(one) is together
    assert int(together) == len(predict(trace).found)


def test_one_wrong_chain_among_thousands_is_found() -> None:
    """Without a look at every pair of what was wanted."""
    chains = [chain(at % 8, 1 + at % 2, 10 + at % 50, 100 + at % 997) for at in range(4000)]
    chains += [chain(1, 105, 15), chain(2, 1, 15, 105)]
    predictions = predict(trace_of(chains))

    assert not predictions.given_up
    assert {frozenset({15, 105})} == {
        frozenset(point.wanted.object for point in one.points) for one in predictions.found
    }


def test_the_garbage_collector_goes_on_after_the_pause() -> None:
    """Also after an error; and stays off where it was."""
    with pytest.raises(AssertionError, match="is off"), gc_paused():
        assert gc.isenabled(), "is off"
    assert gc.isenabled()
    gc.disable()
    try:
        with gc_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
