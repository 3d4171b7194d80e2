"""The line in the log with the resources that an application has used, once it has ended."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, final

from ....model.applications.views import ApplicationSummary

if TYPE_CHECKING:
    from ....actors.services.log import Log

__all__ = ["summariser"]


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
