"""What a book keeps of requests and answers, without a scheduler."""

from __future__ import annotations

import pytest
from support.proxy.booked_link import sizes_of
from support.proxy.knowing_manager import a_node, an_allocation, an_application

from licorne.proxy.si import si_pb2 as si
from licorne.proxy.wire.door.record import PartitionRecord

_NOW_NS = 5


@pytest.fixture
def book() -> PartitionRecord:
    """Return a book with a node and an application that were accepted, and an ask that waits."""
    book = PartitionRecord("rm", "default")
    book.note_nodes([a_node("n", 100)])
    book.take_nodes(si.NodeResponse(accepted=[si.AcceptedNode(nodeID="n")]))
    book.note_applications(si.ApplicationRequest(new=[an_application("app")]))
    accepted = [si.AcceptedApplication(applicationID="app")]
    book.take_applications(si.ApplicationResponse(accepted=accepted))
    book.note_allocations(si.AllocationRequest(allocations=[an_allocation("a")]), 1)
    return book


def _place(book: PartitionRecord, key: str, node_id: str = "n") -> si.AllocationResponse:
    placed = an_allocation(key, node_id=node_id)
    return book.take_allocations(si.AllocationResponse(new=[placed]), 1)


def _a_change(action: si.NodeInfo.ActionFromRM, memory: int | None = None) -> si.NodeInfo:
    node = a_node("n", memory or 0)
    node.action = action
    node.attributes["si/rackname"] = "changed"
    if memory is None:
        node.ClearField("schedulableResource")
    return node


def _again(book: PartitionRecord, walltime: str, *, accepted: bool) -> None:
    """Send the application and the ask again with another walltime, and a tag that changes nothing."""
    tags = {"walltime": walltime, "other": "changed"}
    application, ask = an_application("app"), an_allocation("a")
    application.tags.update(tags)
    ask.allocationTags.update(tags)
    book.note_applications(si.ApplicationRequest(new=[application]))
    answer = si.ApplicationResponse()
    (answer.accepted if accepted else answer.rejected).add(applicationID="app")
    book.take_applications(answer)
    book.note_allocations(si.AllocationRequest(allocations=[ask]), 1)


def _release(key: str, kind: int) -> si.AllocationRequest:
    request = si.AllocationRequest(rmID="rm")
    request.releases.allocationsToRelease.add(applicationID="app", allocationKey=key, terminationType=kind)
    return request


def test_changes_of_a_node_are_part_of_it(book: PartitionRecord) -> None:
    """Its size and whether it is drained; attributes stay, as in the core."""
    book.note_nodes([_a_change(si.NodeInfo.UPDATE, 70), _a_change(si.NodeInfo.DRAIN_NODE)])

    assert (a_node("n", 70, drained=True),) == book.begin_recovery(_NOW_NS).nodes

    book.note_nodes([_a_change(si.NodeInfo.DRAIN_TO_SCHEDULABLE), _a_change(si.NodeInfo.UPDATE)])

    assert (a_node("n", 70),) == book.begin_recovery(_NOW_NS).nodes

    cordon = _a_change(si.NodeInfo.UPDATE)
    cordon.attributes["licorne/cordoned"] = "true"
    book.note_nodes([cordon])

    (node,) = book.begin_recovery(_NOW_NS).nodes
    assert "true" == node.attributes["licorne/cordoned"]


@pytest.mark.parametrize(
    ("walltime", "expected"),
    [("2h", [{"walltime": "2h"}] * 2), ("x", [{}, {}])],
    ids=["that is accepted", "that is no duration"],
)
def test_another_walltime_is_kept(
    book: PartitionRecord, walltime: str, expected: list[dict[str, str]]
) -> None:
    """Of a known application and ask; their other tags stay, as in the core."""
    _again(book, walltime, accepted=walltime == "2h")
    parts = book.begin_recovery(_NOW_NS)
    (application,), (data,) = parts.applications, parts.asks

    assert expected == [dict(application.tags), dict(si.Allocation.FromString(data).allocationTags)]


def test_the_second_creation_counts_if_the_first_is_rejected() -> None:
    """Changes are made to both, as long as neither is answered."""
    book = PartitionRecord("rm", "default")
    book.note_nodes([a_node("n", -1), a_node("n", 50), _a_change(si.NodeInfo.DRAIN_NODE)])
    book.take_nodes(si.NodeResponse(rejected=[si.RejectedNode(nodeID="n", code="INVALID")]))
    book.take_nodes(si.NodeResponse(accepted=[si.AcceptedNode(nodeID="n")]))

    assert (a_node("n", 50, drained=True),) == book.begin_recovery(_NOW_NS).nodes


