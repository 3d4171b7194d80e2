"""Things that executions of a trace wait for without a limit, besides locks and ends of threads.

Events, results of tasks, items of queues, notifications: what ends such a wait is a signal of another
execution. So an execution that waits for one waits for those that still have to signal it. It is stuck in a
reordering if the thing is not signalled there, and if all that could still signal it are stuck too.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import final

from ..traces.trace import Event, EventKind, TracedThing


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
        """Return how signals end the wait of an event; `None` if it is no wait without a limit."""
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
