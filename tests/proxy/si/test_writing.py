"""From the messages of the model to `si.v1`, and to the right callback."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from licorne.model.resources.resource import EMPTY, Resource
from licorne.model.values.allocation import Allocation, Ask
from licorne.model.values.messages import (
    AllocationPlaced,
    AllocationRejection,
    AllocationsRejected,
    AllocationsReleased,
    Announcement,
    ApplicationChanged,
    ApplicationsAnswered,
    NodesAnswered,
    Rejection,
    RejectionCode,
    Release,
    SchedulingStateChanged,
    TerminationType,
)
from licorne.proxy.si import si_pb2 as si
from licorne.proxy.si.api import ResourceManager
from licorne.proxy.si.older_generation import Generation
from licorne.proxy.si.reading import RequestReader, releases
from licorne.proxy.si.writing import dispatch, write_allocation_placed, write_allocations_released

if TYPE_CHECKING:
    from google.protobuf.message import Message

INT64: Final = st.integers(min_value=-(2**63), max_value=2**63 - 1)


class _Recorder(ResourceManager):
    """A resource manager that records its callbacks."""

    def __init__(self) -> None:
        self.told: list[tuple[str, Message]] = []

    def update_allocation(self, response: si.AllocationResponse) -> None:
        self.told.append(("update_allocation", response))

    def update_application(self, response: si.ApplicationResponse) -> None:
        self.told.append(("update_application", response))

    def update_node(self, response: si.NodeResponse) -> None:
        self.told.append(("update_node", response))

    def update_container_scheduling_state(self, request: si.UpdateContainerSchedulingStateRequest) -> None:
        self.told.append(("update_container_scheduling_state", request))


class _Failing(ResourceManager):
    """A resource manager that can not take anything."""

    def update_allocation(self, response: si.AllocationResponse) -> None:
        raise ValueError(f"no room for {len(response.new)}")


def _sent(announcement: Announcement) -> list[tuple[str, Message]]:
    recorder = _Recorder()
    dispatch(announcement, recorder)
    return recorder.told


def _placed(resource: Resource = EMPTY, **changes: Any) -> AllocationPlaced:
    ask = Ask(allocation_key="k", application_id="app", resource=resource, created_at_ns=1, **changes)
    return AllocationPlaced(Allocation(ask, "n1", 2))


def _release(allocation_key: str, termination: TerminationType) -> Release:
    return Release(
        partition="[rm]default",
        application_id="app",
        allocation_key=allocation_key,
        termination=termination,
        message="because",
    )


def _resource(**quantities: int) -> si.Resource:
    return si.Resource(resources={name: si.Quantity(value=value) for name, value in quantities.items()})


def _changed(name: str, state: str, time_ns: int, message: str) -> si.UpdatedApplication:
    return si.UpdatedApplication(
        applicationID=name, state=state, stateTransitionTimestamp=time_ns, message=message
    )


@pytest.mark.parametrize(
    ("announcement", "callback", "expected"),
    [
        pytest.param(
            _placed(
                Resource({"memory": 10, "vcore": 0}),
                priority=5,
                tags={"a": "b"},
                task_group_name="tg",
                placeholder=True,
                originator=True,
                allow_preempt_self=True,
                allow_preempt_other=True,
            ),
            "update_allocation",
            si.AllocationResponse(
                new=[
                    si.Allocation(
                        allocationKey="k",
                        applicationID="app",
                        nodeID="n1",
                        resourcePerAlloc=_resource(memory=10, vcore=0),
                        taskGroupName="tg",
                        placeholder=True,
                        originator=True,
                        preemptionPolicy=si.PreemptionPolicy(allowPreemptSelf=True, allowPreemptOther=True),
                    )
                ]
            ),
            id="a placement has node, names, size, group and flags, but no partition, tags and priority",
        ),
        pytest.param(
            AllocationsReleased(
                (_release("k2", TerminationType.TIMEOUT), _release("k1", TerminationType.STOPPED_BY_RM))
            ),
            "update_allocation",
            si.AllocationResponse(
                released=[
                    si.AllocationRelease(
                        partitionName="[rm]default",
                        applicationID="app",
                        allocationKey=key,
                        terminationType=termination,
                        message="because",
                    )
                    for key, termination in (("k2", si.TIMEOUT), ("k1", si.STOPPED_BY_RM))
                ]
            ),
            id="releases are in order and have the full name of their partition",
        ),
        pytest.param(
            AllocationsRejected(
                (
                    AllocationRejection("k2", "app", "too big"),
                    AllocationRejection("k1", "", "no node", RejectionCode.NODE_UNKNOWN),
                )
            ),
            "update_allocation",
            si.AllocationResponse(
                rejectedAllocations=[
                    si.RejectedAllocation(
                        allocationKey="k2", applicationID="app", reason="too big", code="INVALID"
                    ),
                    si.RejectedAllocation(allocationKey="k1", reason="no node", code="NODE_UNKNOWN"),
                ]
            ),
            id="rejected allocations are in order, in the list of the current generation",
        ),
        pytest.param(
            ApplicationsAnswered(
                ("a", "b"),
                (Rejection("c", "no queue", RejectionCode.NO_QUEUE),),
                (ApplicationChanged("a", "New", 7, "a tag is ignored"),),
            ),
            "update_application",
            si.ApplicationResponse(
                accepted=[si.AcceptedApplication(applicationID=name) for name in ("a", "b")],
                rejected=[si.RejectedApplication(applicationID="c", reason="no queue", code="NO_QUEUE")],
                updated=[_changed("a", "New", 7, "a tag is ignored")],
            ),
            id="answers to applications of one request come together, with warnings about accepted ones",
        ),
        pytest.param(
            ApplicationChanged("app", "Running", 946_684_800_000_000_001, "runApplication"),
            "update_application",
            si.ApplicationResponse(
                updated=[_changed("app", "Running", 946_684_800_000_000_001, "runApplication")]
            ),
            id="a change of state has its time in nanoseconds since 1970",
        ),
        pytest.param(
            NodesAnswered(("n1",), (Rejection("n2", "known already", RejectionCode.NODE_EXISTS),)),
            "update_node",
            si.NodeResponse(
                accepted=[si.AcceptedNode(nodeID="n1")],
                rejected=[si.RejectedNode(nodeID="n2", reason="known already", code="NODE_EXISTS")],
            ),
            id="answers to nodes of one request come together",
        ),
        pytest.param(
            SchedulingStateChanged("app", "k", "wait"),
            "update_container_scheduling_state",
            si.UpdateContainerSchedulingStateRequest(
                applicationID="app",
                allocationKey="k",
                state=si.UpdateContainerSchedulingStateRequest.FAILED,
                reason="wait",
            ),
            id="an ask that waits for room has the state FAILED, upon which an autoscaler acts",
        ),
    ],
)
def test_an_announcement_is_sent_in_one_message(
    announcement: Announcement, callback: str, expected: Message
) -> None:
    """To the callback of its kind."""
    assert [(callback, expected)] == _sent(announcement)


def test_the_preemption_policy_of_a_placement_is_always_there() -> None:
    """Even if it allows nothing; and so is the resource."""
    (allocation,) = write_allocation_placed(_placed()).new

    assert allocation.HasField("preemptionPolicy")
    assert allocation.HasField("resourcePerAlloc")
    assert allocation == si.Allocation(
        allocationKey="k",
        applicationID="app",
        nodeID="n1",
        resourcePerAlloc=si.Resource(),
        preemptionPolicy=si.PreemptionPolicy(),
    )


@settings(max_examples=50)
@given(
    quantities=st.dictionaries(st.text(max_size=8), INT64, max_size=5),
    group=st.text(max_size=5),
    flags=st.tuples(st.booleans(), st.booleans(), st.booleans(), st.booleans()),
)
def test_a_placement_reads_as_it_was_written(
    quantities: dict[str, int], group: str, flags: tuple[bool, bool, bool, bool]
) -> None:
    """A resource manager that sends a placement back, as in a recovery, says the same allocation."""
    names = ("placeholder", "originator", "allow_preempt_self", "allow_preempt_other")
    announcement = _placed(
        Resource(quantities), task_group_name=group, **dict(zip(names, flags, strict=True))
    )
    response = si.AllocationResponse.FromString(write_allocation_placed(announcement).SerializeToString())

    (actual,) = RequestReader().allocation_submissions(
        si.AllocationRequest(allocations=response.new), Generation()
    )

    assert (actual.allocation_key, actual.application_id, actual.node_id) == ("k", "app", "n1")
    assert actual.resource == Resource(quantities)
    assert actual.task_group_name == group
    assert tuple(getattr(actual, name) for name in names) == flags


@pytest.mark.parametrize("termination", list(TerminationType))
def test_a_release_reads_as_it_was_written(termination: TerminationType) -> None:
    """A resource manager confirms a release by sending it back."""
    wanted = (_release("k1", termination), _release("k2", termination))
    response = write_allocations_released(AllocationsReleased(wanted))

    confirmation = si.AllocationReleasesRequest(allocationsToRelease=response.released)

    assert wanted == releases(si.AllocationRequest(rmID="rm", releases=confirmation), Generation())


@pytest.mark.parametrize(
    ("announcement", "count"),
    [
        (AllocationsReleased(()), 0),
        (AllocationsRejected(()), 0),
        (ApplicationsAnswered((), ()), 0),
        (ApplicationsAnswered((), (Rejection("c", "no queue"),)), 1),
        (ApplicationsAnswered(("a",), ()), 1),
        (NodesAnswered((), ()), 0),
        (NodesAnswered((), (Rejection("n", "known already"),)), 1),
        (NodesAnswered(("n",), ()), 1),
    ],
)
def test_an_answer_that_answers_nothing_is_not_sent(announcement: Announcement, count: int) -> None:
    """Empty lists are never sent; rejections alone are sent, and so are acceptances alone."""
    assert count == len(_sent(announcement))


def test_what_a_callback_raises_comes_out() -> None:
    """The caller of `dispatch` decides how to report it."""
    with pytest.raises(ValueError, match="no room for 1"):
        dispatch(_placed(), _Failing())
