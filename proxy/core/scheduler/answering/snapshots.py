"""One document of all partitions: the output of a transcript for `snapshot`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import cast

from .....model.partition import Partition
from .....model.values.documents import Document
from .....model.values.messages import short_partition_name
from .....model.views.shown import ShownPartition, shown_partition
from ...documents.applications import snapshot_application
from ...documents.clusters import snapshot_partition
from ...documents.nodes import node_document
from ...documents.queues import QueueDocument, queue_document
from ...documents.usages import group_document, user_document
from .asking import ask_each


def snapshot(partitions: Sequence[Partition]) -> Document:
    """Return the documents of the REST interface, those of a partition under its short name.

    If several RMs have a partition of one name, each is under its full name, `[rm]default`.
    """
    answers = ask_each(partitions, _shown)
    shared = Counter(short_partition_name(partition.name) for partition, _ in answers)
    named = [(_key(partition.name, shared), shown) for partition, shown in answers]
    documents = {
        "partitions": [snapshot_partition(shown.partition) for _, shown in named],
        "queues": {name: _queues(shown) for name, shown in named},
        "nodes": {name: [*map(node_document, shown.nodes)] for name, shown in named},
        "applications": {name: [*map(snapshot_application, shown.applications)] for name, shown in named},
        "users": {name: [*map(user_document, shown.users)] for name, shown in named},
        "groups": {name: [*map(group_document, shown.groups)] for name, shown in named},
    }
    return cast("Document", documents)


def _queues(shown: ShownPartition) -> QueueDocument:
    return queue_document((shown.root,), partition=short_partition_name(shown.partition.name))


def _shown(partition: Partition) -> ShownPartition:
    return partition.read(shown_partition)


def _key(full_name: str, shared: Counter[str]) -> str:
    short = short_partition_name(full_name)
    return full_name if shared[short] > 1 else short
