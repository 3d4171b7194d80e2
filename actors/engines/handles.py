"""Handles: references to entities that live in actors, with the same marked methods.

For each entity class two classes are made once: the actor that owns an instance, and the handle whose
marked methods ask that actor. Methods without a mark do not exist on a handle, except the identity that
never changes (`node_id`, `application_id`, `name`, ...), which is copied. For each part of an entity
(`application.asks`) the handle has another handle, which asks the same actor.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import Any, ClassVar, Final, TypeVar, cast

from ...model.applications.allocations import ApplicationAllocations, ApplicationSwaps
from ...model.applications.application import Application
from ...model.applications.asks import ApplicationAsks
from ...model.applications.pending_asks import ApplicationReservations
from ...model.cluster import Cluster
from ...model.errors import LicorneError
from ...model.marks import marked_methods
from ...model.nodes.node import Node
from ...model.partition import Partition
from ...model.state.partition_state import BrokenKind
from ..runtime.actor import PooledActor
from ..runtime.dispatcher import Dispatcher
from ..runtime.reference import PooledRef

Entity = TypeVar("Entity")
RANKS: Final[dict[type, int]] = {Cluster: 0, Partition: 1, Application: 2, Node: 3}
"""The order of calls between actors: a blocking call goes from a lower number to a higher one only."""
IDENTITY: Final[dict[type, tuple[str, ...]]] = {
    Cluster: (),
    Partition: ("name", "rm_id"),
    Application: ("application_id", "partition", "user", "tags", "gang_settings"),
    Node: ("node_id", "attributes", "instance_type"),
}
"""The attributes that a handle copies from an entity: they never change."""
PARTS: Final[dict[type, dict[str, type]]] = {
    Cluster: {},
    Partition: {},
    Application: {
        "asks": ApplicationAsks,
        "reservations": ApplicationReservations,
        "allocations": ApplicationAllocations,
        "swaps": ApplicationSwaps,
    },
    Node: {},
}
"""The parts of an entity that have marked methods, by the names of its attributes."""
_ORIGIN: Final = "_licorne_origin"
"""An attribute of the error itself: a wrapper would show callers another error than was raised."""


class EntityActor(PooledActor):
    """The owner of one entity; it runs one call at a time."""

    survives_failures: ClassVar[bool] = True

    def __init__(self, entity: Any) -> None:
        super().__init__()
        self.entity = entity

    def __str__(self) -> str:
        return f"{type(self.entity).__name__} actor"

    def actor_class_and_key(self) -> tuple[str, object]:
        """Return the class that `LOCK_ORDER` has for the entity's actor, and the entity's name."""
        entity_class = next(known for known in RANKS if isinstance(self.entity, known))
        identity = IDENTITY[entity_class]
        return f"{entity_class.__name__.lower()}-actor", getattr(
            self.entity, identity[0]
        ) if identity else None

    def _note_returned(self, error: BaseException) -> None:
        if isinstance(error, LicorneError):
            return  # The caller gets the refusal; it may hold locks, so nothing is logged here.
        super()._note_returned(error)
        if note_origin(error, self.entity):
            log = self.dispatcher.log.bind(**_log_fields(self.entity))
            log.error("{} broke, please report:", self, error=error)  # noqa: PLE1205 - loguru's braces


def _log_fields(entity: object) -> dict[str, str]:
    """Return what an entity is, for the records of the log."""
    match entity:
        case Application(application_id=name):
            return {"application": name}
        case Node(node_id=name):
            return {"node": name}
        case Partition(name=name):
            return {"partition": name}
        case _:
            return {}


class _Handle:
    """The handle of an entity that lives in an actor."""

    __slots__ = ("_inbox", "_ref")

    _functions: ClassVar[dict[str, Callable[..., Any]]]
    _parts: ClassVar[dict[str, type[_Handle]]]

    def __init__(self, ref: PooledRef[Any]) -> None:
        self._ref = ref
        self._inbox: Any = ref.actor_inbox


def _delegate(function: Callable[..., Any], owner: Callable[[EntityActor], Any]) -> Callable[..., Any]:
    def run(actor: EntityActor, *args: Any, **kwargs: Any) -> Any:
        return function(owner(actor), *args, **kwargs)

    return run


def _ask(
    function: Callable[..., Any], run: Callable[..., Any], owner: Callable[[EntityActor], Any]
) -> Callable[..., Any]:
    """Make a method of a handle: a faster `PooledRef.call`, since all asks come this way."""

    def ask(handle: _Handle, *args: Any, **kwargs: Any) -> Any:
        inbox = handle._inbox  # noqa: SLF001 - a handle's own
        actor = inbox.enter() if inbox.direction is None else None
        if actor is None:
            return handle._ref.call(run, *args, **kwargs)  # noqa: SLF001 - a handle's own
        try:
            return function(owner(actor), *args, **kwargs)
        except BaseException as error:
            actor._raised_inline(error, run)  # noqa: SLF001 - an actor and its references are one
            raise
        finally:
            inbox.leave()

    return ask


def _make(entity_class: type, known: type) -> tuple[type[EntityActor], type[_Handle]]:
    actor_class = type(f"{entity_class.__name__}Actor", (EntityActor,), {"rank": RANKS[known]})
    parts = {name: _make_handle(part, f"entity.{name}", (), {}) for name, part in PARTS[known].items()}
    handle_class = _make_handle(entity_class, "entity", IDENTITY[known], parts)
    return cast("type[EntityActor]", actor_class), handle_class


def _make_handle(
    kind: type, path: str, identity: tuple[str, ...], parts: dict[str, type[_Handle]]
) -> type[_Handle]:
    """Make the handle of an entity, or of a part of one: `path` leads to it from the actor."""
    methods = {name: getattr(kind, name) for name in marked_methods(kind)}
    owner = attrgetter(path)
    functions = {name: _delegate(method, owner) for name, method in methods.items()}
    members: dict[str, Any] = {name: _ask(method, functions[name], owner) for name, method in methods.items()}
    members["__slots__"] = (*identity, *parts)
    members["__doc__"] = f"A {kind.__name__} that lives in an actor."
    members["_functions"] = functions
    members["_parts"] = parts
    return cast("type[_Handle]", type(f"{kind.__name__}Handle", (_Handle,), members))


@cache
def _classes_for(entity_class: type) -> tuple[type, type[EntityActor], type[_Handle]]:
    """Return the entity class that a class is or extends, and the actor and handle for the class itself."""
    known = next(known for known in RANKS if issubclass(entity_class, known))
    return known, *_make(entity_class, known)


def adopt(entity: Entity, dispatcher: Dispatcher, actor_class: type[EntityActor] | None = None) -> Entity:
    """Start an actor that owns the entity; return a handle, which has the entity's marked methods.

    The methods of a class that extends an entity class are its own ones.
    """
    entity_class: type = type(entity)
    known, made, handle_class = _classes_for(entity_class)
    ref = dispatcher.start(actor_class or made, entity)
    handle = handle_class(ref)
    for name in IDENTITY[known]:
        setattr(handle, name, getattr(entity, name))
    for name, part_class in handle_class._parts.items():  # noqa: SLF001 - made here
        setattr(handle, name, part_class(ref))
    return cast("Entity", handle)


def reference_of(handle: object) -> PooledRef[Any]:
    """Return the reference that a handle asks."""
    assert isinstance(handle, _Handle), f"expected a handle, got {handle!r}: please report"
    return handle._ref  # noqa: SLF001 - the only access to it


def message_function(handle: object, name: str) -> Callable[..., Any]:
    """Return the function that runs a marked method when it is sent to the handle's actor as a message."""
    assert isinstance(handle, _Handle), f"expected a handle, got {handle!r}: please report"
    return handle._functions[name]  # noqa: SLF001 - made here


def note_origin(error: BaseException, entity: object) -> bool:
    """Note on an error that an entity raised it; return whether that was noted.

    It is not noted if the error came from another entity below, or if it is no sign of a bug: misuse by a
    caller, or a stopped actor, breaks nothing.
    """
    if isinstance(error, LicorneError) or origin_of(error) is not None:
        return False
    setattr(error, _ORIGIN, entity)
    return True


def origin_of(error: BaseException) -> object | None:
    """Return the entity that raised an error first, `None` if it is not known."""
    return getattr(error, _ORIGIN, None)


def broken_entity(error: BaseException) -> tuple[BrokenKind, str, str] | None:
    """Return the kind and id of the application or node that broke, and why; `None` for other origins."""
    broken = origin_of(error)
    reason = f"{type(error).__name__}: {error}"
    if isinstance(broken, Application):
        return BrokenKind.APPLICATION, broken.application_id, reason
    if isinstance(broken, Node):
        return BrokenKind.NODE, broken.node_id, reason
    return None
