"""What the queues and users of a partition have used, to be kept over a restart."""

from __future__ import annotations

from ..queues.use_order import KeptUse
from ..queues.users import path_of_user
from ..state.partition_state import PartitionState

__all__ = ["use_to_keep"]


def use_to_keep(state: PartitionState) -> KeptUse:
    """Return the decayed use of all queues and users, also of those that are gone."""
    uses = dict(state.tree.root.departed.items())
    for queue in state.tree:
        if queue.decayed is not None:
            uses[queue.path] = queue.decayed
        users = queue.entries.users
        for name, place in () if users is None else users.places.items():
            if place.decayed is not None:
                uses[path_of_user(queue, name)] = place.decayed
    return KeptUse(state.now_ns(), {path: use for path, use in sorted(uses.items()) if use.types})