def test_a_placed_ask_is_recovered_on_its_node_as_the_rm_has_sent_it(book: PartitionRecord) -> None:
    """With its tags and all else that the worker does not say; its size may change later."""
    _place(book, "a")
    larger = an_allocation("a", memory=30)
    larger.priority = 9
    book.note_allocations(si.AllocationRequest(allocations=[larger]), 1)
    parts = book.begin_recovery(_NOW_NS)

    assert [an_allocation("a", memory=30, node_id="n")] == [*map(si.Allocation.FromString, parts.allocations)]
    assert () == parts.asks


def test_an_allocation_that_could_not_be_started_is_recovered_as_an_ask(book: PartitionRecord) -> None:
    """Also one that the resource manager had placed itself."""
    book.note_allocations(si.AllocationRequest(allocations=[an_allocation("b", node_id="n")]), 1)
    _place(book, "b")
    book.note_allocations(_release("b", si.SCHEDULING_FAILED_ON_RM), 1)
    parts = book.begin_recovery(_NOW_NS)

    assert [an_allocation("a"), an_allocation("b")] == [*map(si.Allocation.FromString, parts.asks)]


def test_what_is_about_to_end_and_could_not_be_started_does_not_wait_again(book: PartitionRecord) -> None:
    """As in the core: it was to end, and has."""
    _place(book, "a")
    response = si.AllocationResponse()
    response.released.add(applicationID="app", allocationKey="a", terminationType=si.PREEMPTED_BY_SCHEDULER)
    book.take_allocations(response, 1)
    book.note_allocations(_release("a", si.SCHEDULING_FAILED_ON_RM), 1)

    assert (0, 0) == (sizes_of(book).asks, sizes_of(book).allocations)


def test_only_what_a_later_session_confirms_is_sent_in_another_form(book: PartitionRecord) -> None:
    """The request of the resource manager stays as it is."""
    _place(book, "a")
    response = si.AllocationResponse()
    response.released.add(applicationID="app", allocationKey="a", terminationType=si.PREEMPTED_BY_SCHEDULER)
    book.take_allocations(response, 1)
    book.begin_recovery(_NOW_NS)
    request = _release("a", si.PREEMPTED_BY_SCHEDULER)
    sent = book.note_allocations(request, 2)

    assert _release("a", si.STOPPED_BY_RM) == sent
    assert _release("a", si.PREEMPTED_BY_SCHEDULER) == request
    assert request is book.note_allocations(request, 2)


def test_the_rm_hears_the_same_object_if_nothing_is_taken_away(book: PartitionRecord) -> None:
    """An ordinary session copies nothing."""
    nodes = si.NodeResponse(accepted=[si.AcceptedNode(nodeID="other")])
    updated = [si.UpdatedApplication(applicationID="app", state="Accepted")]
    applications = si.ApplicationResponse(updated=updated)
    allocations = si.AllocationResponse(new=[an_allocation("a", node_id="n")])

    assert nodes is book.take_nodes(nodes)
    assert applications is book.take_applications(applications)
    assert allocations is book.take_allocations(allocations, 1)


def test_an_application_that_was_failing_has_failed_when_nothing_of_it_is_left(book: PartitionRecord) -> None:
    """No new worker would say so."""
    failing = [si.UpdatedApplication(applicationID="app", state="Failing")]
    book.take_applications(si.ApplicationResponse(updated=failing))
    book.note_allocations(_release("a", si.STOPPED_BY_RM), 1)
    parts = book.begin_recovery(_NOW_NS)
    (heard,) = parts.heard

    assert () == parts.applications
    assert isinstance(heard, si.ApplicationResponse)
    assert [("app", "Failed", _NOW_NS)] == [
        (each.applicationID, each.state, each.stateTransitionTimestamp) for each in heard.updated
    ]


def test_warnings_about_tags_are_heard_once(book: PartitionRecord) -> None:
    """They come with the state New, each in a message of its own."""
    warning = si.UpdatedApplication(applicationID="app", state="New", message="tag is ignored")
    response = si.ApplicationResponse(updated=[warning, warning])

    assert response is book.take_applications(response)

    accepted = si.UpdatedApplication(applicationID="app", state="Accepted")
    book.take_applications(si.ApplicationResponse(updated=[accepted]))
    book.begin_recovery(_NOW_NS)

    assert si.ApplicationResponse() == book.take_applications(response)
