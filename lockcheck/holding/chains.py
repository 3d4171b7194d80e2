"""Who holds what: a chain of nodes for each unit of execution, and a trie of the chains that were checked.

A *unit* is what runs: a thread, or a part of one that was given a name. Its `node` says what it holds,
innermost first along `parent`. From each node, `next` leads on to the nestings that were checked there
and found to be in order. So the way of every acquisition that is nothing new is: one look into a
dictionary. Whatever is new is judged once (`stepping.py`).

The tries belong to their unit, and only the thread that runs a unit adds to them. Others read them, and
cut them off where a session begins or ends.
"""

from __future__ import annotations

from itertools import count
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias, cast, final

from ..findings.class_edges import ClassEdge
from ..findings.foreign import shown
from ..findings.statistics import UNHEARD

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable, Iterator
    from types import CodeType

    from ..findings.errors import DeadlockError
    from ..findings.evidence import Mode, RWPolicy
    from ..findings.statistics import UsageTally
    from .happens_before import Segment
    from .stacks import RawStack

__all__ = [
    "SWEEP_MIN",
    "Acquisition",
    "Attempt",
    "Execution",
    "ExecutionWait",
    "LockIdentity",
    "TrieNode",
    "class_edge_text",
    "held_names",
    "held_nodes",
    "holds_of",
    "modes_held",
]

Attempt: TypeAlias = Literal["block", "timed", "try"]
"""How a lock is asked for: waiting for ever, for a time, or not at all."""

SWEEP_MIN: Final = 1024
"""So many nestings at least are remembered below one place of a trie before any are forgotten."""

_serials: Final = count(1)


@final
class LockIdentity:
    """What is known of a lock for as long as anybody remembers it, which may be longer than it lives."""

    __slots__ = (
        "alive",
        "answers",
        "fresh_for",
        "key",
        "name",
        "policy",
        "rank",
        "reentrant",
        "serial",
        "shared",
    )

    def __init__(self, name: str, key: object, *, reentrant: bool, policy: RWPolicy | None) -> None:
        self.serial = next(_serials)
        self.name = name
        self.key = key
        self.reentrant = reentrant
        self.policy = policy
        """Of a read/write lock; none for an exclusive one."""
        self.fresh_for: Execution | None = None
        """The only unit that knows the lock, where somebody said so."""
        self.alive = True
        """Whether the lock still exists: it says itself when it ends, since a weak reference is large."""
        self.shared = policy is not None
        self.answers = False
        """Whether it is no lock, but something that answers asks, such as an actor."""
        self.rank: int | None = None
        """Where something that answers stands in the order of asks."""

    @property
    def key_text(self) -> str | None:
        """The key as text, which is made anew each time: never under a lock of the checker."""
        return None if self.key is None else shown(self.key)

    def __str__(self) -> str:
        key = self.key_text
        return f"{self.name} #{self.serial}" if key is None else f"{self.name} {key}"


@final
class Acquisition:
    """A lock in one mode, asked for in one way; grips are compared by identity."""

    __slots__ = ("attempt", "lock", "mode")

    def __init__(self, lock: LockIdentity, mode: Mode, attempt: Attempt = "block") -> None:
        self.lock = lock
        self.mode: Mode = mode
        self.attempt: Attempt = attempt

    def __str__(self) -> str:
        return f"{self.lock} [{self.mode}]" if self.lock.shared else str(self.lock)


def class_edge_text(held: Acquisition, wanted: Acquisition) -> str:
    """Return the classes and modes of a nesting, such as `queue[W] -> application[R]`."""
    return str(ClassEdge(held.lock.name, held.mode, wanted.lock.name, wanted.mode))


def _refuse(_: bytes) -> None:
    raise ValueError


NONE_BELOW: Final = cast("dict[object, TrieNode]", MappingProxyType({}))
"""What most nodes have below them; nothing can be put there, and it is made once."""


