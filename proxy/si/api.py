"""The scheduler interface in one process: the calls of a resource manager, and its callbacks.

The messages are those of `si.v1`. A resource manager registers with a `SchedulerAPI` and hands over its
`ResourceManagerCallback`; a program that needs only some callbacks extends `ResourceManager`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from ...model.errors import RequestError
from ...model.values.messages import PredicateQuestion, PreemptionQuestion
from . import si_pb2 as si


class SchedulerAPI(Protocol):
    """The methods of a scheduler for resource managers; every method may be called from any thread.

    Each raises a `licorne.model.errors.LicorneError` for a request that it refuses as a whole, and has
    then changed nothing. A partial refusal is answered through the callback.
    """

    def register_resource_manager(
        self, request: si.RegisterResourceManagerRequest, callback: ResourceManagerCallback
    ) -> si.RegisterResourceManagerResponse:
        """Register a resource manager with its queues; one that is registered already loses all it had."""
        ...

    def update_allocation(self, request: si.AllocationRequest) -> None:
        """Take asks, existing allocations and releases."""
        ...

    def update_application(self, request: si.ApplicationRequest) -> None:
        """Take new and removed applications."""
        ...

    def update_node(self, request: si.NodeRequest) -> None:
        """Take new and changed nodes."""
        ...

    def update_configuration(self, request: si.UpdateConfigurationRequest) -> None:
        """Replace the configuration of a resource manager while it runs."""
        ...

    def stop(self) -> None:
        """End all scheduling; a second call does nothing more."""
        ...


class ResourceManagerCallback(Protocol):
    """The callbacks of a resource manager.

    The updates come one at a time and in order. The two predicates, `send_event` and
    `update_container_scheduling_state` may come from several threads at once. Errors of a callback are
    logged and counted, except by the predicates, where it is the answer.
    """

    def update_allocation(self, response: si.AllocationResponse) -> None:
        """Take placements, releases to confirm, ended allocations and rejections."""
        ...

    def update_application(self, response: si.ApplicationResponse) -> None:
        """Take accepted and rejected applications, and changes of state."""
        ...

    def update_node(self, response: si.NodeResponse) -> None:
        """Take accepted and rejected nodes."""
        ...

    def predicates(self, args: si.PredicatesArgs) -> None:
        """Agree to a node for an ask by returning, or refuse by raising; the text is the reason.

        One that returns `False` refuses too; one that returns anything but that, `None` or `True` refuses,
        and is reported as a fault.
        """
        ...

    def preemption_predicates(
        self, args: si.PreemptionPredicatesArgs
    ) -> si.PreemptionPredicatesResponse | None:
        """Return how many allocations must end before an ask may run on a node; `None` refuses."""
        ...

    def send_event(self, events: Sequence[si.EventRecord]) -> None:
        """Take a batch of events, oldest first."""
        ...

    def update_container_scheduling_state(self, request: si.UpdateContainerSchedulingStateRequest) -> None:
        """Take a hint how the scheduling of one ask goes; the same may come again."""
        ...


@runtime_checkable
class DeferredPredicates(Protocol):
    """An optional interface of a resource manager besides its callback: predicates that it answers later.

    With it, `predicates` and `preemption_predicates` are not called, and may be missing. Both methods return
    at once; `answer` may be called from any thread, also before they return, and as often as there are
    answers. It takes answers by the position of their questions, from 0, and never waits for the RM. A
    question without an answer in time counts as a refusal, and an answer that comes later is dropped.

    `answer` raises a `RequestError` for something that is not an answer, and has then taken nothing.
    """

    def ask_predicates(
        self,
        questions: Sequence[PredicateQuestion],
        answer: Callable[[Mapping[int, Mapping[str, str] | None]], None],
    ) -> None:
        """Answer each question with the nodes that are refused, and why; all others of it are allowed.

        Names that the question does not have are ignored, so that questions may share an answer. `None`
        means that no answer will come.
        """
        ...

    def ask_preemption_predicates(
        self,
        questions: Sequence[PreemptionQuestion],
        answer: Callable[[Mapping[int, int | None]], None],
    ) -> None:
        """Answer each question with the index of the last victim that must end; `None` refuses the node."""
        ...


@runtime_checkable
class Connected(Protocol):
    """A callback of a resource manager that is not in this process."""

    connected_by: str
    """How it is connected, in words."""


@runtime_checkable
class HearsReplaced(Protocol):
    """An optional interface of a resource manager besides its callback: another one may take its place."""

    def replaced(self, reason: str) -> None:
        """Take note that another callback, or connection, has registered the resource manager.

        It is the last call. No callback reports the end of what was known: that runs on for the other one.
        """
        ...


@runtime_checkable
class HearsDisconnected(Protocol):
    """An optional interface of a resource manager besides its callback: the connection may be lost."""

    def disconnected(self, error: RequestError) -> None:
        """Take note that it is; all that came over it has been passed on before."""
        ...


@runtime_checkable
class StateDumpPlugin(Protocol):
    """An optional interface of a resource manager besides its callback: its own part of a state dump."""

    def get_state_dump(self) -> str:
        """Return the state of the resource manager as a JSON document."""
        ...


@runtime_checkable
class ExplainsRefusals(Protocol):
    """An optional interface of a resource manager besides its callback: refused nodes, for explanations.

    Without it an explanation has the reason that the predicates gave last, and only for nodes with room.
    """

    def refused_nodes(self, allocation_key: str) -> Mapping[str, str]:
        """Return the nodes that are refused to an ask now, each with its first reason in a few words.

        It is called on the thread that asks for an explanation, also while the predicates are called.
        """
        ...


class ResourceManager:
    """A callback that agrees to everything and does nothing: extend it, and write what matters to you.

    A rejection that it ignores is logged as a warning by `logging`, the first one of each callback.
    """

    def update_allocation(self, response: si.AllocationResponse) -> None:
        """Ignore placements, releases and rejections."""
        for rejected in response.rejectedAllocations:
            _warn(self, "update_allocation", f"ask or allocation {rejected.allocationKey!r}", rejected.reason)
            break

    def update_application(self, response: si.ApplicationResponse) -> None:
        """Ignore answers and changes of state."""
        for rejected in response.rejected:
            _warn(self, "update_application", f"application {rejected.applicationID!r}", rejected.reason)
            break

    def update_node(self, response: si.NodeResponse) -> None:
        """Ignore answers."""
        for rejected in response.rejected:
            _warn(self, "update_node", f"node {rejected.nodeID!r}", rejected.reason)
            break

    def predicates(self, args: si.PredicatesArgs) -> None:
        """Agree to every node."""

    def preemption_predicates(
        self, args: si.PreemptionPredicatesArgs
    ) -> si.PreemptionPredicatesResponse | None:
        """Agree as soon as the first try has removed what it removes."""
        return si.PreemptionPredicatesResponse(success=True, index=args.startIndex)

    def send_event(self, events: Sequence[si.EventRecord]) -> None:
        """Ignore events."""

    def update_container_scheduling_state(self, request: si.UpdateContainerSchedulingStateRequest) -> None:
        """Ignore hints."""


def _warn(manager: ResourceManager, callback: str, what: str, reason: str) -> None:
    """Log a rejection that the program would not hear of; of each callback of an object the first one."""
    shown: set[str] = vars(manager).setdefault("_licorne_ignored_rejections", set())
    if callback not in shown:
        shown.add(callback)
        logging.getLogger("licorne").warning(
            "%s was rejected: %s; %s has no %s, which is told of it: further rejections are not shown",
            *(what, reason, type(manager).__name__, callback),
        )
