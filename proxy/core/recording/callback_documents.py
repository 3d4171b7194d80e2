"""Callbacks as they stand in a transcript: the name of the message, and its JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from ....model.values.documents import Document, Json
from ....model.values.messages import Announcement
from ...si import si_pb2 as si
from ...si.api import ResourceManager
from ...si.writing import dispatch

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
        self._write("nodeResponse", message_document(response))

    def update_application(self, response: si.ApplicationResponse) -> None:
        """Write answers about applications."""
        self._write("applicationResponse", message_document(response))

    def update_allocation(self, response: si.AllocationResponse) -> None:
        """Write placements, releases and rejections."""
        self._write("allocationResponse", message_document(response))

    def update_container_scheduling_state(self, request: si.UpdateContainerSchedulingStateRequest) -> None:
        """Write that an ask waits."""
        self._write("schedulingState", message_document(request))


def message_document(message: Message) -> Document:
    """Return the JSON of a message, without the codes of rejections: outcomes are as the recorded core's."""
    body: Document = MessageToDict(message, preserving_proto_field_name=True)
    for entries in body.values():
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, dict):
                entry.pop("code", None)
    return body


def callback_document(announcement: Announcement, *, older: bool) -> Document:
    """Return the callback of an announcement; nothing for an answer without entries, which is not sent."""
    document: Document = {}
    dispatch(announcement, CallbackWriter(document.__setitem__), older=older)
    return document
