"""Messages as they are read from the wire."""

from __future__ import annotations

from typing import TypeVar

import grpc
from google.protobuf.message import DecodeError, Message

from .statuses import StatusError

__all__ = ["parsed"]

M = TypeVar("M", bound=Message)


def parsed(kind: type[M], data: bytes) -> M:
    """Read a message.

    Raises:
        StatusError: The bytes are none (INVALID_ARGUMENT).
    """
    try:
        return kind.FromString(data)
    except DecodeError as error:
        text = f"{len(data)} bytes that are no {kind.DESCRIPTOR.full_name}: {data[:16].hex(' ')}"
        raise StatusError(grpc.StatusCode.INVALID_ARGUMENT, f"{text} ({error})") from error
