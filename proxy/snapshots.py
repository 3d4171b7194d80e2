"""One document of everything: what a transcript writes for `snapshot`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..model.messages import short_partition_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..model.partition import Partition
    from ..model.views import Document, Json

__all__ = ["snapshot"]


def snapshot(partitions: Sequence[Partition]) -> Document:
    """Return the documents of the REST interface, those of a partition under its short name."""
    named = [(short_partition_name(partition.name), partition) for partition in partitions]
    infos: list[Json] = [partition.view() for _, partition in named]
    return {
        "partitions": infos,
        "queues": {name: partition.queues_view() for name, partition in named},
        "nodes": {name: [*partition.nodes_view()] for name, partition in named},
        "applications": {name: [*partition.applications_view()] for name, partition in named},
        "users": {name: [*partition.users_view()] for name, partition in named},
        "groups": {name: [*partition.groups_view()] for name, partition in named},
    }
