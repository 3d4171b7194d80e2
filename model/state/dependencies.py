"""Applications that wait for the end of others, or for their turn in an array.

One that waits has no place in the order of its leaf, so that no walk comes to it, however many there are. The
end of the last one that it waits for, or of an element of its array, gives it its place.

The elements of an array take turns in the order in which they became ready: as many as its limit may run,
and each keeps its turn until it ends. The limit is that of the element that named one last. What runs
already when it comes waits for nothing, and has its turn.
"""

from __future__ import annotations

from typing import Final, final

from ..applications.effects import ApplicationState
from ..queues.application_entry import ApplicationEntry, wake
from ..queues.tree import QueueTree
from ..resources.comparisons import is_zero
from ..values.dependencies import ARRAY_TAG, NO_TERMS, ApplicationOutcome, Terms, Waits, terms_of

ENDED_MAX: Final = 100_000
"""How many of the last ends are known: who waits for an older one waits until it comes again."""


@final
class ArrayTurns:
    """The elements of an array that have not ended."""

    __slots__ = ("elements", "has_failed", "limit", "running", "waiting")

    def __init__(self) -> None:
        self.limit: int | None = None
        self.elements: dict[str, ApplicationEntry] = {}
        self.running: dict[str, None] = {}
        """Those that may run."""
        self.waiting: dict[str, ApplicationEntry] = {}
        """Those whose turn has not come, the next one first."""
        self.has_failed = False

    def places(self) -> int | None:
        """Return how many more may run, `None` without a limit; negative if more run already."""
        return None if self.limit is None else self.limit - len(self.running)

    def is_full_for(self, limit: int | None) -> bool:
        """Return whether a new element, which may name another limit, must wait for its turn."""
        limit = limit or self.limit
        return limit is not None and len(self.running) + len(self.waiting) >= limit


