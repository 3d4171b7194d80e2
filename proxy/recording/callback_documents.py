"""Callbacks as they stand in a transcript: the name of the message, and its JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from ...model.values.documents import Document, Json
from ...model.values.messages import Announcement
from ..si import si_pb2 as si
from ..si.api import ResourceManager
from ..si.writing import dispatch

__all__ = ["CALLBACK_KEYS", "CallbackWriter", "callback_document"]

CALLBACK_KEYS: Final = {
    "nodeResponse": "update_node",
    "applicationResponse": "update_application",
    "allocationResponse": "update_allocation",
    "schedulingState": "update_container_scheduling_state",
}
"""The callbacks by the names of their messages in a transcript."""


class CallbackWriter(ResourceManager):
    """A resource manager that hands its callbacks to a function, as JSON by the name of the message."""

    def __init__(self, write: Callable[[str, Json], None]) -> None:
        self._write = write

    def update_node(self, response: si.NodeResponse) -> None:
        """Write answers about nodes."""
        self._write("nodeResponse", _json(response))

    def update_application(self, response: si.ApplicationResponse) -> None:
        """Write answers about applications."""
        self._write("applicationResponse", _json(response))

    def update_allocation(self, response: si.AllocationResponse) -> None:
        """Write placements, releases and rejections."""
        self._write("allocationResponse", _json(response))

    def update_container_scheduling_state(self, request: si.UpdateContainerSchedulingStateRequest) -> None:
        """Write that an ask waits."""
        self._write("schedulingState", _json(request))


def _json(message: Message) -> Json:
    body: Json = MessageToDict(message, preserving_proto_field_name=True)
    return body


def callback_document(announcement: Announcement, *, older: bool) -> Document:
    """Return the callback of an announcement; nothing for an answer without entries, which is not sent."""
    document: Document = {}
    dispatch(announcement, CallbackWriter(document.__setitem__), older=older)
    return document
