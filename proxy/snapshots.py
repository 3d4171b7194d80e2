"""One document of everything: what a transcript writes for `snapshot`."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ..model.application_views import application_view
from ..model.messages import short_partition_name
from ..model.partition_views import node_view

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..model.partition import Partition
    from ..model.views import Document, Json

__all__ = ["snapshot"]


def snapshot(partitions: Sequence[Partition]) -> Document:
    """Return the documents of the REST interface, those of a partition under its short name.

    Where several RMs have a partition of one name, each is under its full name, `[rm]default`.
    """
    shared = Counter(short_partition_name(partition.name) for partition in partitions)
    named = [(_key(partition.name, shared), partition) for partition in partitions]
    infos: list[Json] = [partition.view() for _, partition in named]
    return {
        "partitions": infos,
        "queues": {name: partition.queues_view() for name, partition in named},
        "nodes": {name: [*map(node_view, partition.shown_nodes())] for name, partition in named},
        "applications": {
            name: [*map(application_view, partition.shown_applications())] for name, partition in named
        },
        "users": {name: [*partition.users_view()] for name, partition in named},
        "groups": {name: [*partition.groups_view()] for name, partition in named},
    }


def _key(full_name: str, shared: Counter[str]) -> str:
    short = short_partition_name(full_name)
    return full_name if shared[short] > 1 else short
