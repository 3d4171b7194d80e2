"""An index of a trace: what each execution did, held and needed, and the critical sections of each lock.

Events, results of tasks, items of queues, notifications: what ends such a wait is a signal of another
execution. So an execution that waits for one waits for those that still have to signal it. It is stuck in a
reordering if the thing is not signalled there, and if all that could still signal it are stuck too.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import final

from ..findings.terms import RWPolicy
from ..traces.trace import Event, EventKind, Trace, TracedThing, TraceFileError

_TOOK, _LEFT, _FAILED, _SIGNAL, _AWAIT = (
    EventKind.TOOK,
    EventKind.LEFT,
    EventKind.FAILED,
    EventKind.SIGNAL,
    EventKind.AWAIT,
)
"""Looked up once: members of an enumeration are slow to access, and there are millions of events."""


@dataclass(slots=True)
class Section:
    """A critical section: from taking a lock to leaving it."""

    execution: int
    lock: int
    mode: str
    taken: int
    """The place in the trace."""
    left: int | None = None
    """`None` if the trace ends before."""
    depth: int = 1


@final
class TraceIndex:
    """The index of a trace for the prediction.

    If the beginning of a trace was overwritten, it leaves locks that it never took. Those were held when it
    begins: `given` events before all others take them, and every reordering contains these.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        before = _held_before(trace.events) if trace.late else ()
        self.given = len(before)
        self.events = (*before, *trace.events)
        self.of_execution: dict[int, list[int]] = defaultdict(list)
        self.position: list[int] = []
        """The place of each event among those of its execution."""
        self.held: dict[int, tuple[int, ...]] = {}
        """For each event that takes, joins or awaits, the events that took what its execution holds."""
        self.sections: dict[int, Section] = {}
        self.inner: set[int] = set()
        """Events that take a lock again that their execution holds: they never wait."""
        self.waits: dict[int, int] = {}
        """The waits without a limit for things besides locks and ends of threads, by the event before which
        each begins: for a condition, what takes its lock again."""
        self.needs: dict[int, tuple[int, ...] | None] = {}
        """The events that must come before an event; `None` if they are not known."""
        self.needing: dict[int, list[int]] = defaultdict(list)
        """The events of each execution that have needs."""
        self.taken: dict[int, list[int]] = defaultdict(list)
        """The events of each execution that begin sections."""
        self.kinds_of_sections: dict[int, set[tuple[int, str]]] = defaultdict(set)
        """The locks and modes of the sections of each execution."""
        self._open: dict[tuple[int, int, str], Section] = {}
        self._holding: dict[int, list[int]] = defaultdict(list)
        self._holders: dict[int, dict[int, Section]] = defaultdict(dict)
        self._signals: dict[int, dict[int, int]] = defaultdict(dict)
        self._last_signals: dict[int, int] = {}
        """The place of the last signal of each execution."""
        self._begun: dict[tuple[int, int], tuple[int, tuple[int, ...]]] = {}
        self.things = Things(self.events, {} if trace.late else trace.things)
        for at, event in enumerate(self.events):
            mine = self.of_execution[event.execution]
            self.position.append(len(mine))
            mine.append(at)
            if event.kind is _TOOK:
                self._took(at, event)
            elif event.kind is _LEFT:
                self._left(at, event)
            else:
                self._waited(at, event)
        for at in self.needs:
            self.needing[self.events[at].execution].append(at)
        for at, section in self.sections.items():
            self.taken[section.execution].append(at)
            self.kinds_of_sections[section.execution].add((section.lock, section.mode))

    def policy(self, lock: int) -> RWPolicy | None:
        """Return the policy of a lock."""
        return self._trace.locks[lock].policy

    def _waited(self, at: int, event: Event) -> None:
        if event.kind is _FAILED:
            blocking = [one.taken for one in self._against(event)]
            self.needs[at] = tuple(blocking[:1]) if blocking else None
        elif event.kind is _SIGNAL and event.attempt == "try":
            self._begun[event.execution, event.object] = at, tuple(self._holding.get(event.execution, ()))
        elif event.kind is _SIGNAL:
            self._signals[event.object][event.execution] = self._last_signals[event.execution] = at
            self.things.note(at, event)
        elif event.kind is _AWAIT:
            self.needs[at] = tuple(self._signals.get(event.object, {}).values())
            self.things.note(at, event)
            self._waited_for_thing(at, event)
        else:
            assert event.kind is EventKind.JOIN, f"event {at}: {event.kind.name} is unknown: please report"
            self.held[at] = tuple(self._holding.get(event.execution, ()))
            self.needs[at] = tuple(self.of_execution.get(event.object, ())[-1:])

    def _waited_for_thing(self, at: int, event: Event) -> None:
        """Note a wait without a limit; one for a condition begins when its lock is released.

        A wait for one of several results may begin long before: with what was held all the time, and not
        before a signal, for which others may wait.
        """
        kind = self.things.kind(event)
        if kind == "wakeups":
            mine = self.of_execution[event.execution]
            before = mine[-2] if len(mine) > 1 else -1
            if before in self.held and self.events[before].kind is _TOOK:
                self.waits[before] = at
        elif kind is not None:
            name = event.execution, event.object
            holding = self._holding.get(event.execution, [])
            begun, held = self._begun.pop(name, (at, tuple(holding)))
            if kind == "flag" and self._last_signals.get(event.execution, -1) > begun:
                begun, held = at, tuple(holding)
            self.waits[begun] = at
            self.held[begun] = tuple(one for one in held if one in holding)

    def _took(self, at: int, event: Event) -> None:
        name = event.execution, event.object, event.mode
        if event.object not in self._trace.locks:
            raise TraceFileError(f"event {at - self.given} takes lock {event.object}, which has no name")
        again = self._open.get(name)
        if again is not None:
            again.depth += 1
            self.inner.add(at)
            return
        holders = self._holders[event.object]
        if holders and self._against(event):
            raise TraceFileError(
                f"event {at - self.given} takes {self._trace.locks[event.object]} while others hold it"
            )
        section = Section(event.execution, event.object, event.mode, at)
        self._open[name] = self.sections[at] = section
        holding = self._holding[event.execution]
        self.held[at] = tuple(holding)
        holding.append(at)
        holders[event.execution] = section

    def _left(self, at: int, event: Event) -> None:
        name = event.execution, event.object, event.mode
        section = self._open.get(name)
        if section is None:
            self._taken_away(event)
            return
        section.depth -= 1
        if section.depth == 0:
            section.left = at
            del self._open[name]
            self._holding[event.execution].remove(section.taken)
            self._holders[event.object].pop(event.execution, None)

    def _taken_away(self, event: Event) -> None:
        """Forget the holder of an exclusive lock that another execution releases; that section has no end."""
        if self.policy(event.object) is None:
            for section in self._holders.pop(event.object, {}).values():
                self._holding[section.execution].remove(section.taken)
                self._open.pop((section.execution, section.lock, section.mode), None)

    def _against(self, event: Event) -> list[Section]:
        """Return the sections that keep an event from taking its lock."""
        return [
            one
            for one in self._holders.get(event.object, {}).values()
            if "W" in {one.mode, event.mode} and one.execution != event.execution
        ]


