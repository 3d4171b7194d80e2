"""What is shown of queues: their values at one moment, copied so that documents can be made elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ..configuration.queue_properties import QueueProperties
from ..resources.resource import Resource
from ..values.object_state import ObjectState
from .queue import Queue
from .template import QueueTemplate

__all__ = ["ShownQueue", "shown_path", "shown_tree"]


class ShownQueue(NamedTuple):
    """One queue, with those below it where they are shown."""

    path: str
    state: ObjectState
    is_leaf: bool
    managed: bool
    properties: Mapping[str, str]
    settings: QueueProperties
    template: QueueTemplate | None
    guaranteed: Resource | None
    maximum: Resource | None
    allocated: Resource
    pending: Resource
    preempting: Resource
    max_applications: int
    running: int
    accepted_allocating: tuple[str, ...]
    priority: int
    """As the parent sees it."""
    child_names: tuple[str, ...]
    """The names of all children, without their paths, sorted."""
    children: tuple[ShownQueue, ...]
    """By name; empty where they are not shown."""


def shown_tree(queue: Queue) -> ShownQueue:
    """Copy a queue and all queues below it."""
    names = sorted(queue.children)
    return _shown(queue, names, tuple(shown_tree(queue.children[name]) for name in names))


def shown_path(queue: Queue, *, subtree: bool = False) -> tuple[ShownQueue, ...]:
    """Copy a queue and those above it, which limit it; the queue comes first.

    Args:
        queue: The queue.
        subtree: Whether all queues below it are copied, too.
    """
    shown = shown_tree(queue) if subtree else _shown(queue, sorted(queue.children), ())
    return (shown, *(_shown(above, sorted(above.children), ()) for above in queue.above[1:]))


def _shown(queue: Queue, names: list[str], children: tuple[ShownQueue, ...]) -> ShownQueue:
    return ShownQueue(
        queue.path,
        queue.state,
        queue.is_leaf,
        queue.managed,
        queue.properties,
        queue.settings,
        queue.template,
        queue.guaranteed,
        queue.maximum,
        queue.allocated,
        queue.pending,
        queue.preempting,
        queue.max_applications,
        queue.running,
        tuple(sorted(queue.accepted_allocating)),
        queue.exposed_priority,
        tuple(names),
        children,
    )
