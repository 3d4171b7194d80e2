"""Errors between a program and an API server."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

import msgspec

from licorne.proxy.kubernetes.decoding import resolve_structs

from ....model.errors import LicorneError

_BODY_LENGTH_MAX: Final = 300


class _StatusDocument(msgspec.Struct, frozen=True):
    """The answer of an API server instead of the object: `Status` of Kubernetes."""

    kind: str = ""
    message: str = ""
    reason: str = ""
    code: int = 0


class ApiError(LicorneError):
    """An API server has refused a request.

    With a status below 500 nothing was changed. From 500 on a write may have been carried out nevertheless.

    Args:
        status: The status of HTTP, for example 409.
        reason: The word of Kubernetes for it, for example `Conflict` or `AlreadyExists`.
        message: The sentence of the server.
        retry_after_seconds: When the server asks for a retry; `None` without such a time.
    """

    def __init__(
        self, status: int, reason: str, message: str, retry_after_seconds: float | None = None
    ) -> None:
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after_seconds = retry_after_seconds
        super().__init__(f"{status} {reason}: {message}")

    @classmethod
    def of_answer(cls, status: int, body: bytes, retry_after: str | None = None) -> ApiError:
        """Return the error for an answer of HTTP.

        Args:
            status: The status of HTTP.
            body: A `Status` document, or a text of a server in between.
            retry_after: The header of this name.
        """
        document = _status_document(body)
        seconds = float(retry_after) if retry_after is not None and retry_after.isdecimal() else None
        if document is None:
            text = body[:_BODY_LENGTH_MAX].decode("utf-8", "replace").strip()
            return cls(status, _phrase(status), text or "no message", seconds)
        return cls(status, document.reason or _phrase(status), document.message or "no message", seconds)

    @classmethod
    def of_event(cls, document: bytes | msgspec.Raw) -> ApiError:
        """Return the error in an event of a watch; its object is a `Status` document."""
        status = _status_document(document)
        if status is None:
            return cls(500, _phrase(500), "the watch delivered an error without a Status document")
        return cls(status.code or 500, status.reason, status.message)


class ApiUnreachable(LicorneError):  # noqa: N818 - a state of the server of unknown duration
    """An API server was not reached, or its answer was lost: the call may have been carried out."""


class CredentialError(LicorneError):
    """The credentials cannot be used: a plugin failed, or the server's certificate is not trusted."""


def _status_document(body: bytes | msgspec.Raw) -> _StatusDocument | None:
    """Return the `Status` document in a body, `None` if it has none."""
    try:
        document = msgspec.json.decode(body, type=_StatusDocument)
    except msgspec.DecodeError:
        return None
    return document if document.kind == "Status" else None


def _phrase(status: int) -> str:
    """Return the phrase of a status of HTTP."""
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "unknown status"


resolve_structs(__name__)