def _held_before(events: tuple[Event, ...]) -> tuple[Event, ...]:
    """Return events that take the locks that were held when a trace begins."""
    depths: dict[tuple[int, int, str], int] = {}
    before: list[Event] = []
    for event in events:
        name = event.execution, event.object, event.mode
        if event.kind is _TOOK:
            depths[name] = depths.get(name, 0) + 1
        elif event.kind is _LEFT:
            if depths.get(name, 0):
                depths[name] -= 1
            else:
                before.append(Event(EventKind.TOOK, event.execution, event.object, event.mode))
    return tuple(before)


@final
class Things:
    """The signals on each thing, and what takes its items."""

    def __init__(self, events: Sequence[Event], things: Mapping[int, TracedThing]) -> None:
        self._events = events
        self._things = things
        self.signals: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        """For each thing and execution the places of the signals that end waits."""
        self._changes: dict[int, list[int]] = defaultdict(list)
        """For each thing the places of all signals, and of what takes items."""
        self._unseen: dict[int, int] = defaultdict(int)
        """How many items each queue had before the first that was recorded."""
        self._left: dict[int, int] = defaultdict(int)

    def note(self, at: int, event: Event) -> None:
        """Note a signal, or what went on after one."""
        thing = self._things.get(event.object)
        if thing is None:
            return
        if event.kind is EventKind.SIGNAL and event.mode == "W":
            self.signals[event.object][event.execution].append(at)
            self._left[event.object] += 1
        elif thing.kind == "items" and (event.kind is EventKind.SIGNAL or event.mode != "R"):
            return
        elif thing.kind == "items":
            if self._left[event.object] <= 0:
                self._unseen[event.object] += 1
            self._left[event.object] -= 1
        elif event.kind is not EventKind.SIGNAL:
            return
        self._changes[event.object].append(at)

    def kind(self, event: Event) -> str | None:
        """Return how signals end the wait of an event; `None` if it is not a wait without a limit."""
        thing = self._things.get(event.object)
        return thing.kind if thing is not None and event.attempt == "block" else None

    def signallers(self, thing: int) -> Mapping[int, Sequence[int]]:
        """Return the places of the signals on a thing, by execution."""
        return self.signals.get(thing, {})

    def is_signalled(self, thing: int, begun: int, includes: Callable[[int], bool]) -> bool:
        """Return whether a wait for a thing is over in a reordering.

        Args:
            thing: what is waited for.
            begun: the place from which on it is waited for.
            includes: returns whether an event is part of the reordering.
        """
        kind = self._things[thing].kind
        changes = self._changes.get(thing, [])
        if kind == "wakeups":
            return any(
                includes(at) for at in changes[bisect_left(changes, begun) :] if self._events[at].mode == "W"
            )
        if kind == "flag":
            last = next((at for at in reversed(changes) if includes(at)), None)
            return last is not None and self._events[last].mode == "W"
        left = self._unseen.get(thing, 0)
        for at in changes:
            if includes(at):
                left += 1 if self._events[at].kind is EventKind.SIGNAL else -1
        return left > 0

    def may_be_signalled(self, thing: int, stuck: Collection[int], includes: Callable[[int], bool]) -> bool:
        """Return whether an execution that is not stuck has a signal on a thing that is still to come."""
        return any(
            not includes(places[-1])
            for execution, places in self.signallers(thing).items()
            if execution not in stuck
        )

    def is_due(self, thing: int, execution: int, at: int) -> bool:
        """Return whether an execution signals a thing after a place."""
        places = self.signallers(thing).get(execution)
        return bool(places) and places is not None and places[-1] > at
