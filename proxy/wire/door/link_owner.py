"""The resource manager (RM) of a link, as the link sees it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from ....model.errors import LicorneError, ReplacedError
from ....model.values.documents import Document
from ...si import si_pb2 as si

if TYPE_CHECKING:
    from google.protobuf.message import Message

    from ...si.api import ResourceManagerCallback


class LinkOwner(Protocol):
    """The RM of a link, as the door knows it."""

    @property
    def rm_id(self) -> str:
        """Its id."""

    @property
    def callback(self) -> ResourceManagerCallback:
        """Its callback, which workers ask by predicates."""

    def registration(self) -> si.RegisterResourceManagerRequest:
        """Return how it registers at a worker: with the configuration that it has now."""

    def kept_use(self, partition: str) -> Document | None:
        """Return what a worker of a partition is to go on from, `None` for nothing."""

    def deliver(self, name: str, argument: Message | Sequence[si.EventRecord]) -> None:
        """Queue a callback; wait while too many wait."""

    def give_up(self, partition: str, error: ReplacedError) -> None:
        """End all links of the RM: another door, or another program, has registered it at a worker."""

    def note_failure(self, what: str, error: BaseException) -> None:
        """Report what could not be done."""


def report_doubt(owner: LinkOwner, partition: str, doubt: str, now_ns: int) -> None:
    """Report what the worker of a partition has said that cannot be, as a failure and as an event."""
    text = f"the worker of partition {partition!r} is not believed, and replaced: {doubt}"
    owner.note_failure(f"partition {partition!r}", LicorneError(text))
    event = si.EventRecord(objectID=partition, message=text, timestampNano=now_ns)
    owner.deliver("send_event", [event])
