"""Traces of small lock programs: one random run on the real read/write lock."""

from __future__ import annotations

from typing import TYPE_CHECKING
from unittest import mock

from lock_oracle import Explorer

from licorne.lockcheck import rwlock
from licorne.lockcheck.trace import Event, EventKind, Trace, TracedLock, TracedUnit

if TYPE_CHECKING:
    import random

    from lock_oracle import Program, State

__all__ = ["trace_of"]


def trace_of(program: Program, chance: random.Random) -> Trace:
    """Run a program in a random schedule, to its end or until it is stuck, and return the trace."""
    explorer = Explorer(program)
    state: State = (tuple((0, False) for _ in explorer.steps), ((None, frozenset(), ()),) * explorer.count)
    events: list[Event] = []
    with mock.patch.object(rwlock, "get_ident", explorer.running):
        while following := list(explorer.following(state)):
            other = chance.choice(following)
            events += _events(explorer, state, other)
            state = other
    return Trace(
        tuple(events),
        {number: TracedUnit(f"t{number}", f"t{number}") for number in range(len(explorer.steps))},
        {number: TracedLock("lock", str(number), program.policy) for number in range(explorer.count)},
        {},
    )


def _events(explorer: Explorer, before: State, after: State) -> list[Event]:
    who = next(number for number, place in enumerate(before[0]) if after[0][number] != place)
    at, now = before[0][who][0], after[0][who][0]
    if at == now:
        return []  # it has begun to wait
    step = explorer.steps[who][at]
    kinds = {"join": EventKind.JOIN, "leave": EventKind.LEFT, "take": EventKind.TOOK}
    kind = kinds[step.what] if now == at + 1 else EventKind.FAILED
    return [Event(kind, who, step.take.lock, step.take.mode, step.take.attempt)]
