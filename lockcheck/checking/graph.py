"""The learned graph: which lock was requested while which were held, by instance and by class.

A *dependency* is an action of one execution in one segment of its life: "held these, wanted that". It is
written down once. Bare acquisitions for writing count too where readers wait for waiting writers, since such
a writer may stand between two readers (docs/lockcheck.md, "Where two readers meet").
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final, final

from ..findings.terms import ClassEdge, Mode
from ..holding.chains import Acquisition, LockIdentity, Segment, TrieNode
from ..holding.runtime import LATCH
from ..holding.stacks import RawStack

OCCURRENCES_MAX: Final = 64
"""How many occurrences of an edge are kept, by execution and segment; further ones are only counted."""


@dataclass(frozen=True, slots=True)
class HeldLock:
    """A lock that was held, and where it had been taken."""

    acquisition: Acquisition
    stack: RawStack
    fresh: bool
    """Whether no other execution knew the lock."""


@dataclass(frozen=True, slots=True, eq=False)
class Dependency:
    """The locks that an execution held, and the one that it requested."""

    execution: int
    execution_name: str
    segment: Segment
    held: tuple[HeldLock, ...]
    """Outermost first."""
    wanted: Acquisition
    stack: RawStack
    fresh: bool
    """Whether no other execution knew the requested lock."""
    count: int = 0
    """How much the execution had done by then that others may know of (`knowledge.py`)."""

    @property
    def locks(self) -> tuple[HeldLock, ...]:
        """The held locks without ends, which only count as locks; outermost first."""
        return tuple(held for held in self.held if not held.acquisition.lock.ends)

    def mode_of(self, lock: LockIdentity) -> Mode | None:
        """Return the mode in which a lock was held; writing before reading."""
        modes = {held.acquisition.mode for held in self.held if held.acquisition.lock is lock}
        return "W" if "W" in modes else "R" if modes else None

    def held_fresh(self, lock: LockIdentity) -> bool:
        """Return whether a lock was held while no other execution knew it."""
        return any(held.fresh for held in self.held if held.acquisition.lock is lock)


@final
class EndIdentity(LockIdentity):
    """The identity of an end that is waited for, such as that of a thread: it counts as a lock until then."""

    __slots__ = ("_taken", "signal")

    ends = True

    def __init__(self, name: str, signal: str | None, taken: Sequence[Dependency]) -> None:
        super().__init__(name, None, reentrant=False, policy=None)
        self.signal = signal
        """The object of the wait, in words; `None` for the end of a thread."""
        self._taken = tuple(taken)

    def __str__(self) -> str:
        return self.name

    def needs(self, wanted: Acquisition) -> Iterator[Dependency]:
        """Yield what is taken before this end, which is requested, and before the ends that it waits for."""
        held = HeldLock(wanted, (), fresh=False)
        for one in self._taken:
            yield replace(one, held=(held, *one.held))
            if isinstance(one.wanted.lock, EndIdentity):
                yield from one.wanted.lock.needs(one.wanted)


@final
class Graph:
    """Dependencies, indexed by what they hold and want, and the edges between classes."""

    def __init__(self) -> None:
        self.holding: dict[int, list[Dependency]] = defaultdict(list)
        """By lock."""
        self.writing: dict[int, list[Dependency]] = defaultdict(list)
        """Those that want a lock for writing, by lock."""
        self.classes: Counter[ClassEdge] = Counter()
        """How many edges of each kind were learned."""
        self.examples: dict[ClassEdge, Dependency] = {}
        """The first dependency of each."""
        self._leading: dict[str, list[tuple[int, ClassEdge]]] = defaultdict(list)
        """The edges that begin at each class, with the number at which each was learned."""
        self.sites: dict[ClassEdge, set[RawStack]] = defaultdict(set)
        """Where the second lock is requested, one frame each."""
        self.waited: set[ClassEdge] = set()
        """Those for which an execution waited, or could have, for locks that others knew."""
        self.endless: set[ClassEdge] = set()
        """Those of them that had no limit of time."""
        self.unexamined = 0
        """How many occurrences were left out."""
        self._after: dict[int, dict[int, None]] = defaultdict(dict)
        """The locks that were requested while one was held, by lock."""
        self._has_cycle = False
        """Whether a cycle of locks was found, of whatever threads and modes."""
        self._known: set[tuple[object, ...]] = set()
        self._segments: Counter[tuple[object, ...]] = Counter()
        self._wanting: dict[int, list[Dependency]] = defaultdict(list)
        self._locks: dict[int, LockIdentity] = {}
        self._sweep_at = 1024

    def __len__(self) -> int:
        return sum(map(len, self._wanting.values()))

    def add(self, dependency: Dependency) -> tuple[bool, list[ClassEdge]]:
        """Write a dependency down.

        Returns:
            Whether it may close a cycle of locks that was not looked at yet, and the edges of classes that
            are new with it.
        """
        edge_key = (
            tuple(held.acquisition for held in dependency.held),
            dependency.wanted,
            dependency.stack[:1],
        )
        known = (*edge_key, dependency.execution, dependency.segment.number, dependency.fresh)
        if known in self._known:
            return False, []
        if self._segments[edge_key] >= OCCURRENCES_MAX:
            self.unexamined += 1
            return False, []
        self._segments[edge_key] += 1
        self._known.add(known)
        wanted = dependency.wanted.lock
        self._wanting[wanted.serial].append(dependency)
        if dependency.wanted.mode == "W":
            self.writing[wanted.serial].append(dependency)
        for held in dependency.held:
            self.holding[held.acquisition.lock.serial].append(dependency)
            self._locks[held.acquisition.lock.serial] = held.acquisition.lock
        self._locks[wanted.serial] = wanted
        grows = self._add_pairs(dependency)
        return grows or self._has_cycle, list(self._add_classes(dependency))

    def is_known_well(self, held: Sequence[TrieNode], wanted: Acquisition, stack: RawStack) -> bool:
        """Return whether a lock was requested here, with these held, so often that no more counts."""
        edge_key = tuple(one.acquisition for one in reversed(held)), wanted, stack[:1]
        if self._segments[edge_key] < OCCURRENCES_MAX:
            return False
        self.unexamined += 1
        return True

    def _add_pairs(self, dependency: Dependency) -> bool:
        """Note which lock was requested while which were held; return whether any pair of them is new.

        Without a new pair, and without an earlier cycle, no cycle exists: so to nest locks at further places
        needs no search.
        """
        wanted, grows = dependency.wanted.lock.serial, False
        for held in dependency.held:
            after = self._after[held.acquisition.lock.serial]
            if wanted not in after:
                after[wanted] = None
                grows = True
        return grows

    def site_counts(self) -> dict[str, int]:
        """Return how many places in the code make each edge."""
        with LATCH:
            return {str(edge): len(sites) for edge, sites in self.sites.items()}

    def reaches(self, start: int, targets: set[int]) -> bool:
        """Return whether a path of edges leads from a requested lock to a held one, in a step or more."""
        pending, seen = [start], {start}
        while pending:
            for after in self._after.get(pending.pop(), ()):
                if after in targets:
                    self._has_cycle = True
                    return True
                if after not in seen:
                    seen.add(after)
                    pending.append(after)
        return False

    def class_paths(self, start: str) -> dict[str, ClassEdge]:
        """Return the last edge of a shortest path from one class to each other one that it leads to."""
        last: dict[str, ClassEdge] = {}
        layer = [start]
        while layer:
            found: list[str] = []
            for _, edge in sorted(chain.from_iterable(self._leading.get(name, ()) for name in layer)):
                if edge.wanted not in last and edge.wanted != start:
                    last[edge.wanted] = edge
                    found.append(edge.wanted)
            layer = found
        return last

    def _add_classes(self, dependency: Dependency) -> Iterator[ClassEdge]:
        wanted, site = dependency.wanted, dependency.stack[:1]
        for held in dependency.held:
            if held.acquisition.lock is wanted.lock or held.acquisition.lock.ends or wanted.lock.ends:
                continue  # two permits of one semaphore; ends have no class
            edge = ClassEdge(held.acquisition.lock.name, held.acquisition.mode, wanted.lock.name, wanted.mode)
            self.classes[edge] += 1
            self.sites[edge].add(site)
            if wanted.attempt != "try" and not dependency.fresh:
                self.waited.add(edge)
                if wanted.attempt == "block":
                    self.endless.add(edge)
            if edge not in self.examples:
                self._leading[edge.held].append((len(self.examples), edge))
                self.examples[edge] = dependency
                yield edge

    def sweep(self) -> list[object]:
        """Forget dependencies of locks that are gone, if there are many: nothing can wait for them now.

        Returns:
            The forgotten objects: the caller drops them when it does not hold the latch.
        """
        if len(self._locks) <= self._sweep_at:
            return []
        gone = {serial for serial, lock in self._locks.items() if not lock.alive}
        forgotten: list[object] = [self._locks.pop(serial) for serial in gone]
        for index in (self.holding, self.writing, self._wanting):
            for serial in list(index):
                forgotten += [one for one in index[serial] if _touches(one, gone)]
                index[serial] = [one for one in index[serial] if not _touches(one, gone)]
                if serial in gone:
                    del index[serial]
        for serial in gone:
            self._after.pop(serial, None)
        for after in self._after.values():
            for serial in gone & after.keys():
                del after[serial]
        dead = {known for known in self._known if _names(known, gone)}
        self._known -= dead
        edge_keys = [edge_key for edge_key in self._segments if _names(edge_key, gone)]
        for edge_key in edge_keys:
            del self._segments[edge_key]
        self._sweep_at = max(1024, 2 * len(self._locks))
        return [forgotten, dead, edge_keys]


def _touches(dependency: Dependency, gone: set[int]) -> bool:
    acquisitions = [held.acquisition for held in dependency.held] + [dependency.wanted]
    return any(acquisition.lock.serial in gone for acquisition in acquisitions)


def _names(edge_key: tuple[object, ...], gone: set[int]) -> bool:
    held, wanted = edge_key[0], edge_key[1]
    acquisitions: list[Acquisition] = [*held, wanted]  # type: ignore[misc, list-item] # as `add` puts them together
    return any(acquisition.lock.serial in gone for acquisition in acquisitions)
