"""The callback that a recovery registers: it reads the answers, and passes the rest on to that of the RM."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import final

from ....model.errors import ReplacedError
from ...si import si_pb2 as si
from ...si.api import DeferredPredicates, ResourceManager, ResourceManagerCallback, StateDumpPlugin
from ...si.arguments import ask_predicate, replaced_hook


class Watcher(ResourceManager):
    """A callback around one that agrees to every node: a scheduler need not ask it.

    Args:
        callback: The callback of the RM.
        take_nodes: Called with each answer about nodes before the RM gets it.
        take_applications: Likewise; returns what the RM gets of it.
        take_allocations: Likewise.
        take_replaced: Called with the reason when another one has registered the RM; without it this hears
            the end of what it had instead, as every callback without the method `replaced`.
    """

    def __init__(
        self,
        callback: ResourceManagerCallback,
        take_nodes: Callable[[si.NodeResponse], None],
        take_applications: Callable[[si.ApplicationResponse], si.ApplicationResponse],
        take_allocations: Callable[[si.AllocationResponse], si.AllocationResponse],
        take_replaced: Callable[[str], object] | None = None,
    ) -> None:
        self._callback = callback
        self.speaks_for = callback
        if take_replaced is not None:
            self.replaced: Callable[[str], object] = partial(self._tell_replaced, take_replaced)
        self.is_muted = False
        """Whether the RM is not called any more: it has registered again, and has not lost what ends here."""
        self._take_nodes = take_nodes
        self._take_applications = take_applications
        self._take_allocations = take_allocations
        reconnected = getattr(callback, "reconnected", None)
        if reconnected is not None:
            self.reconnected = reconnected  # A remote scheduler calls it, see `RemoteScheduler`.
        if isinstance(callback, DeferredPredicates):
            self.ask_predicates = callback.ask_predicates  # Likewise, and asks in its own way.
            self.ask_preemption_predicates = callback.ask_preemption_predicates
        if isinstance(callback, StateDumpPlugin):
            self.get_state_dump = callback.get_state_dump  # A scheduler looks whether there is one.

    def update_allocation(self, response: si.AllocationResponse) -> None:
        """Take placements, releases and rejections; the RM gets those that it does not expect."""
        rest = self._take_allocations(response)
        if rest.ListFields() and not self.is_muted:
            self._callback.update_allocation(rest)

    def update_application(self, response: si.ApplicationResponse) -> None:
        """Take answers about applications, and changes of state."""
        rest = self._take_applications(response)
        if rest.ListFields() and not self.is_muted:
            self._callback.update_application(rest)

    def update_node(self, response: si.NodeResponse) -> None:
        """Take accepted and rejected nodes."""
        self._take_nodes(response)
        if not self.is_muted:
            self._callback.update_node(response)

    def _tell_replaced(self, take_replaced: Callable[[str], object], reason: str) -> None:
        """Take note that another one has registered the RM, which hears that if it can.

        Raises:
            ReplacedError: It cannot; this is reported as a failing callback is.
        """
        take_replaced(reason)
        hook = replaced_hook(self._callback)
        if hook is None:
            raise ReplacedError(reason)
        hook(reason)

    def preemption_predicates(
        self, args: si.PreemptionPredicatesArgs
    ) -> si.PreemptionPredicatesResponse | None:
        """Return what the RM answers."""
        return self._callback.preemption_predicates(args)

    def send_event(self, events: Sequence[si.EventRecord]) -> None:
        """Pass events on."""
        self._callback.send_event(events)

    def update_container_scheduling_state(self, request: si.UpdateContainerSchedulingStateRequest) -> None:
        """Pass a hint on."""
        if not self.is_muted:
            self._callback.update_container_scheduling_state(request)


@final
class _AskedWatcher(Watcher):
    """A callback around one that has predicates of its own."""

    def predicates(self, args: si.PredicatesArgs) -> None:
        """Ask the RM."""
        ask_predicate(self._callback, args)


def watcher_of(
    callback: ResourceManagerCallback,
    take_nodes: Callable[[si.NodeResponse], None],
    take_applications: Callable[[si.ApplicationResponse], si.ApplicationResponse],
    take_allocations: Callable[[si.AllocationResponse], si.AllocationResponse],
    take_replaced: Callable[[str], object] | None = None,
) -> Watcher:
    """Return the callback around that of an RM; it has predicates of its own only if that one has."""
    asks = getattr(type(callback), "predicates", None) is not ResourceManager.predicates
    kind = _AskedWatcher if asks else Watcher
    return kind(callback, take_nodes, take_applications, take_allocations, take_replaced)
