"""Pending acquisitions: what executions of a trace want while they hold locks, and which others block them.

Only those that can lie on a cycle are kept. Edges lead from a lock that is held to the one that is requested,
from the end of an execution, for which others wait in a join, to all that the execution wants, and from a
thing that others wait for to all that an execution wants before it signals that. Most of
a trace lies on no cycle. So the cost of the search depends not on the length of the trace, but on how much
of it can be part of a cycle.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias, final

from ..findings.evidence import Mode
from ..traces.trace import EventKind
from .trace_index import TraceIndex

_Target: TypeAlias = "tuple[EventKind, int]"


@final
class PendingAcquisition:
    """What an execution wants while it holds locks, and at which events; equal events share one."""

    __slots__ = ("events", "execution", "held", "kind", "mode", "number", "object", "written")

    def __init__(
        self, execution: int, kind: EventKind, thing: int, mode: Mode, held: frozenset[tuple[int, Mode]]
    ) -> None:
        self.execution = execution
        self.kind = kind
        self.object = thing
        self.mode = mode
        self.held = frozenset(lock for lock, _ in held)
        self.written = frozenset(lock for lock, how in held if how == "W")
        """The locks of `held` that are held for writing."""
        self.events: list[int] = []
        self.number = 0

    @property
    def target(self) -> tuple[EventKind, int]:
        """The lock, the execution or the thing that is waited for."""
        return self.kind, self.object

    def can_stand_beside(self, other: PendingAcquisition) -> bool:
        """Return whether two executions can hold their locks at the same time."""
        return (
            self.execution != other.execution
            and self.written.isdisjoint(other.held)
            and other.written.isdisjoint(self.held)
        )


@final
class PendingAcquisitions:
    """All pending acquisitions that can lie on a cycle, in the order of their first events."""

    def __init__(self, index: TraceIndex) -> None:
        self._index = index
        every = _all_pending(index)
        awaited = {pending.target for pending in every if pending.kind is not EventKind.TOOK}
        blocked = {pending: set(self._blocked_by(pending, awaited)) for pending in every}
        on_cycles = _on_cycles(
            {(thing, pending.target) for pending, things in blocked.items() for thing in things}
        )
        self.all = [
            pending
            for pending in every
            if pending.target in on_cycles
            and (not on_cycles.isdisjoint(blocked[pending]) or self._may_stand_between(pending))
        ]
        self._holding: dict[int, list[PendingAcquisition]] = {}
        self._writing: dict[int, list[PendingAcquisition]] = {}
        self._of_execution: dict[int, list[PendingAcquisition]] = {}
        for number, pending in enumerate(self.all):
            pending.number = number
            self._of_execution.setdefault(pending.execution, []).append(pending)
            if self._may_stand_between(pending):
                self._writing.setdefault(pending.object, []).append(pending)
            for lock in pending.held:
                self._holding.setdefault(lock, []).append(pending)

    def blockers(self, pending: PendingAcquisition) -> Iterator[PendingAcquisition]:
        """Yield the pending acquisitions that block another one while their executions wait there."""
        if pending.kind is EventKind.JOIN:
            yield from (
                other
                for other in self._of_execution.get(pending.object, ())
                if other.execution != pending.execution
            )
            return
        if pending.kind is EventKind.AWAIT:
            for execution in self._index.things.signallers(pending.object):
                if execution != pending.execution:
                    yield from (
                        other
                        for other in self._of_execution.get(execution, ())
                        if self._index.things.is_due(pending.object, execution, other.events[0])
                    )
            return
        lock, reads = pending.object, pending.mode == "R"
        for other in self._holding.get(lock, ()):
            if other.execution != pending.execution and (not reads or lock in other.written):
                yield other
        if reads:
            yield from (
                other for other in self._writing.get(lock, ()) if other.execution != pending.execution
            )

    def _blocked_by(self, pending: PendingAcquisition, awaited: set[_Target]) -> Iterator[_Target]:
        """Yield the locks, ends and things that others cannot have while an execution waits."""
        yield from ((EventKind.TOOK, lock) for lock in pending.held)
        yield from {(EventKind.JOIN, pending.execution)} & awaited
        for kind, thing in awaited:
            if kind is EventKind.AWAIT and self._index.things.is_due(
                thing, pending.execution, pending.events[0]
            ):
                yield kind, thing

    def _may_stand_between(self, pending: PendingAcquisition) -> bool:
        """Return whether it is of a writer that makes readers wait while it waits."""
        return (
            pending.kind is EventKind.TOOK
            and pending.mode == "W"
            and self._index.policy(pending.object) == "writer"
        )


def _all_pending(index: TraceIndex) -> list[PendingAcquisition]:
    """Return all that executions waited for, or would have waited for if it had not been free."""
    events = index.events
    pending_acquisitions: dict[tuple[object, ...], PendingAcquisition] = {}
    for at, taken in index.held.items():
        event = events[at]
        if at < index.given or at in index.inner:
            continue
        held = frozenset([(events[one].object, events[one].mode) for one in taken])
        waits = [event] if event.kind in {EventKind.TOOK, EventKind.JOIN} else []
        if at in index.waits:
            waits.append(events[index.waits[at]])
        for one in waits:
            if one.attempt != "block":
                continue
            key = one.execution, one.kind, one.object, one.mode, held
            pending = pending_acquisitions.get(key)
            if pending is None:
                pending = pending_acquisitions[key] = PendingAcquisition(*key)
            pending.events.append(at)
    return list(pending_acquisitions.values())


def _on_cycles(edges: Iterable[tuple[_Target, _Target]]) -> set[_Target]:
    """Return what lies on a cycle of edges, or between two cycles: what has an edge on both sides."""
    left = set(edges)
    while True:
        inside = {before for before, _ in left} & {after for _, after in left}
        still = {(before, after) for before, after in left if before in inside and after in inside}
        if len(still) == len(left):
            return inside
        left = still
