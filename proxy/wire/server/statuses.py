"""Errors of the scheduler as statuses of gRPC."""

from __future__ import annotations

from typing import Final

import grpc

from ....actors.runtime.errors import ActorEndedError
from ....model.errors import LicorneError, ReplacedError, RequestError
from ...core.scheduler.answering.questions import UnavailableError

_DETAILS_BYTES_MAX: Final = 4_000
"""A status travels in headers, which peers bound to 8 KiB or so, with another status in its place."""


class StatusError(LicorneError):
    """A call is refused with a status of gRPC."""

    def __init__(self, code: grpc.StatusCode, text: str) -> None:
        super().__init__(text)
        self.code = code


class NotRegisteredError(StatusError):
    """The RM has not registered, or has to register again."""

    def __init__(self, text: str) -> None:
        super().__init__(grpc.StatusCode.FAILED_PRECONDITION, text)


def status_of(error: BaseException) -> tuple[grpc.StatusCode, str]:
    """Return the code and the text for an error; what is no refusal is a bug of ours."""
    if isinstance(error, StatusError):
        code = error.code
    elif isinstance(error, UnavailableError | ActorEndedError):
        code = grpc.StatusCode.UNAVAILABLE
    elif isinstance(error, ReplacedError):
        code = grpc.StatusCode.ABORTED
    elif isinstance(error, RequestError):
        code = grpc.StatusCode.INVALID_ARGUMENT
    else:
        code = grpc.StatusCode.INTERNAL
    text = str(error) if isinstance(error, LicorneError) else f"a bug of Licorne, please report: {error!r}"
    return code, _shortened(text)


def _shortened(text: str) -> str:
    """Return as much of a text as a status takes: all but the plain characters travel as three a byte."""
    size_bytes = 0
    for position, character in enumerate(text):
        is_plain = " " <= character <= "~" and character != "%"
        size_bytes += 1 if is_plain else 3 * len(character.encode(errors="replace"))
        if size_bytes > _DETAILS_BYTES_MAX:
            return f"{text[:position]} ..."
    return text
