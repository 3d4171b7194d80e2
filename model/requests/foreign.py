"""Foreign allocations: what others run on the nodes, neither scheduled here nor charged to any queue."""

from __future__ import annotations

from typing import Final

from ..identifiers import id_refusal, names_refusal
from ..resources.texts import negative_text
from ..state.partition_state import PartitionState
from ..values.allocation import FOREIGN_TAG, Allocation, Ask
from ..values.events import ChangeType
from ..values.messages import AllocationSubmission
from ..values.rejections import RejectionCode, RejectionReason, invalid

_STATIC: Final = "static"


def submit_foreign(
    state: PartitionState, submission: AllocationSubmission, created_at_ns: int
) -> RejectionReason | None:
    """Add a foreign allocation, or change its size or node; return why it is refused."""
    key = submission.allocation_key
    if not key:
        return RejectionReason(
            RejectionCode.INVALID,
            f"the allocation key of a foreign allocation on node {submission.node_id!r} is empty",
        )
    bad = invalid(foreign_name_refusal(submission))
    if bad is not None:
        return bad
    if not submission.node_id:
        return RejectionReason(
            RejectionCode.INVALID, f"trying to add a foreign request (non-allocation) {key}"
        )
    entry = state.nodes.get(submission.node_id)
    if entry is None:
        return RejectionReason(
            RejectionCode.NODE_UNKNOWN, f"failed to find node {submission.node_id} for allocation {key}"
        )
    refusal = invalid(negative_text(f"the resource of the foreign allocation {key}", submission.resource))
    if refusal is not None:
        return refusal
    before = state.foreign.get(key)
    if before is not None and before.node_id != submission.node_id:
        remove_foreign(state, key)
    ask = Ask(
        allocation_key=key,
        application_id="",
        resource=submission.resource,
        created_at_ns=created_at_ns,
        priority=submission.priority,
        tags=submission.tags,
        allow_preempt_self=submission.tags[FOREIGN_TAG] != _STATIC,
    )
    allocation = Allocation(ask, entry.node_id, state.now_ns(), entry.instance_type)
    if key not in state.foreign:
        state.events.note_on_node(ChangeType.ADD, allocation)
    state.foreign[key] = allocation
    state.nodes.give_unscored(entry, entry.node.put_foreign(allocation))
    return None


def foreign_name_refusal(submission: AllocationSubmission) -> str | None:
    """Return which name in a foreign allocation is not one, `None` if all are."""
    return (
        id_refusal("the key of a foreign allocation", submission.allocation_key)
        or names_refusal("a resource type of a foreign allocation", submission.resource)
        or names_refusal("a tag of a foreign allocation", submission.tags)
    )


def remove_foreign(state: PartitionState, key: str) -> None:
    """Remove a foreign allocation; one that is not known is gone already."""
    allocation = state.foreign.pop(key, None)
    entry = state.nodes.get(allocation.node_id) if allocation is not None else None
    if entry is not None and allocation is not None:
        state.events.note_on_node(ChangeType.REMOVE, allocation)
        state.nodes.give_unscored(entry, entry.node.remove_foreign(key))
