"""What executions took before others wait for an end that comes by them, and who may know that they did.

An execution counts what it takes, and the ends that come by it. What it gives to others, such as an item of a
queue, has these counts, of its own and of all that it knows of; who gets that knows them from then on. Where
it is not seen who gets it, as the notification of a condition, everybody may know.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias, cast, final

from ..findings.foreign import ByIdentity
from ..holding.chains import Acquisition, Execution
from ..holding.runtime import Interpreter, fails_open, runtime
from ..holding.stacks import RawStack
from .graph import Dependency

if TYPE_CHECKING:
    from .watch import Watch

TAKEN_MAX: Final = 64
"""How many acquisitions of an execution are remembered, and how often each of them."""
EXECUTIONS_MAX: Final = 256
"""Of how many executions in a session: all that comes after one of them keeps that it does."""
Counts: TypeAlias = "Mapping[int, int]"
"""By the numbers of executions, how much of what they did is known."""
NOTHING: Final[Counts] = {}


@final
class Notes:
    """What an execution took in a session, and what it knows of others."""

    __slots__ = ("count", "given", "got", "got_from", "known", "taken", "times", "version")

    def __init__(self) -> None:
        self.taken: list[Dependency] = []
        self.count = 0
        """How many locks it took, and how many ends came by it."""
        self.given = 0
        """The count when it last gave something to others."""
        self.known: dict[int, int] = {}
        self.times: Counter[tuple[Acquisition, RawStack]] = Counter()
        """How often each acquisition was remembered, by its place."""
        self.version = 0
        """A number that grows with what it knows, of itself and others."""
        self.got_from: _Given | None = None
        self.got = 0
        """The version of what it got something from last."""


@final
class _Given:
    """What those know that get something from a thing."""

    __slots__ = ("by", "counts", "of", "version")

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}
        self.version = 0
        """A number that grows with it."""
        self.by: Notes | None = None
        self.of = 0
        """The version of what the last one knew who gave something."""


@final
class Knowledge:
    """What executions of a session took, and who may know that."""

    def __init__(self) -> None:
        self._notes: Final[ByIdentity[Notes]] = ByIdentity()
        self._executions = 0
        """Of how many executions there were notes, also of those that are over."""
        self._given: Final[ByIdentity[_Given]] = ByIdentity()
        """What is known by those that get something from a thing."""
        self._public: dict[int, int] = {}
        """What everybody may know."""

    def has_room(self, execution: Execution, wanted: Acquisition, place: RawStack) -> bool:
        """Return whether another acquisition of an execution, at a place in the code, would be remembered."""
        known = self._notes.get(execution)
        if known is None:
            return self._executions < EXECUTIONS_MAX
        if known.times[wanted, place] >= TAKEN_MAX:
            return False
        return len(known.taken) < TAKEN_MAX or known.taken[0].count <= known.given

    def note_taken(self, execution: Execution, dependency: Dependency) -> None:
        """Remember an acquisition of an execution; the oldest one goes that others may know."""
        known = self._of(execution)
        if known is not None:
            known.count += 1
            known.version += 1
            known.times[dependency.wanted, dependency.stack[:1]] += 1
            if len(known.taken) >= TAKEN_MAX:
                del known.taken[0]
            known.taken.append(replace(dependency, count=known.count))

    def note_come(self, execution: Execution) -> tuple[int, int]:
        """Count an end that has come by an execution; return by which, and the count."""
        known = self._notes.get(execution)
        if known is None:
            return execution.serial, 0
        known.count += 1
        known.version += 1
        return execution.serial, known.count

    def taken_by(self, execution: Execution) -> Sequence[Dependency]:
        """Return what an execution took that not everybody may know, as far as that is remembered."""
        known = self._notes.get(execution)
        if known is None:
            return ()
        public = self._public.get(execution.serial, 0)
        return tuple(one for one in known.taken if one.count > public)

    def known_by(self, execution: Execution) -> Counts:
        """Return what an execution knows of itself and others."""
        known = self._notes.get(execution)
        if known is None:
            return NOTHING
        return {**known.known, execution.serial: known.count}

    def follows(self, execution: Execution) -> bool:
        """Return whether it is noted what an execution knows, which is not so if there are too many."""
        return self._of(execution) is not None

    def passes_on(self, execution: Execution) -> Counts:
        """Return what an execution knows, and note that others may know it too."""
        known = self._notes.get(execution)
        if known is not None:
            known.given = known.count
        return self.known_by(execution)

    def learns(self, execution: Execution, counts: Counts) -> None:
        """Note that an execution knows more."""
        known = self._of(execution) if counts else None
        if known is not None:
            known.version += _add(known.known, counts)

    @fails_open(None)
    def gives(self, execution: Execution, thing: object) -> None:
        """Note that those who get something from a thing know what an execution knows."""
        known = self._notes.get(execution)
        if known is None:
            return
        known.given = known.count
        given = self._given.get(thing)
        if given is None:
            given = _Given()
            self._given.put(thing, given)
        if given.by is not known or given.of != known.version:  # else it has given the same before
            given.by, given.of = known, known.version
            given.version += _add(given.counts, self.known_by(execution))

    @fails_open(None)
    def gets(self, execution: Execution, thing: object) -> None:
        """Note that an execution got something from a thing."""
        given = self._given.get(thing)
        if given is None:
            return
        known = self._of(execution)
        if known is not None and (known.got_from is not given or known.got != given.version):
            known.got_from, known.got = given, given.version
            known.version += _add(known.known, given.counts)

    def publish(self, execution: Execution) -> None:
        """Note that everybody may know what an execution knows."""
        _add(self._public, self.passes_on(execution))

    def is_known(self, execution: Execution, other: int, count: int) -> bool:
        """Return whether an execution knows so much of another one, if only because too many are there."""
        known = self._of(execution)
        return known is None or known.known.get(other, 0) >= count

    def is_public(self, other: int, count: int) -> bool:
        """Return whether everybody may know so much of an execution."""
        return self._public.get(other, 0) >= count

    def _of(self, execution: Execution) -> Notes | None:
        known = self._notes.get(execution)
        if known is None and self._executions < EXECUTIONS_MAX:
            known = Notes()
            self._notes.put(execution, known)
            self._executions += 1
            thread = threading._active.get(Interpreter.thread_number())  # type: ignore[attr-defined] # noqa: SLF001 - unlike current_thread(), it makes none
            if thread is not None and runtime.threads.get(thread) is execution:
                given = self._given.get(thread)
                _add(known.known, given.counts if given is not None else NOTHING)  # by its starter
        return known


def _add(known: dict[int, int], counts: Counts) -> bool:
    """Add what is known; return whether anything of it is new."""
    grows = False
    for number, count in counts.items():
        if count > known.get(number, 0):
            known[number] = count
            grows = True
    return grows


def _now() -> tuple[Knowledge, Execution] | None:
    """Return what the active session knows, and the calling execution, if there are both."""
    watch = cast("Watch | None", runtime.watch)
    execution = runtime.running.get(Interpreter.thread_number())  # a new thread has none yet
    return (watch.knowledge, execution) if watch is not None and execution is not None else None


def gives(thing: object) -> None:
    """Note that the calling execution gives something to those that get it from a thing."""
    watch = cast("Watch | None", runtime.watch)
    execution = runtime.running.get(Interpreter.thread_number())
    if watch is not None and execution is not None:
        watch.knowledge.gives(execution, thing)


def gets(thing: object) -> None:
    """Note that the calling execution got something from a thing, or looked at it."""
    watch = cast("Watch | None", runtime.watch)
    execution = runtime.running.get(Interpreter.thread_number())
    if watch is not None and execution is not None:
        watch.knowledge.gets(execution, thing)


@fails_open(0)
def count_here() -> int:
    """Return how much the calling execution has done that others may know of."""
    now = _now()
    return now[0].known_by(now[1]).get(now[1].serial, 0) if now is not None else 0


@fails_open(NOTHING)
def known_here() -> Counts:
    """Return what the calling execution knows, which it gives to another one."""
    now = _now()
    return now[0].passes_on(now[1]) if now is not None else NOTHING


@fails_open(NOTHING)
def known_by(execution: Execution) -> Counts:
    """Return what an execution knows."""
    watch = cast("Watch | None", runtime.watch)
    return watch.knowledge.passes_on(execution) if watch is not None else NOTHING


@fails_open(None)
def learn_here(counts: Counts) -> None:
    """Note that the calling execution knows what another one has given to it."""
    now = _now()
    if now is not None:
        now[0].learns(now[1], counts)


@fails_open(None)
def publish() -> None:
    """Note that the calling execution notifies others of which it is not known who they are."""
    now = _now()
    if now is not None:
        now[0].publish(now[1])


@fails_open(cast("Sequence[Dependency]", ()))
def taken_by(execution: Execution) -> Sequence[Dependency]:
    """Return what an execution took that not everybody may know, as far as that is remembered."""
    watch = cast("Watch | None", runtime.watch)
    return watch.knowledge.taken_by(execution) if watch is not None else ()
