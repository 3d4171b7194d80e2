"""Handles: references to entities that live in actors, with the same marked methods.

For each entity class two classes are made once: the actor that owns an instance, and the handle whose
marked methods are asks to it. What is not marked does not exist on a handle, except the identity that
never changes (`node_id`, `application_id`, `name`, ...), which is copied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar, cast

from ..model.applications.application import Application
from ..model.cluster import Cluster
from ..model.errors import LicorneError
from ..model.marks import marked_methods
from ..model.nodes.node import Node
from ..model.partition import Partition
from .actor import PooledActor
from .breakage import blame

if TYPE_CHECKING:
    from collections.abc import Callable

    from .dispatcher import Dispatcher
    from .reference import PooledRef

__all__ = ["IDENTITY", "RANKS", "EntityActor", "adopt", "reference_of", "told"]

Entity = TypeVar("Entity")

RANKS: Final[dict[type, int]] = {Cluster: 0, Partition: 1, Application: 2, Node: 3}
"""The order of asks: a blocking ask goes from a lower number to a higher one only."""

IDENTITY: Final[dict[type, tuple[str, ...]]] = {
    Cluster: (),
    Partition: ("name", "rm_id"),
    Application: ("application_id", "partition", "user", "tags", "gang_settings"),
    Node: ("node_id", "attributes", "instance_type"),
}
"""What a handle has of an entity beside its marked methods: it never changes."""


class EntityActor(PooledActor):
    """The owner of one entity: whoever calls, one call at a time."""

    survives_failures: ClassVar[bool] = True

    def __init__(self, entity: Any) -> None:
        super().__init__()
        self.entity = entity

    def __str__(self) -> str:
        return f"{type(self.entity).__name__} actor"

    def asked_as(self) -> tuple[str, object]:
        """Return the class that `LOCK_ORDER` has for the entity's actor, and the entity's name."""
        entity_class = next(known for known in RANKS if isinstance(self.entity, known))
        identity = IDENTITY[entity_class]
        return f"{entity_class.__name__.lower()}-actor", getattr(
            self.entity, identity[0]
        ) if identity else None

    def _note_returned(self, error: BaseException) -> None:
        if isinstance(error, LicorneError):
            return  # A refusal, which the caller gets; who is asked may be so under the caller's locks.
        super()._note_returned(error)
        if blame(error, self.entity):
            log = self.dispatcher.log
            log.error("{} broke, please report:", self, error=error)  # noqa: PLE1205 - loguru's braces


class _Handle:
    """What stands for an entity elsewhere."""

    __slots__ = ("_inbox", "_ref")

    _actor_class: ClassVar[type[EntityActor]]
    _functions: ClassVar[dict[str, Callable[..., Any]]]

    def __init__(self, ref: PooledRef[Any]) -> None:
        self._ref = ref
        self._inbox: Any = ref.actor_inbox


def _delegate(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(actor: EntityActor, *args: Any, **kwargs: Any) -> Any:
        return function(actor.entity, *args, **kwargs)

    return run


def _ask(function: Callable[..., Any], run: Callable[..., Any]) -> Callable[..., Any]:
    """Make the handle's method: what `PooledRef.call` does, without its detours, since all asks come here."""

    def ask(handle: _Handle, *args: Any, **kwargs: Any) -> Any:
        inbox = handle._inbox  # noqa: SLF001 - a handle's own
        actor = inbox.enter() if inbox.direction is None else None
        if actor is None:
            return handle._ref.call(run, *args, **kwargs)  # noqa: SLF001 - a handle's own
        try:
            return function(actor.entity, *args, **kwargs)
        except BaseException as error:
            actor._raised_inline(error, run)  # noqa: SLF001 - an actor and its references are one
            raise
        finally:
            inbox.leave()

    return ask


def _make(entity_class: type) -> tuple[type[EntityActor], type[_Handle]]:
    methods = {name: getattr(entity_class, name) for name in marked_methods(entity_class)}
    functions = {name: _delegate(method) for name, method in methods.items()}
    actor_class = type(f"{entity_class.__name__}Actor", (EntityActor,), {"rank": RANKS[entity_class]})
    members: dict[str, Any] = {name: _ask(method, functions[name]) for name, method in methods.items()}
    members["__slots__"] = IDENTITY[entity_class]
    members["__doc__"] = f"A {entity_class.__name__} that lives in an actor."
    members["_actor_class"] = actor_class
    members["_functions"] = functions
    handle_class = type(f"{entity_class.__name__}Handle", (_Handle,), members)
    return cast("type[EntityActor]", actor_class), handle_class


_CLASSES: Final = {entity_class: _make(entity_class) for entity_class in RANKS}


def adopt(entity: Entity, dispatcher: Dispatcher, actor_class: type[EntityActor] | None = None) -> Entity:
    """Start an actor that owns the entity; return a handle, which has the entity's marked methods."""
    made, handle_class = _CLASSES[type(entity)]
    ref = dispatcher.start(actor_class or made, entity)
    handle = handle_class(ref)
    for name in IDENTITY[type(entity)]:
        setattr(handle, name, getattr(entity, name))
    return cast("Entity", handle)


def reference_of(handle: object) -> PooledRef[Any]:
    """Return the reference that a handle asks."""
    assert isinstance(handle, _Handle), f"{handle!r} is no handle: please report"
    return handle._ref  # noqa: SLF001 - the only door to it


def told(entity_class: type, name: str) -> Callable[..., Any]:
    """Return the function with which a marked method is told to an actor."""
    _, handle_class = _CLASSES[entity_class]
    return handle_class._functions[name]  # noqa: SLF001 - made here
