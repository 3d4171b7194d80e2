"""What a log line is about, as values that its record has besides the text."""

from __future__ import annotations

from typing import Final

from ....model.values.messages import (
    AllocationPlaced,
    AllocationsRejected,
    AllocationsReleased,
    ApplicationsAnswered,
    NodesAnswered,
)

__all__ = ["announcement_fields"]

_FIELDS: Final = {
    "partition": "partition",
    "application_id": "application",
    "allocation_key": "allocation_key",
    "node_id": "node",
}


def announcement_fields(announcement: object) -> dict[str, str]:
    """Return the partition, application, allocation and node of an announcement about one thing."""
    subject = announcement
    match announcement:
        case AllocationPlaced(allocation=allocation):
            fields = {"application": allocation.ask.application_id, "node": allocation.node_id}
            return {**fields, "allocation_key": allocation.allocation_key}
        case AllocationsReleased(releases=(release,)):
            subject = release
        case AllocationsRejected(rejections=(rejection,)):
            subject = rejection
        case ApplicationsAnswered(accepted=accepted, rejected=rejected):
            names = (*accepted, *(one.subject_id for one in rejected))
            return {"application": names[0]} if len(names) == 1 else {}
        case NodesAnswered(accepted=accepted, rejected=rejected):
            names = (*accepted, *(one.subject_id for one in rejected))
            return {"node": names[0]} if len(names) == 1 else {}
        case _:
            pass
    return {field: value for name, field in _FIELDS.items() if (value := getattr(subject, name, ""))}
