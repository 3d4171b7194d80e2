"""Allocations that exist on a node when it is created: they are recovered with it, or it is rejected."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..values.allocation import FOREIGN_TAG
from ..values.identifiers import id_refusal
from .allocations import submission_refusal, submit_allocations

if TYPE_CHECKING:
    from ..state.partition_state import PartitionState
    from ..values.messages import AllocationSubmission, NodeUpdate

__all__ = ["existing_refusal", "recover_existing"]


def existing_refusal(state: PartitionState, update: NodeUpdate) -> str | None:
    """Return why a node cannot be created with what exists on it, `None` if it can; nothing has changed."""
    owners: dict[str, str] = {}
    for allocation in update.existing:
        reason = _refusal(state, update, allocation, owners)
        if reason is not None:
            return (
                f"failure while adding new node {update.node_id}: its existing allocation "
                f"{allocation.allocation_key} is refused: {reason}"
            )
        owners[allocation.allocation_key] = allocation.application_id
    return None


def _refusal(
    state: PartitionState, update: NodeUpdate, allocation: AllocationSubmission, owners: dict[str, str]
) -> str | None:
    key, name = allocation.allocation_key, allocation.application_id
    if allocation.node_id != update.node_id:
        return f"it is on node {allocation.node_id}"
    if allocation.partition != state.name:
        return f"it is in partition {allocation.partition}"
    if key in owners:
        return "it is there twice"
    if FOREIGN_TAG in allocation.tags:
        if not key:
            return "its allocation key is empty"
        bad = id_refusal("its allocation key", key)
        if bad is not None:
            return bad
        before = state.foreign.get(key)
        return None if before is None else f"it runs on node {before.node_id}"
    reason = submission_refusal(state, allocation, is_node_new=True)
    if reason is not None:
        return reason
    placed = state.entries[name].application.allocations.get(key)
    if placed is not None:
        return f"it runs on node {placed.node_id}"
    record = state.entries[name].application.asks.record(key)
    return "it is about to run elsewhere" if record is not None and record.placed else None


def recover_existing(state: PartitionState, update: NodeUpdate) -> None:
    """Recover what exists on a node that has been created: nothing of it is refused."""
    rejections = submit_allocations(state, update.existing)
    assert not rejections, f"{rejections}: please report"
