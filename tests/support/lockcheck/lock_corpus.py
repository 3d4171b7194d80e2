"""What the corpus of lock bugs is made of: a small cluster of locks, executions that take them, and cases.

A case is a few lines that run on one thread and never deadlock, although the program that they stand for
did, or could have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from typing import Final

from licorne.lockcheck import (
    Finding,
    Kind,
    Lock,
    LockUsageError,
    Order,
    RLock,
    Rung,
    RWLock,
    key,
    session,
    tree,
    unit,
)
from licorne.lockcheck.checking.policy import FindingAction
from licorne.lockcheck.locks.rwlock import PlainRWLock
from licorne.lockcheck.sessions.session import Session

ORDER: Final = Order(
    "cluster < partition < queue < application < node; partition < placement; partition < nodes < node",
    same={"queue": tree("path"), "node": key("name")},
    leaves=["events"],
)
RECORD: Final[Mapping[Rung, FindingAction]] = dict.fromkeys(Rung, "record")

Guard = AbstractContextManager[object]


@dataclass
class Cluster:
    """Locks as the scheduler has them."""

    cluster: PlainRWLock = field(default_factory=lambda: RWLock("cluster"))
    partition: PlainRWLock = field(default_factory=lambda: RWLock("partition", key="default"))
    placement: PlainRWLock = field(default_factory=lambda: RWLock("placement"))
    nodes: PlainRWLock = field(default_factory=lambda: RWLock("nodes"))
    root: PlainRWLock = field(default_factory=lambda: RWLock("queue", key="root"))
    parent: PlainRWLock = field(default_factory=lambda: RWLock("queue", key="root.a"))
    child: PlainRWLock = field(default_factory=lambda: RWLock("queue", key="root.a.b"))
    sibling: PlainRWLock = field(default_factory=lambda: RWLock("queue", key="root.z"))
    application: PlainRWLock = field(default_factory=lambda: RWLock("application", key="app-1"))
    other: PlainRWLock = field(default_factory=lambda: RWLock("application", key="app-2"))
    node: PlainRWLock = field(default_factory=lambda: RWLock("node", key="n1"))
    node_2: PlainRWLock = field(default_factory=lambda: RWLock("node", key="n2"))
    events: PlainRWLock = field(default_factory=lambda: RWLock("events"))
    proxy: PlainRWLock = field(default_factory=lambda: RWLock("proxy"))
    mutex: Guard = field(default_factory=lambda: Lock("mutex"))
    monitor: Guard = field(default_factory=lambda: RLock("monitor"))


def hold(*guards: Guard) -> None:
    """Take locks, each while the ones before it are held, and release them."""
    with ExitStack() as stack:
        for guard in guards:
            stack.enter_context(guard)


def nest(who: str, *guards: Guard) -> None:
    """Do the same as an execution of its own; a lock that refuses its holder ends it."""
    with unit(who):
        try:
            hold(*guards)
        except LockUsageError:
            return


def guards_of(c: Cluster, path: str) -> Iterator[Guard]:
    """Yield the locks of a path such as `queue[W] -> node[R] -> mutex`, each in its mode, if it has one."""
    for step in path.split(" -> "):
        name, _, mode = step.removesuffix("]").partition("[")
        lock = getattr(c, name)
        yield {"R": lock.read, "W": lock.write}[mode]() if mode else lock


def nests(*paths: str) -> Callable[[Cluster], None]:
    """Return a run that takes locks along paths, each as an execution of its own.

    A path may begin with the name of its execution, as in `scheduler: queue[W] -> node[R]`.
    """

    def run(c: Cluster) -> None:
        for number, path in enumerate(paths, 1):
            who, named, rest = path.partition(": ")
            nest(who if named else f"unit-{number}", *guards_of(c, rest if named else path))

    return run


class Crossed:
    """Two locks that are taken in both orders."""

    def __init__(self) -> None:
        self.a, self.b = Lock("a"), Lock("b")

    def down(self) -> None:
        """Take a, then b."""
        hold(self.a, self.b)

    def up(self) -> None:
        """Take b, then a."""
        hold(self.b, self.a)


@dataclass(frozen=True)
class Bug:
    """A bug of somebody, and what kind of finding it has to be at which rung."""

    name: str
    run: Callable[[Cluster], None]
    kind: Kind
    sources: tuple[str, ...] = ()
    """Where it is from; `sources.py` has them all."""
    rung: Rung = Rung.R0
    steps: int | None = None
    """How long the path is that closes."""
    order: Order | None = None


@dataclass(frozen=True)
class Safe:
    """A pattern that is in order although it looks like a bug."""

    name: str
    run: Callable[[Cluster], None]
    explained: str = ""
    """Part of the reason that the R1 gives; empty where not even a path closes."""
    order: Order | None = None
    sources: tuple[str, ...] = ()


def look(run: Callable[[Cluster], None], order: Order | None) -> tuple[Session, tuple[Finding, ...]]:
    """Run a case in a session of its own; return the session and what it found."""
    with session(order, on=RECORD) as opened:
        run(Cluster())
    assert [] == opened.faults
    return opened, opened.findings
