"""What is shown of queues: their values at one moment, copied; others make documents and rows of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ..configuration.queue_properties import QueueProperties
from ..queues.queue import Queue, QueueTemplate
from ..resources.decayed_use import decayed_means, rounded
from ..resources.resource import EMPTY, Resource
from ..values.object_state import ObjectState


class QueueView(NamedTuple):
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
    children: tuple[QueueView, ...]
    """By name; empty where they are not shown."""
    decayed_mean: Resource | None = None
    """What it has used on average, as far as that counts; `None` where its parent has no half-life."""
    lend: Resource | None = None
    withheld: Resource = EMPTY
    """What it keeps back of guarantees beyond what it uses (`licorne.model.queues.quota`)."""
    withheld_below: Resource = EMPTY
    """The sum of that of its children."""


def queue_view(queue: Queue, children: tuple[QueueView, ...] = ()) -> QueueView:
    """Copy a queue; `children` are those of its children that are shown with it."""
    return QueueView(
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
        tuple(sorted(queue.children)),
        children,
        None if queue.decayed is None else rounded(decayed_means(queue.decayed, queue.now_ns())),
        queue.lend,
        queue.withheld,
        queue.withheld_below,
    )


def queue_tree(queue: Queue) -> QueueView:
    """Copy a queue and all queues below it."""
    return queue_view(queue, tuple(queue_tree(queue.children[name]) for name in sorted(queue.children)))


def queue_and_above(queue: Queue, *, subtree: bool = False) -> tuple[QueueView, ...]:
    """Copy a queue and those above it, which limit it; the queue comes first.

    Args:
        queue: The queue.
        subtree: Whether all queues below it are copied, too.
    """
    first = queue_tree(queue) if subtree else queue_view(queue)
    return (first, *map(queue_view, queue.above[1:]))
