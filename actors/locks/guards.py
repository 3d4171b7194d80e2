"""Guards of the engine `threads`: entities, and the parts of a partition, each with a read/write lock.

Guards are the handles of entities. For each entity class one guard class is made. A method marked as reading
runs with the lock held for reading, one marked as writing with it held for writing. A method that an entity
calls on itself takes no lock again, since the locks are not recursive. Methods without a mark do not exist on
a guard, except the identity that never changes, and guards of the parts of an entity: they share its lock.

Queues, limits, the node order and the counts belong to their partition, which reads them directly. If
threads share a partition, these objects are *instrumented*: they are of a subclass whose marked methods take
the lock of the object. So cycles that share the partition's lock may use these methods at once. Besides, they
read one reference to a value that never changes; docs/threads.md names it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from operator import attrgetter
from types import TracebackType
from typing import Any, ClassVar, Final, TypeAlias, TypeVar, cast, final

from ...lockcheck import Order, RWLock
from ...model.applications.application import Application
from ...model.cluster import Cluster
from ...model.limits.user_limits import UserLimits
from ...model.marks import marked_methods
from ...model.nodes.node import Node
from ...model.nodes.order import NodeOrder
from ...model.queues.queue import Queue
from ...model.state.counters import PlacedCounts
from ..engines.handles import IDENTITY, PARTS, note_origin
from ..services.log import Log

Entity = TypeVar("Entity")
T = TypeVar("T")
LOCK_ORDER: Final = Order(
    "registration < cluster < partition < queue < application < node, partition < limits, "
    "partition < node-order, partition < counts, registration < clock, "
    "registration < link, scheduling, look-ups, answers, "
    "registration < cluster-actor < partition-actor < application-actor, partition-actor < node-actor, "
    "partition-actor < clock, partition-actor < questions, cluster-actor < link",
    exclusive=[
        *("registration", "limits", "node-order", "counts", "clock", "link", "scheduling", "look-ups"),
        *("answers", "questions", "cluster-actor", "partition-actor", "application-actor", "node-actor"),
    ],
    leaves=["queue", "application", "node", "limits", "node-order", "counts"],
    forbid=[
        "registration -> partition[R]",
        "registration -> queue[R]",
        "registration -> application[R]",
        "registration -> node[R]",
        "registration -> counts",
        "cluster -> partition[R]",
        "cluster -> queue[R]",
        "cluster -> application[R]",
        "cluster -> node[R]",
        "cluster -> counts",
        "partition[R] -> queue[R]",
        "partition[R] -> application[R]",
        "partition[R] -> node[R]",
        *(
            f"cluster[R] -> {inner}"
            for inner in ("partition", "queue", "application", "node", "limits", "node-order", "counts")
        ),
        "registration -> questions",
        "cluster-actor -> questions",
    ],
    walks=[
        "cluster -> partition",
        "cluster -> queue",
        "partition -> queue",
        "partition -> application",
        "partition -> node",
    ],
)
"""The declared order of locks and asks of the engines `threads` and `actors`, and of the scheduler around
them; see docs/threads.md."""
Action: TypeAlias = Callable[[], None]


class Guard:
    """The handle of an entity, with the entity's lock."""

    __slots__ = ("deferred", "entity", "lock")

    lock_class: ClassVar[str]
    parts: ClassVar[dict[str, type[Guard]]]

    def __init__(self, entity: Any, key: str, deferred: DeferredActions) -> None:
        self.entity = entity
        self.lock = RWLock(self.lock_class, key=key)
        self.deferred = deferred
        """Runs actions that must not run under a lock, once the thread has released its last lock."""

    def part(self, kind: type[Guard]) -> Guard:
        """Return the guard of a part of the entity."""
        part = kind.__new__(kind)
        part.entity, part.lock, part.deferred = self.entity, self.lock, self.deferred
        return part


def _under_lock(
    method: Callable[..., Any], owner: Callable[[Guard], Any], *, exclusive: bool
) -> Callable[..., Any]:
    """Make a method of a guard that runs that of its entity, or of a part of it, with the lock held."""

    def under_lock(guard: Guard, *args: Any, **kwargs: Any) -> Any:
        lock = guard.lock
        with guard.deferred, lock.write() if exclusive else lock.read():
            try:
                return method(owner(guard), *args, **kwargs)
            except BaseException as error:
                note_origin(error, guard.entity)
                raise

    under_lock.__name__ = method.__name__
    under_lock.__doc__ = method.__doc__
    return under_lock


