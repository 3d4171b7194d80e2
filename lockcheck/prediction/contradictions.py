"""Where a recorded run contradicts a cycle: what it waited for kept two of the threads apart, each time.

That proves nothing for other runs: a condition may have been notified by another thread, and two threads may
have put items into a queue. So it counts only for a finding that no steered run could reach either.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, product
from typing import Final, NamedTuple, final

from ..findings.evidence import Rung
from ..findings.findings import Finding, SchedulingPoint, WitnessLock
from ..traces.trace import NOWHERE, Event, EventKind, Trace
from .trace_index import TraceIndex

TIMES_MAX: Final = 64
"""How often a step may be taken in a run that is looked at."""


class _Step(NamedTuple):
    """One time that an execution took a step of a cycle: the events that took what it held and wanted."""

    held: int
    wanted: int


def contradictions_of(trace: Trace, findings: Iterable[Finding]) -> dict[str, str]:
    """Return, by fingerprint, why the cycles at R2 among some findings did not come about in a recorded run.

    Args:
        trace: the whole run; one whose beginning is missing says nothing.
        findings: those of the same run, of which several may have the same fingerprint.

    Raises:
        TraceFileError: the trace contradicts itself.
    """
    cycles = [one for one in findings if one.rung is Rung.R2 and _is_of_locks(one.points)]
    if not cycles or trace.late:
        return {}
    search = _OrderSearch(trace, TraceIndex(trace))
    found: dict[str, str] = {}
    possible = set()
    for cycle in cycles:
        reason = search.reason(cycle.points)
        if reason is None:
            possible.add(cycle.fingerprint)
        else:
            found[cycle.fingerprint] = reason
    return {fingerprint: reason for fingerprint, reason in found.items() if fingerprint not in possible}


def _is_of_locks(points: Sequence[SchedulingPoint]) -> bool:
    return bool(points) and all(isinstance(point.wanted, WitnessLock) for point in points)


@final
class _OrderSearch:
    """The order in which executions took the steps of cycles, by what they waited for."""

    def __init__(self, trace: Trace, index: TraceIndex) -> None:
        self._trace = trace
        self._index = index
        self._known: dict[int, Mapping[int, int]] = {}
        """For each event that waited for others: how many events of each execution came before."""
        self._note_order()

    def _note_order(self) -> None:
        index = self._index
        now: dict[int, dict[int, int]] = {}
        at_signal: dict[int, Mapping[int, int]] = {}
        for at, event in enumerate(index.events):
            if event.kind is EventKind.SIGNAL:
                at_signal[at] = dict(now.get(event.execution, {}))
            elif event.kind in {EventKind.AWAIT, EventKind.JOIN}:
                mine = now.setdefault(event.execution, {})
                for need in index.needs[at] or ():
                    other = index.events[need].execution
                    before = at_signal.get(need, now.get(other, {}))
                    for execution, count in {**before, other: index.position[need] + 1}.items():
                        mine[execution] = max(mine.get(execution, 0), count)
                self._known[at] = dict(mine)

    def reason(self, points: Sequence[SchedulingPoint]) -> str | None:
        """Return what kept two of the steps apart; `None` if any two could be taken at a time."""
        steps = [
            self._steps(point, point.shared_lock(before))
            for point, before in zip(points, (points[-1], *points), strict=False)
        ]
        if not all(steps) or any(len(taken) > TIMES_MAX for taken in steps):
            return None
        return next(filter(None, (self._apart(one, other) for one, other in combinations(steps, 2))), None)

    def _steps(self, point: SchedulingPoint, held: WitnessLock | None) -> list[_Step]:
        wanted = point.wanted
        if held is None or not isinstance(wanted, WitnessLock):
            return []
        index = self._index
        return [
            _Step(outer, at)
            for at in index.sections
            if self._is(index.events[at], wanted)
            for outer in index.held[at]
            if self._is(index.events[outer], held)
        ]

    def _is(self, event: Event, lock: WitnessLock) -> bool:
        """Return whether an event takes a lock of this class, in this mode, at this place."""
        return (
            event.mode == lock.mode
            and self._trace.locks[event.object].name == lock.lock
            and lock.place.is_at(self._trace.sites.get(event.site, NOWHERE), same_source=True)
        )

    def _apart(self, one: Sequence[_Step], other: Sequence[_Step]) -> str | None:
        """Return what kept two steps apart, each time that two executions took them."""
        reason = None
        events = self._index.events
        for first, second in product(one, other):
            if events[first.wanted].execution == events[second.wanted].execution:
                continue
            found = self._between(first, second) or self._between(second, first)
            if found is None:
                return None
            reason = found
        return reason

    def _between(self, first: _Step, second: _Step) -> str | None:
        """Return what the second execution waited for, after which alone it could begin its step."""
        index = self._index
        earlier, later = index.events[first.wanted].execution, index.events[second.held].execution
        for at in index.needing.get(later, ()):
            if at > second.held:
                return None
            if self._known.get(at, {}).get(earlier, 0) > index.position[first.wanted]:
                return self._said(earlier, later, index.events[at])
        return None

    def _said(self, earlier: int, later: int, event: Event) -> str:
        first, second = (self._trace.executions[number].name for number in (earlier, later))
        thing = self._trace.things.get(event.object) if event.kind is EventKind.AWAIT else None
        what = thing.text if thing is not None else "what another thread did"
        return (
            f"in the recorded run {second} only began after {first} had done its part: it waited for {what} "
            f"at {self._trace.sites.get(event.site, NOWHERE)}"
        )
