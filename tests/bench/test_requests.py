from __future__ import annotations

import pytest
import yaml
from bench_fakes import a_workload
from workload_requests import (
    application_request,
    ask_requests,
    configuration_text,
    mark_request,
    node_request,
    placement_request,
    registration_request,
    release_request,
    single_ask_requests,
    waiting_application_request,
    waiting_ask_request,
)
from workloads import Size, workload_named

from licorne.proxy.si import si_pb2 as si


def quantities(resource: si.Resource) -> Size:
    """Return a resource as the workloads write it."""
    values = {name: quantity.value for name, quantity in resource.resources.items()}
    assert values.keys() == {"memory", "vcore"}
    return Size(values["memory"], values["vcore"])


def test_limits_are_written_in_thousandths_of_a_core() -> None:
    """A vcore without its `m` would be a whole core."""
    document = yaml.safe_load(configuration_text(workload_named("b")))
    parent = document["partitions"][0]["queues"][0]["queues"][0]

    assert parent["resources"] == {
        "guaranteed": {"memory": "15000", "vcore": "1500m"},
        "max": {"memory": "35000", "vcore": "3500m"},
    }
    assert parent["queues"][9]["name"] == "q9"
    assert parent["queues"][9]["resources"]["max"] == {"memory": "3500", "vcore": "350m"}


def test_a_queue_without_limits_has_no_resources() -> None:
    """An empty map of limits would be something else than none."""
    document = yaml.safe_load(configuration_text(workload_named("a_fifo")))

    assert {"name": "q00"} == document["partitions"][0]["queues"][0]["queues"][0]


def test_the_sort_policies_are_in_the_configuration() -> None:
    """Applications by a property of the leaf, nodes by the policy of the partition."""
    fair = yaml.safe_load(configuration_text(workload_named("a")))
    packed = yaml.safe_load(configuration_text(workload_named("e_bin")))

    leaves = fair["partitions"][0]["queues"][0]["queues"]
    assert [{"application.sort.policy": "fair"}] * 10 == [leaf["properties"] for leaf in leaves]
    assert "nodesortpolicy" not in fair["partitions"][0]
    assert packed["partitions"][0]["nodesortpolicy"] == {"type": "binpacking"}


def test_the_registration_keeps_events_on_and_logging_quiet() -> None:
    """The figures are taken with events, and with warnings alone."""
    request = registration_request(workload_named("u500"))

    assert request.extraConfig == {"event.trackingEnabled": "true", "log.level": "warn"}
    assert request.config == configuration_text(workload_named("u500"))


def test_one_request_creates_all_nodes() -> None:
    """Every node is schedulable and of the size of the table."""
    request = node_request(workload_named("u5000"))

    assert len({node.nodeID for node in request.nodes}) == 5_000
    assert {si.NodeInfo.CREATE} == {node.action for node in request.nodes}
    assert {Size(30, 3)} == {quantities(node.schedulableResource) for node in request.nodes}


def test_one_request_submits_all_applications() -> None:
    """Each goes to its leaf, with a user whose groups need not be looked up."""
    request = application_request(workload_named("b"))

    assert [application.application_id for application in workload_named("b").applications()] == [
        added.applicationID for added in request.new
    ]
    assert len({added.queueName for added in request.new}) == 100
    assert {("bench", ("bench",))} == {(added.ugi.user, tuple(added.ugi.groups)) for added in request.new}


def test_the_mark_is_an_application_of_its_own() -> None:
    """Its name is none of the workload's, its queue is."""
    workload = workload_named("g_full")
    (mark,) = mark_request(workload).new

    assert mark.applicationID not in {application.application_id for application in workload.applications()}
    assert mark.queueName == workload.leaf_paths()[0]


def test_each_application_sends_one_request_with_its_asks_in_order() -> None:
    """The requests come in the order of the applications, the keys in ascending order."""
    workload = a_workload(applications_per_leaf=2, asks_per_wave=3)
    requests = ask_requests(workload, 0)

    assert [["root.a-000"] * 3, ["root.a-001"] * 3, ["root.b-000"] * 3, ["root.b-001"] * 3] == [
        [ask.applicationID for ask in request.allocations] for request in requests
    ]
    first = [ask.allocationKey for ask in requests[0].allocations]
    assert first == ["root.a-000-0-00000", "root.a-000-0-00001", "root.a-000-0-00002"]


def test_five_sizes_cycle_along_the_asks_of_an_application() -> None:
    """Ten asks are twice 10/1, 20/2, 30/3, 40/4, 50/5."""
    request = ask_requests(workload_named("a"), 0)[7]

    cycle = [Size(10, 1), Size(20, 2), Size(30, 3), Size(40, 4), Size(50, 5)]
    assert cycle * 2 == [quantities(ask.resourcePerAlloc) for ask in request.allocations]


@pytest.mark.parametrize("name", ["u500", "b", "e_fair", "f_lock", "g_frag"])
def test_no_ask_names_a_node(name: str) -> None:
    """An allocation with a node would be taken as it is, without a decision."""
    asks = [ask for request in ask_requests(workload_named(name), 0) for ask in request.allocations]

    assert {""} == {ask.nodeID for ask in asks}
    assert len(asks) == workload_named(name).ask_count // workload_named(name).wave_count