def _with_marks(kind: type, wrap: Callable[..., Any]) -> dict[str, Any]:
    """Wrap the marked methods of a class; `wrap` gets whether a method is `exclusive`."""
    return {
        name: wrap(getattr(kind, name), exclusive=mark == "writes")
        for name, mark in marked_methods(kind).items()
    }


def _make(entity_class: type, lock_class: str) -> type[Guard]:
    parts = {name: _make_part(part, name) for name, part in PARTS[entity_class].items()}
    members = _with_marks(entity_class, partial(_under_lock, owner=attrgetter("entity")))
    members["__slots__"] = (*IDENTITY[entity_class], *parts)
    members["__doc__"] = f"A {entity_class.__name__} with its lock."
    members["lock_class"] = lock_class
    members["parts"] = parts
    return type(f"Guarded{entity_class.__name__}", (Guard,), members)


def _make_part(kind: type, name: str) -> type[Guard]:
    members = _with_marks(kind, partial(_under_lock, owner=attrgetter(f"entity.{name}")))
    members["__slots__"] = ()
    members["__doc__"] = f"A {kind.__name__} with the lock of its entity."
    return type(f"Guarded{kind.__name__}", (Guard,), members)


_CLASSES: Final[dict[type, type[Guard]]] = {
    entity_class: _make(entity_class, entity_class.__name__.lower())
    for entity_class in (Cluster, Application, Node)
}


def guard(entity: Entity, key: str, deferred: DeferredActions) -> Entity:
    """Return a guard of a cluster, an application or a node."""
    made = _CLASSES[type(entity)](entity, key, deferred)
    for name in IDENTITY[type(entity)]:
        setattr(made, name, getattr(entity, name))
    for name, kind in made.parts.items():
        setattr(made, name, made.part(kind))
    return cast("Entity", made)


def _with_lock(method: Callable[..., Any], *, exclusive: bool) -> Callable[..., Any]:
    """Make the method of an instrumented class that runs the method of its base with the lock held."""

    def with_lock(self: Any, *args: Any, **kwargs: Any) -> Any:
        lock = self.lock
        with lock.write() if exclusive else lock.read():
            return method(self, *args, **kwargs)

    with_lock.__name__ = method.__name__
    with_lock.__doc__ = method.__doc__
    return with_lock


def _instrumented_class(kind: type, lock_class: str) -> type:
    initialise: Callable[..., None] = vars(kind)["__init__"]

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - it becomes one
        initialise(self, *args, **kwargs)
        self.lock = RWLock(lock_class, key=getattr(self, "path", None))

    members = _with_marks(kind, _with_lock)
    members |= {"__init__": __init__, "__slots__": ("lock",), "__doc__": f"A {kind.__name__} with its lock."}
    return type(f"Instrumented{kind.__name__}", (kind,), members)


INSTRUMENTED: Final[dict[type, type]] = {
    kind: _instrumented_class(kind, lock_class)
    for kind, lock_class in (
        (Queue, "queue"),
        (UserLimits, "limits"),
        (NodeOrder, "node-order"),
        (PlacedCounts, "counts"),
    )
}


def instrument(kind: type[T]) -> type[T]:
    """Return the instrumented class of queues, limits, node orders or counts."""
    return INSTRUMENTED[kind]


@final
class DeferredActions(threading.local):
    """A context that is entered before each lock of an engine; each thread has its own.

    A lock is released before its context ends. So the deferred actions run, in order, when the outermost lock
    has been released, also if the code under it raised. An action that fails is logged: its cause has
    happened, and the other actions still run.

    Args:
        log: gets the failures.
    """

    def __init__(self, log: Log | None = None) -> None:
        self._log = log or Log()
        self._depth = 0
        self._actions: list[Action] = []

    @property
    def is_open(self) -> bool:
        """Whether actions of this thread are deferred now, because it holds a lock."""
        return self._depth > 0

    def defer(self, action: Action) -> None:
        """Defer an action; it runs at once if this thread holds no lock."""
        if self._depth:
            self._actions.append(action)
        else:
            action()

    @contextmanager
    def collected_in(self, actions: list[Action]) -> Iterator[None]:
        """Collect the actions of the body instead of running them; no lock is held at either end."""
        assert not self._depth, "actions that were deferred before would be collected as well: please report"
        self._depth = 1
        try:
            yield
        finally:
            self._depth = 0
            actions += self._actions
            self._actions = []

    def __enter__(self) -> None:
        self._depth += 1

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._depth -= 1
        if not self._depth and self._actions:
            actions, self._actions = self._actions, []
            for action in actions:
                try:
                    action()
                except BaseException:  # noqa: BLE001 - logged
                    self._log.exception("a step after the release of a lock failed, please report")