@final
class TrieNode:
    """A grip below another one, as one unit took them: a place in its trie."""

    __slots__ = (
        "acquisition",
        "code",
        "execution",
        "holds",
        "instruction",
        "left",
        "next",
        "owner",
        "parent",
        "parent_since",
        "since",
        "stack",
        "sweep_at",
        "tally",
        "took",
        "visits",
        "write",
    )

    def __init__(
        self, execution: Execution, parent: TrieNode | None, acquisition: Acquisition | None, owner: object
    ) -> None:
        self.execution = execution
        self.parent = parent
        self.acquisition = acquisition
        """None at the root."""
        self.owner = owner
        """The session that judged the node."""
        self.next: dict[object, TrieNode] = NONE_BELOW
        """By grip the nesting that was seen last, and by grip and place in the code all of them."""
        self.sweep_at = SWEEP_MIN
        """When there are so many, those of locks that are gone are forgotten."""
        self.code: CodeType | None = None
        """Where it was taken, with the instruction; none where it does not matter from where."""
        self.instruction = -1
        self.stack: RawStack = ()
        self.since = 0
        """When it was taken last, where the level is `full`."""
        self.parent_since = 0
        """When the parent had been taken in which it was taken last: tells one hold of it from the next."""
        self.tally: UsageTally | None = None
        self.holds: deque[int] = UNHEARD
        """Where it is noted how long it was held."""
        self.visits = 0
        """How many others were taken below it in this hold."""
        self.write: Callable[[bytes], object] = _refuse
        """Writes a record to a trace; a `ValueError` where that has to be made anew."""
        self.took = b""
        """What is written when the lock was taken."""
        self.left = b""
        """What is written before it is let go of."""


class ExecutionWait(Protocol):
    """What a unit waits for; others than locks can be waited for too, such as the end of a thread."""

    @property
    def endless(self) -> bool:
        """Whether the wait ends by nothing but what is waited for."""

    @property
    def breakable(self) -> bool:
        """Whether an error can be raised where the unit waits."""

    @property
    def steerable(self) -> bool:
        """Whether another run can be steered to where the unit waits: what has to come before is known."""

    def needs(self, waiting: Execution) -> list[list[Execution]]:
        """Return groups of units: of each group one has to act before the wait can end.

        Where somebody may act who is not known, the group is left out, or empty.
        """

    def describe(self) -> str:
        """Say what is waited for."""


@final
class Execution:
    """What runs: a thread, or a named part of one."""

    __slots__ = (
        "__weakref__",
        "check_due",
        "inside",
        "leaf",
        "name",
        "node",
        "segment",
        "serial",
        "stack",
        "victim_error",
        "wait",
    )

    def __init__(self, name: str, segment: Segment, owner: object) -> None:
        self.serial = next(_serials)
        self.name = name
        self.segment = segment
        self.node = TrieNode(self, None, None, owner)
        self.inside = False
        """Whether the checker itself runs on it, so that what it triggers is not checked again."""
        self.leaf: str | None = None
        """The function marked `@leaf` that runs."""
        self.wait: ExecutionWait | None = None
        self.check_due = False
        """Whether it has yet to look whether its wait closes a circle; nobody breaks that circle before."""
        self.stack: RawStack = ()
        """Where it waits."""
        self.victim_error: tuple[ExecutionWait, DeadlockError] | None = None
        """The wait that it was chosen to give up, and what to raise there."""


def held_nodes(node: TrieNode) -> Iterator[TrieNode]:
    """Yield what is held at a node, innermost first."""
    at: TrieNode | None = node
    while at is not None and at.acquisition is not None:
        yield at
        at = at.parent


def held_names(node: TrieNode) -> tuple[str, ...]:
    """Return what is held at a node, outermost first, as reports say it."""
    return tuple(str(held.acquisition) for held in held_nodes(node))[::-1]


def holds_of(lock: LockIdentity, node: TrieNode) -> Iterator[TrieNode]:
    """Yield where a lock is held at a node, innermost first."""
    at: TrieNode | None = node
    while at is not None and at.acquisition is not None:
        if at.acquisition.lock is lock:
            yield at
        at = at.parent


def modes_held(lock: LockIdentity, node: TrieNode) -> set[Mode]:
    """Return the modes in which a lock is held at a node."""
    return {held.acquisition.mode for held in holds_of(lock, node) if held.acquisition is not None}
