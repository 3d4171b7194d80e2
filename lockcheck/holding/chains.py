"""Held locks: a chain of nodes for each execution, and a trie of the chains that were checked.

An *execution* is a thread, or a part of one with a separate name. Its `node` has its held locks,
innermost first along `parent`. From each node, `next` leads to the edges that were checked there and found
to be in order. So an acquisition that is nothing new takes the fast path: one access to a dictionary. A new
one is checked once (`slow_path.py`).

A trie belongs to its execution, and only the thread that runs the execution adds to it. Others read it, and
cut it off where a session begins or ends.

The life of an execution is cut into segments, each with the segments of others that precede it. Only an order
that holds in every schedule counts: that one thread happened to get a lock before another proves nothing.
The causes of the order are kept for the last lines that a segment was put behind, for the reasons of
findings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from types import CodeType, FrameType, MappingProxyType
from typing import Final, Literal, Protocol, TypeAlias, cast, final
from weakref import WeakValueDictionary

from ..findings.foreign import shown
from ..findings.terms import ClassEdge, DeadlockError, Mode, RWPolicy
from .stacks import RawStack, capture

Attempt: TypeAlias = Literal["block", "timed", "try"]
"""How long an acquisition waits: for ever, for a limited time, or not at all."""
SWEEP_MIN: Final = 1024
"""How many edges at least are remembered below one node of a trie before any are forgotten."""
_serials: Final = count(1)
CAUSES_MAX: Final = 32
"""For how many lines a segment keeps why it comes after them: a thread may come after thousands of tasks."""
Cause: TypeAlias = "tuple[str, CodeType | None, int]"
"""The cause of an order of two lines, in words, and the place where the later one waited, if it is known."""
_START: Final[Cause] = ("by the start of a thread or task", None, 0)


class LockIdentity:
    """The identity of a lock, which may be remembered for longer than the lock lives."""

    __slots__ = (
        "alive",
        "elsewhere",
        "fresh_for",
        "key",
        "name",
        "policy",
        "reentrant",
        "serial",
    )

    permits: int | None = None
    """How many executions may hold it at a time, if it is a semaphore."""
    certain = True
    """Whether what holds it is known to release it too."""
    may_be_signal = False
    """Whether another execution may release it than took it."""
    answers = False
    """Whether it is not a lock, but an answerer, such as an actor."""
    rank: int | None = None
    """The place of an answerer in the order of asks."""
    ends = False
    """Whether it is not a lock, but the end of an execution, or a signal of that."""

    def __init__(self, name: str, key: object, *, reentrant: bool, policy: RWPolicy | None) -> None:
        self.serial = next(_serials)
        self.name = name
        self.key = key
        self.reentrant = reentrant
        self.policy = policy
        """The policy of a read/write lock; `None` for an exclusive one."""
        self.fresh_for: Execution | None = None
        """The only execution that knows the lock, if `fresh` declared one."""
        self.elsewhere: tuple[Mode, RawStack, str] | None = None
        """Where it was taken first outside of finalizers and signal handlers, and by whom; at `full`."""
        self.alive: bool | None = True
        """Whether the lock still exists; it resets this when it ends, since a weak reference is large.

        `None` if it turned out to be a signal, which no thread holds.
        """

    @property
    def shared(self) -> bool:
        """Whether several executions may hold it for reading."""
        return self.policy is not None

    @property
    def key_text(self) -> str | None:
        """The key as text, which is made anew each time: never under a lock of the checker."""
        return None if self.key is None else shown(self.key)

    def __str__(self) -> str:
        key = self.key_text
        return f"{self.name} #{self.serial}" if key is None else f"{self.name} {key}"


@final
class PlainLockIdentity(LockIdentity):
    """The identity of a lock of `threading` that was adopted, which has no owner."""

    __slots__ = ()

    may_be_signal = True


@final
class SemaphoreIdentity(LockIdentity):
    """The identity of a semaphore that is used as a lock, of which each holder has a permit."""

    __slots__ = ("certain", "permits")

    def __init__(self, name: str, permits: int) -> None:
        super().__init__(name, None, reentrant=False, policy=None)
        self.permits: int = permits
        self.certain = False


@final
class AnswererIdentity(LockIdentity):
    """The identity of an answerer, such as an actor."""

    __slots__ = ("rank",)

    answers = True

    def __init__(self, name: str, key: object, rank: int | None) -> None:
        super().__init__(name, key, reentrant=False, policy=None)
        self.rank: int | None = rank


@final
class Acquisition:
    """A lock, its mode, and how long the acquisition waits; compared by identity."""

    __slots__ = ("attempt", "lock", "mode")

    def __init__(self, lock: LockIdentity, mode: Mode, attempt: Attempt = "block") -> None:
        self.lock = lock
        self.mode: Mode = mode
        self.attempt: Attempt = attempt

    def __str__(self) -> str:
        return f"{self.lock} [{self.mode}]" if self.lock.shared else str(self.lock)


def class_edge_text(held: Acquisition, wanted: Acquisition) -> str:
    """Return the classes and modes of an edge, such as `queue[W] -> application[R]`."""
    return str(ClassEdge(held.lock.name, held.mode, wanted.lock.name, wanted.mode))


NONE_BELOW: Final = cast("dict[object, TrieNode]", MappingProxyType({}))
"""The `next` of most nodes: an empty mapping that cannot be changed, made once."""


@final
class TrieNode:
    """A held lock: an acquisition below the one before, in the trie of an execution."""

    __slots__ = (
        "acquisition",
        "code",
        "execution",
        "instruction",
        "next",
        "owner",
        "parent",
        "parent_since",
        "since",
        "stack",
        "sweep_at",
        "visits",
    )

    def __init__(
        self, execution: Execution, parent: TrieNode | None, acquisition: Acquisition | None, owner: object
    ) -> None:
        self.execution = execution
        self.parent = parent
        self.acquisition = acquisition
        """`None` at the root."""
        self.owner = owner
        """The session that checked the node."""
        self.next: dict[object, TrieNode] = NONE_BELOW
        """The nodes below: by acquisition the last one, and by acquisition and place in the code all."""
        self.sweep_at = SWEEP_MIN
        """At this number of them, those of locks that are gone are forgotten."""
        self.code: CodeType | None = None
        """Where it was taken, with the instruction; `None` if the place does not matter."""
        self.instruction = -1
        self.stack: RawStack = ()
        self.since = 0
        """When it was taken last, where the level is `full`."""
        self.parent_since = 0
        """The time of the parent's hold in which it was taken last: this very object identifies that hold."""
        self.visits = 0
        """How many other locks were taken below it in this hold."""


