"""Write the announcements of the scheduler: from the messages of the model to `si.v1`.

`dispatch` hands an announcement to the callback that is for it. Only one thread may do so for each
resource manager: the order of the calls is the order of the events.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final, assert_never

from ...model.errors import shortened
from ...model.resources.resource import Resource
from ...model.values.allocation import Allocation, ask_key_of
from ...model.values.messages import (
    AllocationPlaced,
    AllocationsRecovered,
    AllocationsRejected,
    AllocationsReleased,
    Announcement,
    ApplicationChanged,
    ApplicationsAnswered,
    AskRelease,
    NodesAnswered,
    SchedulingStateChanged,
    TerminationType,
)
from . import si_pb2 as si
from .api import ResourceManagerCallback
from .older_generation import EventsHappened, add_older_names, write_events

_TERMINATIONS: Final = {
    TerminationType.UNKNOWN_TERMINATION_TYPE: si.UNKNOWN_TERMINATION_TYPE,
    TerminationType.STOPPED_BY_RM: si.STOPPED_BY_RM,
    TerminationType.TIMEOUT: si.TIMEOUT,
    TerminationType.PREEMPTED_BY_SCHEDULER: si.PREEMPTED_BY_SCHEDULER,
    TerminationType.PLACEHOLDER_REPLACED: si.PLACEHOLDER_REPLACED,
    TerminationType.SCHEDULING_FAILED_ON_RM: si.SCHEDULING_FAILED_ON_RM,
}


def dispatch(  # noqa: C901, PLR0912 - one case an announcement
    announcement: Announcement | EventsHappened,
    callback: ResourceManagerCallback,
    *,
    older: bool = False,
) -> None:
    """Call a resource manager back; an answer without entries is not sent.

    One of the older generation gets its own names besides those of the current one, see `older_generation`.
    An error of the callback is passed on: the announcement has been delivered, and the caller
    decides how to report the failure.
    """
    match announcement:
        case AllocationPlaced():
            _tell(callback, write_allocation_placed(announcement), older=older)
        case AllocationsRecovered(allocations):
            _tell(callback, write_allocations_recovered(allocations), older=older)
        case AllocationsReleased(releases):
            if releases:
                _tell(callback, write_allocations_released(announcement, older=older), older=older)
        case ApplicationChanged():
            callback.update_application(write_application_changed(announcement))
        case ApplicationsAnswered(accepted, rejected, _):
            if accepted or rejected:
                callback.update_application(write_applications_answered(announcement))
        case AllocationsRejected(rejections):
            if rejections:
                _tell(callback, write_allocations_rejected(announcement), older=older)
        case NodesAnswered(accepted, rejected):
            if accepted or rejected:
                callback.update_node(write_nodes_answered(announcement))
        case SchedulingStateChanged():
            request = write_scheduling_state_changed(announcement, older=older)
            callback.update_container_scheduling_state(request)
        case EventsHappened():
            callback.send_event(write_events(announcement.records))
        case _:
            assert_never(announcement)


def callback_for(announcement: Announcement | EventsHappened) -> str:
    """Return the name of the callback that an announcement is for."""
    match announcement:
        case ApplicationChanged() | ApplicationsAnswered():
            return "update_application"
        case NodesAnswered():
            return "update_node"
        case SchedulingStateChanged():
            return "update_container_scheduling_state"
        case AllocationPlaced() | AllocationsRecovered() | AllocationsReleased() | AllocationsRejected():
            return "update_allocation"
        case EventsHappened():
            return "send_event"
        case _:
            assert_never(announcement)


def _tell(callback: ResourceManagerCallback, response: si.AllocationResponse, *, older: bool) -> None:
    if older:
        add_older_names(response)
    callback.update_allocation(response)


def write_allocation_placed(announcement: AllocationPlaced) -> si.AllocationResponse:
    """Write one placement; the preemption policy is always there, even if it allows nothing.

    Partition, tags and priority are left out, as the recorded core does: the resource manager knows them.
    """
    response = si.AllocationResponse()
    _write_placed(response, announcement.allocation)
    return response


def write_allocations_recovered(allocations: Iterable[Allocation]) -> si.AllocationResponse:
    """Write existing allocations, in order, each as `write_allocation_placed` does."""
    response = si.AllocationResponse()
    for allocation in allocations:
        _write_placed(response, allocation)
    return response


def _write_placed(response: si.AllocationResponse, allocation: Allocation) -> None:
    # Fields are set one by one: keyword arguments of the constructors take three times as long.
    message = response.new.add()
    ask = allocation.ask
    message.MergeFrom(_placed_of(ask.resource, ask.allow_preempt_self, ask.allow_preempt_other))
    message.allocationKey = ask.allocation_key
    message.nodeID = allocation.node_id
    message.applicationID = ask.application_id
    if ask.task_group_name:
        message.taskGroupName = ask.task_group_name
    if ask.placeholder:
        message.placeholder = True
    if ask.originator:
        message.originator = True


@lru_cache(maxsize=256)
def _placed_of(resource: Resource, allow_preempt_self: bool, allow_preempt_other: bool) -> si.Allocation:  # noqa: FBT001 - keywords are slower
    """Return what the placements of one size have in common, for most are of few sizes; do not change it."""
    message = si.Allocation()
    _write_resource(resource, message.resourcePerAlloc)
    policy = message.preemptionPolicy
    policy.SetInParent()
    if allow_preempt_self:
        policy.allowPreemptSelf = True
    if allow_preempt_other:
        policy.allowPreemptOther = True
    return message


def _write_resource(resource: Resource, message: si.Resource) -> None:
    """Fill a message with a resource; types with the quantity zero stay named."""
    message.SetInParent()
    quantities = message.resources
    for name, quantity in resource.items():
        quantities[name].value = quantity


def write_allocations_released(
    announcement: AllocationsReleased, *, older: bool = False
) -> si.AllocationResponse:
    """Write releases, in order; the older generation has those of asks in a separate list."""
    response = si.AllocationResponse()
    for release in announcement.releases:
        message: si.AllocationRelease | si.AllocationAskRelease
        if older and isinstance(release, AskRelease):
            message = response.releasedAsks.add()
        else:
            message = response.released.add()
        message.partitionName = release.partition
        message.applicationID = release.application_id
        message.allocationKey = release.allocation_key
        message.terminationType = _TERMINATIONS[release.termination]
        message.message = shortened(release.message)
    return response


def write_allocations_rejected(announcement: AllocationsRejected) -> si.AllocationResponse:
    """Write rejected asks and allocations, in order."""
    response = si.AllocationResponse()
    for rejection in announcement.rejections:
        response.rejectedAllocations.add(
            allocationKey=rejection.allocation_key,
            applicationID=rejection.application_id,
            reason=shortened(rejection.reason),
            code=rejection.code.name,
        )
    return response


def write_applications_answered(announcement: ApplicationsAnswered) -> si.ApplicationResponse:
    """Write which applications are accepted and which are not."""
    response = si.ApplicationResponse(
        accepted=[si.AcceptedApplication(applicationID=name) for name in announcement.accepted],
        rejected=[
            si.RejectedApplication(
                applicationID=rejection.subject_id,
                reason=shortened(rejection.reason),
                code=rejection.code.name,
            )
            for rejection in announcement.rejected
        ],
    )
    for warning in announcement.warnings:
        _add_update(response, warning)
    return response


def write_application_changed(announcement: ApplicationChanged) -> si.ApplicationResponse:
    """Write that an application entered a state."""
    response = si.ApplicationResponse()
    _add_update(response, announcement)
    return response


def _add_update(response: si.ApplicationResponse, announcement: ApplicationChanged) -> None:
    """Write a change in its place: one that is made alone would have to be copied there."""
    response.updated.add(
        applicationID=announcement.application_id,
        state=announcement.state,
        stateTransitionTimestamp=announcement.time_ns,
        message=shortened(announcement.message),
    )


def write_nodes_answered(announcement: NodesAnswered) -> si.NodeResponse:
    """Write which nodes are accepted and which are not."""
    return si.NodeResponse(
        accepted=[si.AcceptedNode(nodeID=name) for name in announcement.accepted],
        rejected=[
            si.RejectedNode(
                nodeID=rejection.subject_id, reason=shortened(rejection.reason), code=rejection.code.name
            )
            for rejection in announcement.rejected
        ],
    )


def write_scheduling_state_changed(
    announcement: SchedulingStateChanged, *, older: bool = False
) -> si.UpdateContainerSchedulingStateRequest:
    """Write that an ask found no node, the one scheduling state that a scheduler sends."""
    return si.UpdateContainerSchedulingStateRequest(
        applicationID=announcement.application_id,
        allocationKey=ask_key_of(announcement.allocation_key) if older else announcement.allocation_key,
        state=si.UpdateContainerSchedulingStateRequest.FAILED,
        reason=shortened(announcement.reason),
    )
