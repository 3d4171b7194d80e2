"""The line in the log with the resources that an application has used, once it has ended."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...actors.log import Log
    from ...model.values.documents import Document

__all__ = ["summariser"]


@final
class _Summary:
    """A document that is converted to text only if its log record is written."""

    __slots__ = ("_document",)

    def __init__(self, document: Document) -> None:
        self._document = document

    def __str__(self) -> str:
        return json.dumps(self._document)


def summariser(rm_id: str, log: Log) -> Callable[[Document], None]:
    """Return the function that logs one RM's application summaries; operators search for their first word."""

    def summarise(document: Document) -> None:
        log.info("YK_APP_SUMMARY: {}", _Summary(document | {"RmID": rm_id}))  # noqa: PLE1205 - loguru's braces

    return summarise
