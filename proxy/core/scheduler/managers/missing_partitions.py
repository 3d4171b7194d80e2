"""The answers to a resource manager that names a partition which does not exist."""

from __future__ import annotations

from collections.abc import Sequence

from .....model.requests.nodes import CREATIONS, update_refusal
from .....model.values.messages import (
    AllocationRejection,
    AllocationsRejected,
    AllocationSubmission,
    ApplicationsAnswered,
    ApplicationSubmission,
    NodeAction,
    NodesAnswered,
    NodeUpdate,
    Rejection,
    RejectionCode,
)
from .managers import Manager


def refuse_nodes(manager: Manager, partition: str, updates: Sequence[NodeUpdate]) -> None:
    """Refuse requests for nodes in a partition that does not exist, except their removal.

    An update that is not valid is refused in any case.
    """
    rejections = []
    for update in updates:
        reason, code = update_refusal(update), RejectionCode.INVALID
        if reason is None and update.action in CREATIONS:
            reason = f"failed to find partition {partition} for new node {update.node_id}"
            code = RejectionCode.PARTITION_UNKNOWN
        elif reason is None and update.action is not NodeAction.DECOMISSION:
            reason = f"failed to find partition {partition} of node {update.node_id}"
            code = RejectionCode.PARTITION_UNKNOWN
        if reason is not None:
            rejections.append(Rejection(update.node_id, reason, code))
    manager.counts.nodes_failed += len(rejections)
    manager.announce_now(NodesAnswered((), tuple(rejections)))


def refuse_applications(
    manager: Manager,
    partition: str,
    submissions: Sequence[ApplicationSubmission],
) -> None:
    """Refuse applications for a partition that does not exist."""
    rejections = tuple(
        Rejection(
            entry.application_id,
            f"Failed to add application {entry.application_id} to partition {partition}, "
            "partition doesn't exist",
            RejectionCode.PARTITION_UNKNOWN,
        )
        for entry in submissions
    )
    manager.announce_now(ApplicationsAnswered((), rejections))


def refuse_allocations(
    manager: Manager,
    partition: str,
    submissions: Sequence[AllocationSubmission],
) -> None:
    """Refuse asks and allocations for a partition that does not exist."""
    rejections = tuple(
        AllocationRejection(
            entry.allocation_key,
            entry.application_id,
            f"Failed to find partition {partition}, for application {entry.application_id} and "
            f"allocation {entry.allocation_key}",
            RejectionCode.PARTITION_UNKNOWN,
        )
        for entry in submissions
    )
    manager.announce_now(AllocationsRejected(rejections))
