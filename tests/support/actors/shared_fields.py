"""Sees to it that what threads share is touched under its lock only, in all tests of a folder.

A missing lock is found at the first access without it, not by the race that it leads to. A `conftest.py`
has the fields watched around each of its tests.

Where threads share a partition, the fields of its queues, limits, node order and counts are bound under the
lock of that object, the limits and the node order are not changed in place without theirs, and no field of
the partition's state and timers is bound at all. What is changed in place elsewhere is not seen.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, Final, NamedTuple, cast

from licorne.actors.locks.guarded_partition import GuardedPartition
from licorne.actors.locks.guards import INSTRUMENTED
from licorne.actors.locks.threads_engine import SchedulingThreads
from licorne.actors.services.clocks import RealClock
from licorne.actors.services.rm_link import RmLink
from licorne.lockcheck import Lock
from licorne.lockcheck.locks.rwlock import PlainRWLock
from licorne.model.limits.user_limits import UserLimits
from licorne.model.nodes.order import NodeOrder
from licorne.model.partition import Partition
from licorne.model.state.host import PartitionTimers
from licorne.model.state.partition_state import PartitionState
from licorne.proxy.core.resolvers import partition_resolvers, resolver


class Shared(NamedTuple):
    """The fields of a class that one lock guards; `written` may be read without it."""

    owner: type
    lock: str
    fields: tuple[str, ...]
    written: tuple[str, ...] = ()


SHARED: Final = (
    Shared(RmLink, "_changed", ("_ended", "_successors", "_delivers", "_closed")),
    Shared(
        SchedulingThreads,
        "_changed",
        ("_wanting", "_calling", "_workers", "_wanted_since", "_threads"),
        written=("closed",),
    ),
    Shared(GuardedPartition, "lock", ("_turn",)),
    Shared(RealClock, "_changed", ("_due", "_thread", "_closed")),
    Shared(resolver.CachedResolver, "_guard", ("_outage", "_cleaned_ns"), written=("_answers",)),
    Shared(partition_resolvers.TimedResolver, "_guard", ("_running",)),
)


IN_PLACE: Final[tuple[tuple[type, str], ...]] = (
    *((UserLimits, name) for name in ("_open", "_take_off")),
    *((NodeOrder, name) for name in ("fitting", "_reinsert", "_open", "_insert", "_discard")),
)
"""What changes these objects without binding a field anew, or walks over what others change so."""


class OwnedLock:
    """A plain lock that knows who holds it."""

    def __init__(self, _name: str = "") -> None:
        self._lock = Lock("owned")
        self._owner: int | None = None

    def __enter__(self) -> None:
        self._lock.acquire()
        self._owner = threading.get_ident()

    def __exit__(self, *_: object) -> None:
        self._owner = None
        self._lock.release()

    def _is_owned(self) -> bool:
        return self._owner == threading.get_ident()


class Watch:
    """Stands for a field, and notes every access without the lock once the object is made."""

    def __init__(self, shared: Shared, name: str, violations: list[str]) -> None:
        descriptor: Any = vars(shared.owner).get(name)
        self._slot = descriptor if hasattr(descriptor, "__set__") else None
        self._name = name
        self._shared = shared
        self._violations = violations

    def __get__(self, instance: Any, _owner: type) -> object:
        if instance is None:
            return self
        if self._name not in self._shared.written:
            self._look(instance, "read")
        return self._slot.__get__(instance) if self._slot is not None else instance.__dict__[self._name]

    def __set__(self, instance: Any, value: object) -> None:
        self._look(instance, "written")
        if self._slot is not None:
            self._slot.__set__(instance, value)
        else:
            instance.__dict__[self._name] = value

    def _look(self, instance: Any, how: str) -> None:
        if id(instance) in _MADE and not _is_owned(getattr(instance, self._shared.lock)):
            label = f"{self._shared.owner.__name__}.{self._name}"
            self._violations.append(f"{label} is {how} without {self._shared.lock}")


_MADE: Final[dict[int, object]] = {}
"""Objects the constructors of which have ended; kept, so that nothing else gets the place of one."""


class Watching:
    """What stands in for something else until the end, and what was found."""

    def __init__(self) -> None:
        self.violations: list[str] = []
        self._before: list[tuple[Any, str, object]] = []

    def put(self, owner: Any, name: str, value: object) -> None:
        """Replace an attribute."""
        self._before.append((owner, name, vars(owner).get(name, _ABSENT)))
        setattr(owner, name, value)

    def put_back(self) -> None:
        """Undo all that was replaced."""
        for owner, name, value in reversed(self._before):
            delattr(owner, name) if value is _ABSENT else setattr(owner, name, value)
        _MADE.clear()


@contextmanager
def classes_watched(classes: Iterable[Shared], modules: Iterable[ModuleType]) -> Iterator[Watching]:
    """Watch the shared fields of classes whose modules make the locks; what is found fails at the end."""
    watching = Watching()
    for module in modules:
        watching.put(module, "Lock", OwnedLock)
    for shared in classes:
        for name in (*shared.fields, *shared.written):
            watching.put(shared.owner, name, Watch(shared, name, watching.violations))
        watching.put(shared.owner, "__init__", _noted(vars(shared.owner)["__init__"]))
    try:
        yield watching
    finally:
        watching.put_back()
    assert [] == sorted(set(watching.violations))


@contextmanager
def fields_watched() -> Iterator[list[str]]:
    """Watch all shared fields; what is found goes to the list, and fails at the end."""
    sharing = threading.local()
    with classes_watched(SHARED, (resolver, partition_resolvers)) as watching:
        put, violations = watching.put, watching.violations
        put(Partition, "place_concurrently", _reported_by(Partition.place_concurrently, sharing))
        for woven in INSTRUMENTED.values():
            put(woven, "__setattr__", _looked_at(sharing, violations, _holds_its_lock))
        for kind, name in IN_PLACE:
            put(kind, name, _called_under_its_lock(vars(kind)[name], sharing, violations))
        for kind in (PartitionState, PartitionTimers):
            put(kind, "__setattr__", _looked_at(sharing, violations, lambda _: False))
        yield violations


_ABSENT: Final = object()


def _reported_by(place: Callable[[Any], object], sharing: threading.local) -> Callable[[Any], object]:
    """Have it known which thread shares a partition."""

    @functools.wraps(place)
    def reported(partition: object) -> object:
        sharing.now = True
        try:
            return place(partition)
        finally:
            sharing.now = False

    return reported


def _looked_at(
    sharing: threading.local, violations: list[str], allows: Callable[[Any], bool]
) -> Callable[[Any, str, object], None]:
    """Note what is written while the thread shares a partition, and must not be."""

    def set_looked_at(instance: Any, name: str, value: object) -> None:
        if getattr(sharing, "now", False) and not allows(instance):
            violations.append(f"{type(instance).__name__}.{name} is written in a shared partition")
        object.__setattr__(instance, name, value)

    return set_looked_at


def _called_under_its_lock(
    method: Callable[..., object], sharing: threading.local, violations: list[str]
) -> Callable[..., object]:
    """Note where a method is called without the lock of the object while the thread shares a partition."""

    @functools.wraps(method)
    def called(instance: Any, *args: object, **kwargs: object) -> object:
        if getattr(sharing, "now", False) and not _holds_its_lock(instance):
            violations.append(f"{type(instance).__name__}.{method.__name__} is called in a shared partition")
        return method(instance, *args, **kwargs)

    return called


def _holds_its_lock(woven: Any) -> bool:
    return _is_owned(woven.lock)


def _is_owned(lock: Any) -> bool:
    """Return whether this thread holds a lock; one that can be read, whether it holds it for writing."""
    if isinstance(lock, PlainRWLock):
        return lock.holders()[0] == threading.get_ident()
    return bool(lock._is_owned())


def _noted(make: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(make)
    def noted(instance: object, *args: object, **kwargs: object) -> None:
        make(instance, *args, **kwargs)
        _MADE[id(instance)] = instance

    return cast("Callable[..., None]", noted)
