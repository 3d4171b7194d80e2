"""The least reordering of a trace that has given events: the first events of each execution.

Events are added until it is *sync-preserving*: of two critical sections that exclude each other the first one
is left before the second one is taken, if both are there; and whatever an event waited for is there too.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import final

from ..traces.trace import Event
from .trace_index import Section, TraceIndex


@final
class Reordering:
    """How many events of each execution are there; events are only added."""

    def __init__(self, index: TraceIndex) -> None:
        self._index = index
        self._counts = dict.fromkeys(index.of_execution, 0)
        self._wanted: dict[int, int] = {}
        self._open: dict[int, dict[int, Section]] = {}
        """For each lock and execution the last section that is there."""
        self._last: dict[tuple[int, str], int] = {}
        """For each lock and mode the last event that takes it."""
        for at in range(index.given):
            self._want(at)

    def include_before(self, at: int) -> None:
        """Require all events of an execution before a given one."""
        execution = self._index.events[at].execution
        self._wanted[execution] = max(self._wanted.get(execution, 0), self._index.position[at])

    def includes(self, at: int) -> bool:
        """Return whether an event is there."""
        return self._index.position[at] < self._counts[self._index.events[at].execution]

    def events(self) -> tuple[Event, ...]:
        """Return all events that are there, in order, except for the `given` ones of the index."""
        index = self._index
        places = sorted(
            at for execution, count in self._counts.items() for at in index.of_execution[execution][:count]
        )
        return tuple(index.events[at] for at in places if at >= index.given)

    def close(self) -> bool:
        """Add what is missing; return `False` if the trace does not have it."""
        while self._wanted:
            execution, count = self._wanted.popitem()
            before = self._counts[execution]
            if count <= before:
                continue
            self._counts[execution] = count
            mine = self._index.of_execution[execution]
            end = mine[count] if count < len(mine) else len(self._index.events)
            if not self._add_needs(execution, mine[before], end):
                return False
            if not all(self._exclude(lock) for lock in self._enter_sections(execution, mine[before], end)):
                return False
        return True

    def _want(self, at: int) -> None:
        execution = self._index.events[at].execution
        if not self.includes(at):
            self._wanted[execution] = max(self._wanted.get(execution, 0), self._index.position[at] + 1)

    def _add_needs(self, execution: int, start: int, end: int) -> bool:
        """Require what the events of an execution between two places waited for."""
        index = self._index
        waited = index.needing.get(execution, ())
        for at in waited[bisect_left(waited, start) : bisect_left(waited, end)]:
            needs = index.needs[at]
            if needs is None:
                return False
            for need in needs:
                self._want(need)
        return True

    def _enter_sections(self, execution: int, start: int, end: int) -> set[int]:
        """Note the last sections of an execution between two places, by lock and mode; return their locks.

        They are searched from the end, until one of each lock and mode is found: the execution left all
        earlier ones itself.
        """
        index = self._index
        taken = index.taken.get(execution, ())
        kinds = index.kinds_of_sections.get(execution, ())
        seen: set[tuple[int, str]] = set()
        locks: set[int] = set()
        for place in range(bisect_left(taken, end) - 1, bisect_left(taken, start) - 1, -1):
            section = index.sections[taken[place]]
            kind = section.lock, section.mode
            if kind in seen:
                continue
            seen.add(kind)
            if section.lock not in locks:
                locks.add(section.lock)
                self._open.setdefault(section.lock, {})[execution] = section
            self._last[kind] = max(self._last.get(kind, -1), section.taken)
            if len(seen) == len(kinds):
                break
        return locks

    def _exclude(self, lock: int) -> bool:
        """Require the end of every section of a lock that is followed by one that it excludes."""
        last_write = self._last.get((lock, "W"), -1)
        last_any = max(last_write, self._last.get((lock, "R"), -1))
        for section in self._open[lock].values():
            if section.taken < (last_any if section.mode == "W" else last_write):
                if section.left is None:
                    return False
                self._want(section.left)
        return True
