"""From `si.v1` to the messages of the model."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Final, cast

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from hypothesis import given, settings
from hypothesis import strategies as st

from licorne.model.errors import RequestError
from licorne.model.resources.resource import EMPTY, Resource
from licorne.model.values.dependencies import ApplicationOutcome
from licorne.model.values.messages import (
    AllocationSubmission,
    ApplicationRemoval,
    ApplicationSubmission,
    NodeAction,
    NodeUpdate,
    Registration,
    Release,
    TerminationType,
)
from licorne.proxy.si import si_pb2 as si
from licorne.proxy.si.older_generation import Generation
from licorne.proxy.si.reading import (
    RESOURCE_SIZES_MAX,
    RequestReader,
    application_removals,
    registration,
    releases,
)

INT64: Final = st.integers(min_value=-(2**63), max_value=2**63 - 1)


def _resource(**quantities: int) -> si.Resource:
    return si.Resource(resources={name: si.Quantity(value=value) for name, value in quantities.items()})


def _bare_submission(allocation_key: str, **changes: Any) -> AllocationSubmission:
    """Build what an allocation of which only the key is set reads as."""
    fields: dict[str, Any] = {
        "allocation_key": allocation_key,
        "application_id": "",
        "partition": "[rm]default",
        "resource": EMPTY,
        "priority": 0,
        "tags": {},
        "node_id": "",
        "task_group_name": "",
        "placeholder": False,
        "originator": False,
        "allow_preempt_self": False,
        "allow_preempt_other": False,
    }
    return AllocationSubmission(**fields | changes)


def _allocations(*allocations: si.Allocation) -> list[AllocationSubmission]:
    return RequestReader().allocation_submissions(
        si.AllocationRequest(rmID="rm", allocations=allocations), Generation()
    )


def _released(*allocations: si.AllocationRelease) -> tuple[Release, ...]:
    request = si.AllocationReleasesRequest(allocationsToRelease=allocations)
    return releases(si.AllocationRequest(rmID="rm", releases=request), Generation())


def _nodes(*nodes: si.NodeInfo) -> dict[str, tuple[NodeUpdate, ...]]:
    return RequestReader().node_updates(si.NodeRequest(rmID="rm", nodes=nodes), Generation())


def _submitted(new: si.AddApplicationRequest) -> ApplicationSubmission:
    (submission,) = RequestReader().application_submissions(si.ApplicationRequest(rmID="rm", new=[new]))
    return submission


def test_a_registration_is_read_whole() -> None:
    """Every field of a registration reaches the model; what it does not say is as the model has it."""
    request = si.RegisterResourceManagerRequest(
        rmID="rm",
        version="1.9",
        policyGroup="queues",
        buildInfo={"b": "2", "a": "1"},
        config="partitions: []",
        extraConfig={"log.level": "INFO"},
    )

    expected = Registration(
        rm_id="rm",
        version="1.9",
        policy_group="queues",
        build_information={"a": "1", "b": "2"},
        configuration="partitions: []",
        extra_configuration={"log.level": "INFO"},
    )

    assert expected == registration(request)
    assert Registration(rm_id="rm") == registration(si.RegisterResourceManagerRequest(rmID="rm"))


def test_an_allocation_is_read_whole() -> None:
    """Every field of an allocation reaches the model."""
    message = si.Allocation(
        allocationKey="k",
        allocationTags={"z": "1", "a": "2"},
        resourcePerAlloc=_resource(vcore=1000, memory=10),
        priority=-7,
        nodeID="n1",
        applicationID="app",
        partitionName="gpu",
        taskGroupName="tg",
        placeholder=True,
        originator=True,
        preemptionPolicy=si.PreemptionPolicy(allowPreemptSelf=True, allowPreemptOther=True),
    )

    expected = AllocationSubmission(
        allocation_key="k",
        application_id="app",
        partition="[rm]gpu",
        resource=Resource({"memory": 10, "vcore": 1000}),
        priority=-7,
        tags={"a": "2", "z": "1"},
        node_id="n1",
        task_group_name="tg",
        placeholder=True,
        originator=True,
        allow_preempt_self=True,
        allow_preempt_other=True,
    )

    assert [expected] == _allocations(message)


def test_what_an_allocation_does_not_say_is_empty() -> None:
    """A bare allocation is an ask for nothing in the default partition; no resource is the empty one."""
    assert [_bare_submission("k")] == _allocations(si.Allocation(allocationKey="k"))


@pytest.mark.parametrize(
    ("allow_self", "allow_other", "placeholder", "originator"),
    [
        (True, False, False, False),
        (False, True, False, False),
        (False, False, True, False),
        (False,) * 3 + (True,),
    ],
)
def test_flags_are_not_mixed_up(
    *, allow_self: bool, allow_other: bool, placeholder: bool, originator: bool
) -> None:
    """Each flag of an allocation is the same flag of the submission, and no other."""
    policy = si.PreemptionPolicy(allowPreemptSelf=allow_self, allowPreemptOther=allow_other)
    message = si.Allocation(placeholder=placeholder, originator=originator, preemptionPolicy=policy)

    expected = _bare_submission(
        "",
        placeholder=placeholder,
        originator=originator,
        allow_preempt_self=allow_self,
        allow_preempt_other=allow_other,
    )

    assert [expected] == _allocations(message)


@pytest.mark.parametrize(
    ("name", "partition"),
    [("", "[rm]default"), ("default", "[rm]default"), ("gpu", "[rm]gpu"), ("[other]gpu", "[other]gpu")],
)
def test_partition_names_become_full_names_everywhere(name: str, partition: str) -> None:
    """A short or empty name belongs to the resource manager that speaks; a full name stays."""
    (allocation,) = _allocations(si.Allocation(partitionName=name))
    (release,) = _released(si.AllocationRelease(partitionName=name))
    removal = si.RemoveApplicationRequest(partitionName=name)
    (removed,) = application_removals(si.ApplicationRequest(rmID="rm", remove=[removal]))

    assert allocation.partition == partition
    assert release.partition == partition
    assert removed.partition == partition
    assert _submitted(si.AddApplicationRequest(partitionName=name)).partition == partition
    assert list(_nodes(si.NodeInfo(attributes={"si/node-partition": name}))) == [partition]


def test_one_request_may_be_about_several_partitions() -> None:
    """Each allocation keeps its own partition, and the order of the request is kept."""
    names = ["a", "", "b", "b", "default", "a"]

    actual = _allocations(*(si.Allocation(partitionName=name) for name in names))

    assert [submission.partition for submission in actual] == [
        "[rm]a",
        "[rm]default",
        "[rm]b",
        "[rm]b",
        "[rm]default",
        "[rm]a",
    ]


@settings(max_examples=50)
@given(quantities=st.dictionaries(st.text(max_size=8), INT64, max_size=6))
def test_a_resource_is_read_exactly(quantities: dict[str, int]) -> None:
    """Every type and quantity that the wire can carry arrives, zeros too, and the types are in order."""
    actual = RequestReader().resource(_resource(**quantities))

    assert list(actual.items()) == sorted(quantities.items())


def test_asks_of_equal_size_share_one_resource() -> None:
    """The order in which the types were named makes no difference."""
    sizes = [_resource(memory=1, vcore=2), _resource(vcore=2, memory=1), _resource(memory=2, vcore=1)]

    first, second, third = _allocations(*(si.Allocation(resourcePerAlloc=size) for size in sizes))

    assert first.resource is second.resource
    assert third.resource == Resource({"memory": 2, "vcore": 1})


def test_a_named_zero_is_not_nothing() -> None:
    """A type with the quantity zero stays named, and shares nothing with the empty resource."""
    reader = RequestReader()

    assert "vcore" in reader.resource(_resource(vcore=0))
    assert reader.resource(_resource()) is EMPTY


def test_a_reader_forgets_when_it_has_seen_too_many_sizes() -> None:
    """Its memory is bounded, and what it reads afterwards is still right."""
    reader = RequestReader()
    before = reader.resource(_resource(memory=-1))
    for size in range(RESOURCE_SIZES_MAX):
        reader.resource(_resource(memory=size))

    after = reader.resource(_resource(memory=-1))

    assert len(reader._resources) <= RESOURCE_SIZES_MAX
    assert before is not after
    assert before == after


def test_the_request_may_change_after_it_was_read() -> None:
    """Nothing in a result refers to the request."""
    request = si.AllocationRequest(allocations=[si.Allocation(allocationTags={"a": "1"})])
    (submission,) = RequestReader().allocation_submissions(request, Generation())

    request.allocations[0].allocationTags["a"] = "2"
    request.Clear()

    assert submission.tags == {"a": "1"}


def test_releases_are_read_in_order() -> None:
    """Every field of a release reaches the model; an empty key stays empty."""
    actual = _released(
        si.AllocationRelease(
            partitionName="p",
            applicationID="app",
            allocationKey="k",
            terminationType=si.PLACEHOLDER_REPLACED,
            message="because",
        ),
        si.AllocationRelease(applicationID="app"),
    )

    assert actual == (
        Release(
            partition="[rm]p",
            application_id="app",
            allocation_key="k",
            termination=TerminationType.PLACEHOLDER_REPLACED,
            message="because",
        ),
        Release(
            partition="[rm]default",
            application_id="app",
            allocation_key="",
            termination=TerminationType.UNKNOWN_TERMINATION_TYPE,
        ),
    )


def test_a_request_without_releases_has_none() -> None:
    """Asks alone give no release."""
    assert releases(si.AllocationRequest(rmID="rm", allocations=[si.Allocation()]), Generation()) == ()


@pytest.mark.parametrize("termination", list(TerminationType))
def test_every_termination_type_is_known(termination: TerminationType) -> None:
    """The names and numbers of the model are those of the wire."""
    (release,) = _released(si.AllocationRelease(terminationType=termination.name))

    assert release.termination is termination


def test_an_action_of_a_later_version_is_read_with_its_number() -> None:
    """The node is answered with it; no action at all is another matter."""
    node = si.NodeInfo.FromString(b"\x0a\x01n\x10\x63")

    assert [(n.action, n.unknown_action, n.node_id) for n in _nodes(node, si.NodeInfo())["[rm]default"]] == [
        (NodeAction.UNKNOWN_ACTION_FROM_RM, 0x63, "n"),
        (NodeAction.UNKNOWN_ACTION_FROM_RM, 0, ""),
    ]


@pytest.mark.parametrize("name", [b"\x32\x01k", b"\x1a\x01k"])
def test_a_termination_type_of_a_later_version_is_refused_alone(name: bytes) -> None:
    """What ends depends on it; the other releases are read, in either generation."""
    release = si.AllocationRelease.FromString(b"\x12\x03app\x20\x63" + name)
    (refused,) = _released(release)

    assert "the release of 'k' of application 'app' has the terminationType 99; known" in refused.refusal
    assert ("k", "app") == (refused.rejection().allocation_key, refused.rejection().application_id)


def test_messages_of_another_copy_of_the_interface_are_as_good() -> None:
    """A program may hand over the classes it generated itself."""
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(descriptor_pb2.DESCRIPTOR.serialized_pb)
    pool.AddSerializedFile(si.DESCRIPTOR.serialized_pb)
    theirs = message_factory.GetMessageClass(pool.FindMessageTypeByName("si.v1.AllocationRequest"))
    ours = si.AllocationRequest(rmID="rm", allocations=[si.Allocation(resourcePerAlloc=_resource(memory=1))])
    request = cast("si.AllocationRequest", theirs.FromString(ours.SerializeToString()))

    assert type(request) is not si.AllocationRequest
    assert RequestReader().allocation_submissions(
        ours, Generation()
    ) == RequestReader().allocation_submissions(request, Generation())


def test_an_empty_request_reads_as_nothing() -> None:
    """No list, no result, no error."""
    reader = RequestReader()
    actual = SimpleNamespace(
        allocations=reader.allocation_submissions(si.AllocationRequest(), Generation()),
        releases=releases(si.AllocationRequest(), Generation()),
        applications=reader.application_submissions(si.ApplicationRequest()),
        removals=application_removals(si.ApplicationRequest()),
        nodes=reader.node_updates(si.NodeRequest(), Generation()),
    )

    assert not any(vars(actual).values())


# ------------------------------------------------------------------------------ nodes and applications


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


def test_a_removal_may_name_how_an_application_ended() -> None:
    """As one word of two; an old client names none."""
    removals = [si.RemoveApplicationRequest(applicationID="a", outcome=text) for text in ("", "ok", "failed")]
    read = application_removals(si.ApplicationRequest(rmID="rm", remove=removals))

    assert [None, ApplicationOutcome.OK, ApplicationOutcome.FAILED] == [each.outcome for each in read]
    bad = [si.RemoveApplicationRequest(applicationID="a", outcome="well")]
    with pytest.raises(RequestError, match="outcome of application a is 'well': it must be ok or failed"):
        application_removals(si.ApplicationRequest(rmID="rm", remove=bad))


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