def test_the_second_wave_has_keys_of_its_own() -> None:
    """A key that was used would change the old ask instead of adding one."""
    waves = [ask_requests(workload_named("f_pipe"), wave) for wave in (0, 1)]
    keys = [ask.allocationKey for wave in waves for request in wave for ask in request.allocations]

    assert 20_000 == len(keys) == len(set(keys))


def test_foreign_allocations_go_before_those_that_are_answered() -> None:
    """The answer to the last one then says that the foreign ones are in."""
    request = placement_request(workload_named("e_fair"))
    foreign = [allocation.allocationTags.get("foreign") for allocation in request.allocations]

    assert ["default"] * 1_000 + [None] * 5_400 == foreign
    assert not any(allocation.applicationID for allocation in request.allocations[:1_000])
    assert all(allocation.nodeID for allocation in request.allocations)
    assert all(allocation.applicationID for allocation in request.allocations[1_000:])


def test_an_empty_cluster_has_no_placements() -> None:
    """There is nothing to send then."""
    assert not placement_request(workload_named("u500")).allocations


def test_a_release_says_that_the_resource_manager_ended_the_allocation() -> None:
    """Any other reason would be a confirmation."""
    request = release_request("root.a-000", "root.a-000-0-00000")

    assert request.releases.allocationsToRelease[:] == [
        si.AllocationRelease(
            partitionName="default",
            applicationID="root.a-000",
            allocationKey="root.a-000-0-00000",
            terminationType=si.STOPPED_BY_RM,
        )
    ]


@pytest.mark.parametrize(("name", "preempts"), [("h_backlog_1000", False), ("h_owed_1000", True)])
def test_what_waits_has_one_ask_an_application_in_three_sizes(name: str, *, preempts: bool) -> None:
    """The leaves get the applications in turn; whether the asks may preempt is part of the workload."""
    workload = workload_named(name)
    submitted = waiting_application_request(workload).new
    asks = waiting_ask_request(workload).allocations

    assert [added.applicationID for added in submitted] == [ask.applicationID for ask in asks]
    assert {100} == {[added.queueName for added in submitted].count(path) for path in workload.leaf_paths()}
    assert [110, 120, 130, 110] == [ask.resourcePerAlloc.resources["memory"].value for ask in asks[:4]]
    assert {preempts} == {ask.preemptionPolicy.allowPreemptOther for ask in asks}


def test_the_owed_leaves_have_a_guarantee_and_a_short_delay() -> None:
    """So that those that wait try to preempt while the others are placed."""
    (partition,) = yaml.safe_load(configuration_text(workload_named("h_owed_1000")))["partitions"]

    for leaf in partition["queues"][0]["queues"]:
        assert leaf["properties"] == {"preemption.delay": "1s"}
        assert "guaranteed" in leaf["resources"]


def test_further_resource_types_are_on_nodes_and_asks() -> None:
    """An ask wants one of each; a node has enough of each for all asks."""
    workload = workload_named("a_types")
    node = node_request(workload).nodes[0].schedulableResource.resources
    ask = ask_requests(workload, 0)[0].allocations[0].resourcePerAlloc.resources

    assert 12 == len(node) == len(ask)
    assert (10_000, 1) == (node["type-09"].value, ask["type-09"].value)


def test_limited_users_are_in_the_configuration_and_own_the_applications() -> None:
    """The root limits each of them, and each has an application."""
    workload = workload_named("a_users")
    root = yaml.safe_load(configuration_text(workload))["partitions"][0]["queues"][0]
    users = {new.ugi.user for new in application_request(workload).new}

    assert users == {user for limit in root["limits"] for user in limit["users"]}
    assert 1_000 == len(users)


def test_nodes_applications_and_asks_of_several_partitions_name_theirs() -> None:
    """Each partition is configured, has its share of the nodes, and the asks of its applications."""
    workload = workload_named("p_parts")
    names = [each["name"] for each in yaml.safe_load(configuration_text(workload))["partitions"]]
    nodes = [node.attributes["si/node-partition"] for node in node_request(workload).nodes]
    asks = [request.allocations[0].partitionName for request in ask_requests(workload, 0)]

    assert names * 20 == nodes
    assert [name for name in names for _ in range(10)] == asks
    assert asks == [new.partitionName for new in application_request(workload).new]
    assert names[0] == mark_request(workload).new[0].partitionName


def test_the_first_wave_of_a_gang_are_placeholders() -> None:
    """Both waves name the task group, so that the second replaces the first."""
    waves = [ask_requests(workload_named("q_gangs"), wave)[0].allocations[0] for wave in (0, 1)]

    assert [("members", True), ("members", False)] == [(ask.taskGroupName, ask.placeholder) for ask in waves]


def test_asks_of_a_storm_may_preempt_and_be_preempted() -> None:
    """Those of other workloads may not."""
    storm, other = (
        ask_requests(workload_named(name), 0)[0].allocations[0].preemptionPolicy for name in ("q_storm", "a")
    )

    assert (True, True) == (storm.allowPreemptSelf, storm.allowPreemptOther)
    assert (False, False) == (other.allowPreemptSelf, other.allowPreemptOther)


def test_asks_are_sent_one_by_one_in_turns_of_the_applications() -> None:
    """The first ask of each application comes before the second of any."""
    requests = ask_requests(a_workload(asks_per_wave=2), 0)
    singles = [request.allocations[0] for request in single_ask_requests(requests)]

    first, second = ([request.allocations[turn] for request in requests] for turn in (0, 1))
    assert first + second == singles
