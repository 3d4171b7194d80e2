"""The callback that a link registers at its worker: what the worker says goes to the link."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias, final

from ...si import si_pb2 as si
from ...si.api import ResourceManager, ResourceManagerCallback
from ...si.arguments import ask_predicate
from ..client.recovery_watcher import Watcher

if TYPE_CHECKING:
    from google.protobuf.message import Message

Hear: TypeAlias = "Callable[[str, Message | Sequence[si.EventRecord]], None]"
"""Takes what a worker says: the name of the callback, and its argument."""


def _nothing(_: str) -> None:
    """Do nothing."""


class SessionCallback(Watcher):
    """The callback for one session with a worker; questions of the worker go to the RM itself.

    Args:
        callback: The callback of the RM.
        hear: Gets everything else.
    """

    def __init__(self, callback: ResourceManagerCallback, hear: Hear) -> None:
        super().__init__(callback, lambda _: None, lambda response: response, lambda response: response)
        self._hear = hear
        self.replaced = _nothing  # The link learns it from the end of the session.

    def update_allocation(self, response: si.AllocationResponse) -> None:
        """Take placements, releases and rejections."""
        self._hear("update_allocation", response)

    def update_application(self, response: si.ApplicationResponse) -> None:
        """Take answers about applications, and changes of state."""
        self._hear("update_application", response)

    def update_node(self, response: si.NodeResponse) -> None:
        """Take accepted and rejected nodes."""
        self._hear("update_node", response)

    def send_event(self, events: Sequence[si.EventRecord]) -> None:
        """Take events."""
        self._hear("send_event", events)

    def update_container_scheduling_state(self, request: si.UpdateContainerSchedulingStateRequest) -> None:
        """Take a hint."""
        self._hear("update_container_scheduling_state", request)


@final
class _AskedSessionCallback(SessionCallback):
    """The callback for an RM that has predicates of its own; a worker asks no other one."""

    def predicates(self, args: si.PredicatesArgs) -> None:
        """Ask the RM."""
        ask_predicate(self._callback, args)


def session_callback(callback: ResourceManagerCallback, hear: Hear) -> SessionCallback:
    """Return the callback for a session; it has predicates only if that of the RM has."""
    asks = getattr(type(callback), "predicates", None) is not ResourceManager.predicates
    return (_AskedSessionCallback if asks else SessionCallback)(callback, hear)
