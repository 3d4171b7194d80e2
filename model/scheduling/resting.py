"""What a visit of a leaf concludes from a walk without result: which applications rest, and for what.

An application rests if each shape of its asks was refused for a lack of room, in the queues or on the nodes:
then the same changes give room to all that have asks of the same sizes (`licorne.model.queues.waiting`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ..queues.waiting import RestKind
from ..resources.resource import fits_undefined_unlimited
from ..values.refusals import RefusalReason

if TYPE_CHECKING:
    from collections.abc import Container

    from ..applications.ask_walk import AskWalk
    from ..queues.queue import Queue
    from ..resources.resource import Resource

__all__ = ["LACKS_ROOM", "Rest", "barred_sizes", "rest_after"]

LACKS_ROOM: Final = (RefusalReason.NO_NODE_FITS, RefusalReason.QUEUE_QUOTA)
"""Why an ask is refused that has no room."""

_SIZES_MAX: Final = 8
"""An application with asks of more sizes does not rest."""


class Rest(NamedTuple):
    """What may give an application room, and when time alone may."""

    kind: RestKind
    until_ns: int | None


def rest_after(walk: AskWalk, closed: Container[Resource], *, sought_node: bool) -> Rest | None:
    """Return how an application rests after a walk over all its asks, `None` if it does not.

    Args:
        walk: It ended without result, and no preemption was tried: it has the refusal of each shape.
        closed: Sizes for which no node has room.
        sought_node: A node to reserve was sought for one of the asks.
    """
    sizes: dict[Resource, None] = {}
    until_ns = walk.retry_ns
    may_reserve = sought_node
    for refusal in walk.refusals:
        if refusal.reason is RefusalReason.WAITS_FOR_PLACEHOLDER:
            continue  # That changes with the application itself.
        size = refusal.asked
        if size is None or refusal.reason not in LACKS_ROOM:
            return None
        sizes[size] = None
        if refusal.reason is RefusalReason.QUEUE_QUOTA:
            may_reserve = walk.reservations_on  # It has not been tried for one.
        elif size not in closed:
            return None
        if refusal.until_ns is not None and (until_ns is None or refusal.until_ns < until_ns):
            until_ns = refusal.until_ns
    return Rest(RestKind(tuple(sizes), may_reserve), until_ns) if len(sizes) <= _SIZES_MAX else None


def barred_sizes(leaf: Queue, headroom: Resource | None) -> frozenset[Resource]:
    """Return the sizes waiting in a leaf that do not fit its headroom."""
    if headroom is None:
        return frozenset()
    return frozenset(size for size in leaf.entries.sizes if not fits_undefined_unlimited(headroom, size))