@final
class Dependencies:
    """What the applications of a partition wait for. Owned by the partition.

    Args:
        tree: Its queues.
    """

    def __init__(self, tree: QueueTree) -> None:
        self.arrays: dict[str, ArrayTurns] = {}
        self._tree = tree
        self._ended: dict[str, ApplicationOutcome] = {}
        """The outcomes of applications and arrays that have ended, the latest last."""
        self._waiters: dict[str, dict[str, ApplicationEntry]] = {}
        """By the name of what they wait for: the applications."""

    def waits_of(self, terms: Terms) -> Waits | None:
        """Return what a new application with these terms would wait for, `None` for nothing."""
        if terms is NO_TERMS:
            return None
        waits = Waits(terms)
        for name, wanted in terms.names.items():
            outcome = self._ended.get(name)
            if outcome is None:
                waits.unmet[name] = None
            elif wanted not in {None, outcome}:
                waits.never = waits.never or name
        array = self.arrays.get(terms.array)
        is_full = array is not None and array.is_full_for(terms.limit)
        return waits if is_full or not waits.is_ready else None

    def cycle_of(self, application_id: str, terms: Terms) -> list[str]:
        """Return the names of a cycle in which an application would wait for itself, empty without one."""
        if not terms.names:
            return []
        waits_for = {application_id: "", **({terms.array: application_id} if terms.array else {})}
        reached = [*waits_for]
        for name in reached:
            if name in terms.names:
                cycle = [name]
                while cycle[-1] != application_id:
                    cycle.append(waits_for[cycle[-1]])
                return [application_id, *cycle]
            for waiter in self._waiters.get(name, {}).values():
                assert waiter.waits is not None, "it has waiters only while they wait: please report"
                for further, before in ((waiter.application_id, name), (waiter.waits.terms.array, "")):
                    if further and further not in waits_for:
                        waits_for[further] = before or waiter.application_id
                        reached.append(further)
        return []

    def enter(self, entry: ApplicationEntry) -> None:
        """Have a new application wait for what its tags name; a forced one may have bad ones."""
        name, terms = entry.application_id, terms_of(entry.tags)
        self._ended.pop(name, None)
        if terms is NO_TERMS or not isinstance(terms, Terms):
            return
        entry.waits = self.waits_of(terms)
        if terms.array:
            array = self.arrays.setdefault(terms.array, ArrayTurns())
            self._ended.pop(terms.array, None)
            array.elements[name] = entry
            array.limit = terms.limit or array.limit
            if entry.waits is None:
                array.running[name] = None
            elif entry.waits.is_ready:
                array.waiting[name] = entry
            self._fill(array)
        if entry.waits is not None:
            for other in entry.waits.unmet:
                self._waiters.setdefault(other, {})[name] = entry

    def start(self, entry: ApplicationEntry) -> None:
        """Have an application that runs wait for nothing; if its array is full, others lose their turns."""
        name = entry.application_id
        assert entry.waits is not None, "it waits: please report"
        array_name = entry.waits.terms.array
        array = self.arrays.get(array_name)
        self._stop_waiting(entry)
        if array is None:
            return
        array.waiting.pop(name, None)
        array.running[name] = None
        for other_name in reversed([*array.running]):
            other = array.elements[other_name]
            if (array.places() or 0) >= 0:
                break
            if (
                other is not entry
                and is_zero(other.facts.allocated)
                and not other.facts.placeholder_allocated
            ):
                del array.running[other_name]
                array.waiting = {other_name: other, **array.waiting}
                other.waits = Waits(Terms({}, array_name))
                other.queue.entries.refresh(other, anew=True)

    def give_up(self, entry: ApplicationEntry) -> None:
        """Let nothing wake an application that broke; it has not ended, and keeps its turn if it has one."""
        if entry.waits is not None:
            self._forget_waiter(entry)
            array = self.arrays.get(entry.waits.terms.array)
            if array is not None:
                array.waiting.pop(entry.application_id, None)
            entry.waits = None

    def end(self, entry: ApplicationEntry) -> None:
        """Give those their places that have waited for an application, or for a turn of it, alone."""
        name = entry.application_id
        has_failed = entry.facts.state in {ApplicationState.FAILING, ApplicationState.FAILED}
        outcome = entry.outcome or (ApplicationOutcome.FAILED if has_failed else ApplicationOutcome.OK)
        self.give_up(entry)
        self.note(name, outcome)
        array_name = entry.tags.get(ARRAY_TAG, "")
        array = self.arrays.get(array_name)
        if array is None or array.elements.get(name) is not entry:
            return
        del array.elements[name]
        array.running.pop(name, None)
        array.has_failed |= outcome is ApplicationOutcome.FAILED
        self._fill(array)
        if not array.elements:
            del self.arrays[array_name]
            self.note(array_name, ApplicationOutcome.FAILED if array.has_failed else ApplicationOutcome.OK)

    def note(self, name: str, outcome: ApplicationOutcome) -> None:
        """Note how an application or an array has ended."""
        self._ended.pop(name, None)
        self._ended[name] = outcome
        if len(self._ended) > ENDED_MAX:
            del self._ended[next(iter(self._ended))]
        for waiter in self._waiters.pop(name, {}).values():
            waits = waiter.waits
            assert waits is not None, "it waits for that: please report"
            del waits.unmet[name]
            if waits.terms.names[name] not in {None, outcome}:
                waits.never = waits.never or name
            if not waits.is_ready:
                continue
            array = self.arrays.get(waits.terms.array)
            if array is None:
                self._stop_waiting(waiter)
            else:
                array.waiting[waiter.application_id] = waiter
                self._fill(array)

    def _fill(self, array: ArrayTurns) -> None:
        """Give the next ones of an array their turns."""
        while array.waiting and (array.limit is None or len(array.running) < array.limit):
            name = next(iter(array.waiting))
            array.running[name] = None
            self._stop_waiting(array.waiting.pop(name))

    def _stop_waiting(self, entry: ApplicationEntry) -> None:
        self._forget_waiter(entry)
        entry.waits = None
        entry.queue.entries.refresh(entry, anew=True)
        self._tree.refresh(entry.queue)
        wake(entry.queue)

    def _forget_waiter(self, entry: ApplicationEntry) -> None:
        assert entry.waits is not None, "the caller has looked"
        for other in entry.waits.unmet:
            waiters = self._waiters[other]
            del waiters[entry.application_id]
            if not waiters:
                del self._waiters[other]
