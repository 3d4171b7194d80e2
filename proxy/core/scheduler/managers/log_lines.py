"""Lines in the log: the values that a record has besides its text, and what an application has used."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final, final

from .....actors.services.log import Log
from .....model.applications.report import ApplicationSummary
from .....model.values.messages import (
    AllocationPlaced,
    AllocationsRejected,
    AllocationsReleased,
    ApplicationsAnswered,
    NodesAnswered,
)

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


@final
class _Summary:
    """A summary that is converted to text only if its log record is written."""

    __slots__ = ("_rm_id", "_summary")

    def __init__(self, rm_id: str, summary: ApplicationSummary) -> None:
        self._rm_id = rm_id
        self._summary = summary

    def __str__(self) -> str:
        from ...documents.applications import summary_document  # noqa: PLC0415 - most are not written

        return json.dumps(summary_document(self._summary) | {"RmID": self._rm_id})


def summariser(rm_id: str, log: Log) -> Callable[[ApplicationSummary], None]:
    """Return the function that logs one RM's application summaries; operators search for their first word."""

    def summarise(summary: ApplicationSummary) -> None:
        fields = {"application": summary.application_id, "queue": summary.queue_path}
        log.bind(**fields).info("YK_APP_SUMMARY: {}", _Summary(rm_id, summary))

    return summarise
