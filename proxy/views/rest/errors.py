"""Answers that are errors, as clients of the REST interface expect them."""

from __future__ import annotations

from starlette.responses import Response

from ...core.documents.monitoring import ErrorDocument
from .responses import json_response


class RestError(Exception):
    """A request that is answered with an error."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


def error_response(status: int, message: str) -> Response:
    """Return the answer with an error: its status, and a document with the message."""
    document: ErrorDocument = {"status_code": status, "message": message, "description": message}
    return json_response(document, status=status)