def copied(old: TrieNode, parent: TrieNode | None, owner: object) -> TrieNode:
    """Return the node of a held lock below another parent, or for another session; nothing is below it."""
    node = TrieNode(old.execution, parent, old.acquisition, owner)
    node.code, node.instruction, node.stack = old.code, old.instruction, old.stack
    if owner is old.owner:
        node.since = old.since
    return node


class ExecutionWait(Protocol):
    """The wait of an execution: for a lock, or for something else, such as the end of a thread."""

    @property
    def endless(self) -> bool:
        """Whether the wait has no limit of time."""

    @property
    def breakable(self) -> bool:
        """Whether an error can be raised where the execution waits."""

    @property
    def signal(self) -> str | None:
        """The end of the wait, in words, if it is neither the release of a lock nor the end of a thread."""

    def needs(self, waiting: Execution) -> list[list[Execution]]:
        """Return groups of executions: of each group one has to act before the wait can end.

        If an unknown execution may act too, the group is left out, or empty.
        """

    def describe(self) -> str:
        """Return what is waited for, in words."""


@final
class Execution:
    """An execution: a thread, or a named part of one."""

    __slots__ = (
        "__weakref__",
        "check_due",
        "frame",
        "inside",
        "leaf",
        "name",
        "node",
        "segment",
        "serial",
        "victim_error",
        "wait",
    )

    def __init__(self, name: str, segment: Segment, owner: object) -> None:
        self.serial = next(_serials)
        self.name = name
        self.segment = segment
        self.node = TrieNode(self, None, None, owner)
        self.inside = False
        """Whether the checker itself runs on it: acquisitions that it triggers are not checked."""
        self.leaf: str | None = None
        """The function marked `@leaf` that runs."""
        self.wait: ExecutionWait | None = None
        self.check_due = False
        """Whether it still has to check its wait for a deadlock; no other one breaks that deadlock before."""
        self.frame: FrameType | None = None
        """Where it waits: only who reports that looks at all frames."""
        self.victim_error: tuple[ExecutionWait, DeadlockError] | None = None
        """The wait that it gives up as a victim, and the error to raise there."""

    @property
    def stack(self) -> RawStack:
        """Where it waits."""
        return capture(self.frame)


def held_nodes(node: TrieNode, *, gone: bool = False) -> Iterator[TrieNode]:
    """Yield the nodes of the locks that are held at a node, innermost first.

    Args:
        node: where.
        gone: whether locks count that no longer exist: none can wait for them.
    """
    at: TrieNode | None = node
    while at is not None and at.acquisition is not None:
        if at.acquisition.lock.alive or (gone and at.acquisition.lock.alive is not None):
            yield at
        at = at.parent


def held_names(node: TrieNode) -> tuple[str, ...]:
    """Return the names of the locks that are held at a node, outermost first."""
    return tuple(str(held.acquisition) for held in held_nodes(node))[::-1]


def holds_of(lock: LockIdentity, node: TrieNode) -> Iterator[TrieNode]:
    """Yield the nodes of one lock that are held at a node, innermost first."""
    at: TrieNode | None = node
    while at is not None and at.acquisition is not None:
        if at.acquisition.lock is lock and lock.alive:
            yield at
        at = at.parent


def modes_held(lock: LockIdentity, node: TrieNode) -> set[Mode]:
    """Return the modes in which a lock is held at a node."""
    return {held.acquisition.mode for held in holds_of(lock, node) if held.acquisition is not None}


@final
class _LiveLine:
    """The life of an execution; all of its segments refer to it."""

    __slots__ = ("__weakref__",)


