"""Traces of small lock programs, from one random run on the real read/write lock, and what they predict."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from support.lockcheck.lock_oracle import Explorer, State, Step, in_order, run_in_turn
from support.lockcheck.lock_programs import Program

from licorne.lockcheck.prediction.prediction import Prediction
from licorne.lockcheck.sessions.recording import recording
from licorne.lockcheck.traces.trace import Event, EventKind, Trace, TracedExecution, TracedLock, read_trace


def in_turn(program: Program) -> Trace:
    """Run a program a thread after the other, those first that others wait for, and return the trace."""
    order = in_order(program)

    def next_of(explorer: Explorer, state: State) -> State | None:
        after = (explorer.stepped(state, who) for who in order)
        return next((one for one in after if one is not None), None)

    return _run(program, next_of)


def trace_of(program: Program, chance: random.Random) -> Trace:
    """Run a program in a random schedule, to its end or until it is stuck, and return the trace."""

    def any_of(explorer: Explorer, state: State) -> State | None:
        following = explorer.following(state)
        return chance.choice(following) if following else None

    return _run(program, any_of)


def _run(program: Program, choose: Callable[[Explorer, State], State | None]) -> Trace:
    explorer = Explorer(program)
    state = explorer.start
    events: list[Event] = []
    while (after := choose(explorer, state)) is not None:
        events += _events(explorer, state, after)
        state = after
    return Trace(
        tuple(events),
        {number: TracedExecution(f"t{number}", f"t{number}") for number in range(len(explorer.steps))},
        {number: TracedLock("lock", str(number), policy) for number, policy in enumerate(explorer.policies)},
        {},
    )


def recorded(program: Program, path: Path) -> Trace:
    """Run a program once, a thread after the other, under a recorder; return what it has written.

    Threads and locks have the numbers of the program, and signals are left out: nobody waits for any.
    """
    with recording(path, segment_bytes=1 << 15, segments=2) as opened:
        run_in_turn(program, opened)
    trace = read_trace(path)
    kinds = {EventKind.TOOK, EventKind.FAILED, EventKind.LEFT, EventKind.JOIN}
    return Trace(
        tuple(_numbered(event, trace) for event in trace.events if event.kind in kinds),
        {number: TracedExecution(str(number), str(number)) for number in range(len(program.threads))},
        {int(str(lock.key)): lock for lock in trace.locks.values()},
        {},
    )


def _numbered(event: Event, trace: Trace) -> Event:
    number = (
        trace.executions[event.object].name if event.kind is EventKind.JOIN else trace.locks[event.object].key
    )
    return replace(
        event, execution=int(trace.executions[event.execution].name), object=int(str(number)), site=0
    )


def _events(explorer: Explorer, before: State, after: State) -> list[Event]:
    who = next(number for number, place in enumerate(before[0]) if after[0][number] != place)
    at, now = before[0][who][0], after[0][who][0]
    step = explorer.steps[who][at]
    if at == now or (step.what == "take" and _refused(explorer, step)):
        return []  # it has begun to wait, or got an error
    kinds = {"join": EventKind.JOIN, "leave": EventKind.LEFT, "take": EventKind.TOOK}
    kind = kinds[step.what] if now == at + 1 else EventKind.FAILED
    attempt = step.take.attempt if step.what == "take" else "block"
    return [Event(kind, who, step.take.lock, step.take.mode, attempt)]


def _refused(explorer: Explorer, step: Step) -> bool:
    return step.again and explorer.policies[step.take.lock] is not None and step.take.attempt != "try"


def comes_true(program: Program, prediction: Prediction) -> bool:
    """Run the witness of a prediction; return whether all that it names then wait for ever.

    However the other threads go on: every schedule from there is looked at.
    """
    explorer = Explorer(program)
    state: State | None = explorer.start
    for event in prediction.witness:
        state = _after(explorer, state, event)
    for point in sorted(prediction.points, key=lambda point: point.wanted.mode == "R"):
        state = _waiting(explorer, state, point.wanted.execution)
    if state is None:
        return False
    places = state[0]
    return all(
        places[point.wanted.execution] == later[0][point.wanted.execution]
        for later, _ in explorer.reached(state)
        for point in prediction.points
    )


def _after(explorer: Explorer, state: State | None, event: Event) -> State | None:
    """Return the state after an event; none where it cannot happen."""
    while state is not None:
        after = explorer.stepped(state, event.execution)
        done = _events(explorer, state, after) if after is not None else []
        if done:
            return after if done == [event] else None
        state = after
    return None


def _waiting(explorer: Explorer, state: State | None, who: int) -> State | None:
    """Return the state in which a thread waits; none where it need not."""
    while state is not None:
        after = explorer.stepped(state, who)
        if after is None:
            return state if state[0][who][0] < len(explorer.steps[who]) else None
        state = after if not _events(explorer, state, after) else None
    return None
