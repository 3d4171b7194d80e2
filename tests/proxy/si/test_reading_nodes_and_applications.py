"""From `si.v1` to the messages of the model: nodes and applications."""

from __future__ import annotations

import pytest

from licorne.model.resources.resource import EMPTY, Resource
from licorne.model.values.messages import ApplicationRemoval, ApplicationSubmission, NodeAction, NodeUpdate
from licorne.proxy.si import si_pb2 as si
from licorne.proxy.si.older_answers import Generation
from licorne.proxy.si.reading import RequestReader, application_removals


def _resource(**quantities: int) -> si.Resource:
    return si.Resource(resources={name: si.Quantity(value=value) for name, value in quantities.items()})


def _nodes(*nodes: si.NodeInfo) -> dict[str, tuple[NodeUpdate, ...]]:
    return RequestReader().node_updates(si.NodeRequest(rmID="rm", nodes=nodes), Generation())


def _submitted(new: si.AddApplicationRequest) -> ApplicationSubmission:
    (submission,) = RequestReader().application_submissions(si.ApplicationRequest(rmID="rm", new=[new]))
    return submission


@pytest.mark.parametrize("action", list(NodeAction))
def test_every_node_action_is_known(action: NodeAction) -> None:
    """The names and numbers of the model are those of the wire."""
    ((update,),) = _nodes(si.NodeInfo(action=action.name)).values()

    assert update.action is action


def test_a_node_is_read_with_the_full_name_of_its_partition_among_its_attributes() -> None:
    """The attribute is there even if the resource manager named no partition."""
    message = si.NodeInfo(
        nodeID="n1",
        action=si.NodeInfo.CREATE_DRAIN,
        attributes={"si/hostname": "h1"},
        schedulableResource=_resource(memory=100),
    )

    expected = NodeUpdate(
        node_id="n1",
        action=NodeAction.CREATE_DRAIN,
        attributes={"si/hostname": "h1", "si/node-partition": "[rm]default"},
        resource=Resource({"memory": 100}),
    )

    assert {"[rm]default": (expected,)} == _nodes(message)


def test_a_node_without_resources_differs_from_one_with_none() -> None:
    """An absent resource says nothing; an empty one says that nothing is there."""
    bare, empty = _nodes(si.NodeInfo(), si.NodeInfo(schedulableResource=si.Resource()))["[rm]default"]

    assert bare.resource is None
    assert empty.resource is EMPTY


def test_nodes_come_by_partition_and_in_order() -> None:
    """Each partition gets its own nodes, in the order of the request."""
    nodes = [("n1", "b"), ("n2", ""), ("n3", "b"), ("n4", "[rm]default")]

    actual = _nodes(*(si.NodeInfo(nodeID=node, attributes={"si/node-partition": p}) for node, p in nodes))

    assert [(p, [update.node_id for update in updates]) for p, updates in actual.items()] == [
        ("[rm]b", ["n1", "n3"]),
        ("[rm]default", ["n2", "n4"]),
    ]


def test_an_application_is_read_whole() -> None:
    """Every field of an application reaches the model; groups keep their order."""
    message = si.AddApplicationRequest(
        applicationID="app",
        queueName="root.a",
        partitionName="p",
        ugi=si.UserGroupInformation(user="u", groups=["g2", "g1"]),
        tags={"namespace": "x"},
        executionTimeoutMilliSeconds=5000,
        placeholderAsk=_resource(vcore=3),
        gangSchedulingStyle="Hard",
    )

    expected = ApplicationSubmission(
        application_id="app",
        queue_name="root.a",
        partition="[rm]p",
        user="u",
        groups=("g2", "g1"),
        tags={"namespace": "x"},
        execution_timeout_ms=5000,
        placeholder_ask=Resource({"vcore": 3}),
        gang_scheduling_style="Hard",
    )

    assert expected == _submitted(message)


def test_an_application_without_a_gang_has_no_placeholder_ask() -> None:
    """An absent placeholder ask is `None`, no user is the empty one."""
    actual = _submitted(si.AddApplicationRequest(applicationID="app"))

    assert actual.placeholder_ask is None
    assert (actual.user, actual.groups) == ("", ())


def test_removed_applications_are_read_in_order() -> None:
    """What the application request removes is read apart from what it adds."""
    remove = [si.RemoveApplicationRequest(applicationID=name) for name in ("b", "a")]
    request = si.ApplicationRequest(rmID="rm", new=[si.AddApplicationRequest()], remove=remove)

    expected = (ApplicationRemoval("b", "[rm]default"), ApplicationRemoval("a", "[rm]default"))

    assert expected == application_removals(request)


def test_what_others_use_of_a_node_is_read() -> None:
    """An absent amount says nothing; an empty one says that others use nothing."""
    messages = (
        si.NodeInfo(),
        si.NodeInfo(occupiedResource=si.Resource()),
        si.NodeInfo(occupiedResource=_resource(memory=4)),
    )

    assert [None, EMPTY, Resource({"memory": 4})] == [
        update.occupied for update in _nodes(*messages)["[rm]default"]
    ]


def test_what_others_use_is_a_field_of_the_older_generation() -> None:
    """Its resource manager is answered in that generation from then on."""
    current, older = Generation(), Generation()
    reader = RequestReader()

    reader.node_updates(si.NodeRequest(nodes=[si.NodeInfo()]), current)
    reader.node_updates(si.NodeRequest(nodes=[si.NodeInfo(occupiedResource=si.Resource())]), older)

    assert (False, True) == (current.is_older, older.is_older)