_lines: Final[WeakValueDictionary[int, _LiveLine]] = WeakValueDictionary()
"""The lines of which a segment exists. Nothing is compared with any other line, so none of those is kept."""
FORGET_EVERY: Final = 16
"""After how many segments a line forgets the lines that are over."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch in the life of an execution between two events that order it with others."""

    line: int
    """The serial number of the execution."""
    number: int = 0
    seen: Mapping[int, int] = field(default_factory=dict)
    """For each other line the last segment that must have ended before this one began."""
    causes: Mapping[int, Cause] = field(default_factory=dict)
    """For some of these lines, why."""
    silent: bool = False
    """Whether nothing was learned on the line yet: then its end need not be noted."""
    maybe: Mapping[int, int] = field(default_factory=dict)
    """For other lines the last segment that may have had to end before: what is between them is not known."""
    learned: bool = False
    """Whether anything was learned in it."""
    of: _LiveLine | None = field(default=None, compare=False, repr=False)


def begin(line: int, after: Segment | None = None) -> Segment:
    """Return the first segment of a line, which starts after a segment of another one."""
    _lines[line] = of = _LiveLine()
    if after is None:
        return Segment(line, silent=True, of=of)
    causes = dict(after.causes)
    if not after.silent:
        _keep(causes, after.line, _START)
    return Segment(line, 0, _known(after), causes, silent=True, maybe=after.maybe, of=of)


def learn(segment: Segment, ended: Segment | None = None, cause: Cause | None = None) -> Segment:
    """Return the next segment of a line, which begins when another one has ended."""
    seen, maybe, causes = segment.seen, segment.maybe, dict(segment.causes)
    if segment.number % FORGET_EVERY:
        seen = dict(seen)
    else:
        seen, maybe = _going_on(seen), _going_on(maybe)
    for line, number in (_known(ended) if ended else {}).items():
        if line != segment.line and number > seen.get(line, -1) and line in _lines:
            seen[line] = number
            if cause is not None:
                _keep(causes, line, cause)
    maybe = _latest(maybe, ended.maybe) if ended else maybe
    return Segment(segment.line, segment.number + 1, seen, causes, segment.silent, maybe, of=segment.of)


def one_before(segment: Segment) -> Segment:
    """Return the segment of a line that comes before one in which nothing was learned."""
    number, seen, maybe = segment.number - 1, segment.seen, segment.maybe
    return Segment(segment.line, number, seen, segment.causes, segment.silent, maybe, of=segment.of)


def _going_on(known: Mapping[int, int]) -> dict[int, int]:
    """Return the part of what is known of other lines that is about lines that are not over."""
    return {line: number for line, number in known.items() if line in _lines}


def may_learn(segment: Segment, ended: Segment) -> Segment:
    """Return a segment that may have to follow another one, which has ended."""
    return replace(segment, maybe=_latest(segment.maybe, ended.maybe, _known(ended)))


def _latest(*known: Mapping[int, int]) -> Mapping[int, int]:
    """Return the last segment of each line that is known somewhere."""
    latest: dict[int, int] = {}
    for one in known:
        for line, number in one.items():
            latest[line] = max(number, latest.get(line, -1))
    return latest


def may_be_ordered(one: Segment, other: Segment) -> bool:
    """Return whether one of two segments may have to end before the other one begins."""
    return other.maybe.get(one.line, -1) >= one.number or one.maybe.get(other.line, -1) >= other.number


def knows(segment: Segment, ended: Segment) -> bool:
    """Return whether a segment begins after another one has ended anyway."""
    if not ended.silent and not _is_known(segment, ended.line, ended.number):
        return False
    return segment.seen is ended.seen or all(_is_known(segment, *one) for one in ended.seen.items())


def _is_known(segment: Segment, line: int, number: int) -> bool:
    return line == segment.line or segment.seen.get(line, -1) >= number or line not in _lines


def _keep(causes: dict[int, Cause], line: int, cause: Cause) -> None:
    """Keep why a segment comes after a line; the oldest cause goes if there are too many."""
    causes.pop(line, None)
    causes[line] = cause
    if len(causes) > CAUSES_MAX:
        del causes[next(iter(causes))]


def together(ended: Iterable[Segment]) -> Segment:
    """Return a segment that stands for the ends of several: what comes after it comes after all of them."""
    segments = list(ended)
    maybe = _latest(*(segment.maybe for segment in segments))
    return Segment(-1, 0, _latest(*map(_known, segments)), silent=True, maybe=maybe)


def concurrent(one: Segment, other: Segment) -> bool:
    """Return whether two segments are concurrent: neither must have ended before the other began."""
    if one.line == other.line:
        return False
    return other.seen.get(one.line, -1) < one.number and one.seen.get(other.line, -1) < other.number


def cause_of_order(one: Segment, other: Segment) -> Cause | None:
    """Return why two segments that are not concurrent come one after the other, if that was kept."""
    first, later = (one, other) if other.seen.get(one.line, -1) >= one.number else (other, one)
    return later.causes.get(first.line)


def _known(segment: Segment) -> Mapping[int, int]:
    if segment.silent:
        return segment.seen
    return {**segment.seen, segment.line: segment.number}
