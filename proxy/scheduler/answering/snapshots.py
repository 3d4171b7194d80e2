"""One document of all partitions: the output of a transcript for `snapshot`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ....model.partition import Partition
from ....model.values.documents import Document, Json
from ....model.values.messages import short_partition_name
from ....model.views.shown import ShownPartition, shown_partition
from ...documents.applications import application_document
from ...documents.clusters import partition_document
from ...documents.nodes import node_document
from ...documents.queues import queue_document
from ...documents.usages import group_document, user_document
from .asking import ask_each

__all__ = ["snapshot"]


def snapshot(partitions: Sequence[Partition]) -> Document:
    """Return the documents of the REST interface, those of a partition under its short name.

    If several RMs have a partition of one name, each is under its full name, `[rm]default`.
    """
    answers = ask_each(partitions, _shown)
    shared = Counter(short_partition_name(partition.name) for partition, _ in answers)
    named = [(_key(partition.name, shared), shown) for partition, shown in answers]
    infos: list[Json] = [partition_document(shown.partition) for _, shown in named]
    return {
        "partitions": infos,
        "queues": {name: _queues(shown) for name, shown in named},
        "nodes": {name: [*map(node_document, shown.nodes)] for name, shown in named},
        "applications": {name: [*map(application_document, shown.applications)] for name, shown in named},
        "users": {name: [*map(user_document, shown.users)] for name, shown in named},
        "groups": {name: [*map(group_document, shown.groups)] for name, shown in named},
    }


def _queues(shown: ShownPartition) -> Document:
    return queue_document((shown.root,), partition=short_partition_name(shown.partition.name))


def _shown(partition: Partition) -> ShownPartition:
    return partition.read(shown_partition)


def _key(full_name: str, shared: Counter[str]) -> str:
    short = short_partition_name(full_name)
    return full_name if shared[short] > 1 else short
