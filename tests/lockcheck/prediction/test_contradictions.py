"""What a recorded run says against a cycle: its executions waited for each other between their steps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from licorne.lockcheck.findings.findings import Finding, SchedulingPoint, SourcePlace, WitnessLock
from licorne.lockcheck.findings.terms import Frame, Kind, Rung
from licorne.lockcheck.prediction.predicted_findings import TIMES_MAX, contradictions_of
from licorne.lockcheck.traces.trace import Event, EventKind, Trace, TracedExecution, TracedLock, TracedThing

LOCKS = {1: TracedLock("a", None, None), 2: TracedLock("b", None, None)}
SITE = Frame("p.py", 1, "f", "with a, b:")
PLACE = SourcePlace("p.py", "f", "with a, b:", 1)
WAKEUP = 7


def nest(execution: int, outer: int, inner: int) -> list[Event]:
    """Return the events of an execution that takes two locks, one under the other."""
    took, left = EventKind.TOOK, EventKind.LEFT
    return [
        Event(took, execution, outer, site=1),
        Event(took, execution, inner, site=1),
        Event(left, execution, inner),
        Event(left, execution, outer),
    ]


def signal(execution: int, thing: int = WAKEUP) -> Event:
    """Return what ends waits for a thing."""
    return Event(EventKind.SIGNAL, execution, thing)


def wait(execution: int, thing: int = WAKEUP) -> Event:
    """Return what goes on after signals."""
    return Event(EventKind.AWAIT, execution, thing, site=1)


def trace_of(events: Iterable[Event]) -> Trace:
    """Return the trace of some events, of executions 1 to 4."""
    names = {number: TracedExecution(f"t{number}", "t") for number in range(1, 5)}
    things = {WAKEUP: TracedThing("a notification", "wakeups")}
    return Trace(tuple(events), names, LOCKS, {1: SITE}, things=things)


def cycle() -> Finding:
    """Return what the learned graph says: one takes b under a, the other a under b."""
    a, b = (WitnessLock(number, LOCKS[number].name, None, "W", PLACE) for number in (1, 2))
    points = (SchedulingPoint("t1", "t", (a,), b), SchedulingPoint("t2", "t", (b,), a))
    return Finding(Rung.R2, Kind.CYCLE, "a cycle", (), fingerprint="c", points=points)


def test_a_wait_between_the_steps() -> None:
    """The reason names both executions, what was waited for, and where."""
    found = contradictions_of(trace_of([*nest(1, 1, 2), signal(1), wait(2), *nest(2, 2, 1)]), [cycle()])
    assert found == {
        "c": "in the recorded run t2 only began after t1 had done its part: it waited for a notification at "
        "p.py:1 in f: with a, b:"
    }


ONE, OTHER, THIRD = nest(1, 1, 2), nest(2, 2, 1), nest(3, 2, 1)
WAITS = [signal(1), wait(2)]
"""The other execution goes on only after the first one."""


@pytest.mark.parametrize(
    ("events", "contradicted"),
    [
        pytest.param(
            [*ONE, signal(1, 8), wait(3, 8), signal(3), wait(2), *OTHER],
            True,
            id="who waits knows what those knew that it waited for",
        ),
        pytest.param([*ONE, *OTHER], False, id="one came first, but not because the other waited"),
        pytest.param([signal(1), *ONE, wait(2), *OTHER], False, id="the signal came before the step"),
        pytest.param([*ONE, signal(1), *OTHER, wait(2)], False, id="the wait came after the step"),
        pytest.param(
            [signal(3), *ONE, signal(1, 8), wait(3, 8), wait(2), *OTHER],
            False,
            id="a third execution gave the signal before it knew of the step",
        ),
        pytest.param(
            [*ONE, *WAITS, *OTHER, *ONE], False, id="the step was taken again without a wait between"
        ),
        pytest.param(
            [*ONE, *WAITS, *OTHER, *THIRD], False, id="a third execution takes the step without a wait"
        ),
        pytest.param(
            [*ONE, *WAITS, wait(3), *OTHER, *THIRD], True, id="a third execution takes the step after a wait"
        ),
        pytest.param(
            [*ONE * (TIMES_MAX + 1), *WAITS, *OTHER], False, id="a step was taken too often to remember each"
        ),
    ],
)
def test_a_wait_between_all_steps_contradicts_a_cycle(events: list[Event], *, contradicted: bool) -> None:
    """Each time that both steps were taken, the second one waited for the first."""
    assert contradicted == ("c" in contradictions_of(trace_of(events), [cycle()]))


def test_what_a_trace_says_nothing_of() -> None:
    """One whose beginning is missing, places that it does not have, and findings that are no such cycle."""
    trace = trace_of([*nest(1, 1, 2), signal(1), wait(2), *nest(2, 2, 1)])
    elsewhere = replace(SITE, function="g")
    assert not contradictions_of(replace(trace, late=True), [cycle()])
    assert not contradictions_of(replace(trace, sites={1: elsewhere}), [cycle()])
    assert not contradictions_of(trace, [replace(cycle(), rung=Rung.R3), replace(cycle(), points=())])


def test_all_that_have_a_fingerprint_are_contradicted() -> None:
    """Or none is: they are one finding."""
    trace = trace_of([*nest(1, 1, 2), signal(1), wait(2), *nest(2, 2, 1)])
    other = replace(cycle(), points=tuple(replace(point, held=()) for point in cycle().points))
    assert not contradictions_of(trace, [cycle(), other])
