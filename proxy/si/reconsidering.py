"""The message by which a resource manager has tried again what its predicates have refused."""

from __future__ import annotations

from collections.abc import Collection

from . import licorne_v1_pb2 as v1
from .api import Reconsidering

__all__ = ["reconsider", "reconsideration"]


def reconsideration(
    rm_id: str,
    partition: str | None,
    node_ids: Collection[str],
    allocation_keys: Collection[str],
    predicate_classes: Collection[str],
) -> v1.Reconsideration:
    """Return the message of a call."""
    return v1.Reconsideration(
        rm_id=rm_id,
        partition_name=partition or "",
        node_ids=node_ids,
        allocation_keys=allocation_keys,
        predicate_classes=predicate_classes,
    )


def reconsider(scheduler: Reconsidering, message: v1.Reconsideration) -> None:
    """Make the call that a message stands for."""
    scheduler.reconsider(
        message.rm_id,
        partition=message.partition_name or None,
        node_ids=message.node_ids,
        allocation_keys=message.allocation_keys,
        predicate_classes=message.predicate_classes,
    )
