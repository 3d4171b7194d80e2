"""What the scheduler refuses, and in which words."""

from __future__ import annotations

import pytest
from support.proxy.listening import Listener
from support.proxy.manager_requests import (
    ONE,
    TWO,
    application_request,
    ask_request,
    configuration_request,
    keys,
    node_request,
    older_ask_request,
)
from support.proxy.running_scheduler import begin, running

from licorne import LicorneError, RequestError, Scheduler
from licorne.proxy.si import si_pb2 as si


def test_requests_of_an_unknown_manager_are_refused(scheduler: Scheduler) -> None:
    """The text names the request and the RM."""
    refusal = 'received {}, but RmID="nobody" not registered'
    with pytest.raises(RequestError, match=refusal.format("NodeRequest")):
        scheduler.update_node(node_request("node", rm_id="nobody"))
    with pytest.raises(RequestError, match=refusal.format("ApplicationRequest")):
        scheduler.update_application(application_request("app", rm_id="nobody"))
    with pytest.raises(RequestError, match=refusal.format("AllocationRequest")):
        scheduler.update_allocation(ask_request("ask", rm_id="nobody"))
    with pytest.raises(RequestError, match="RM nobody has no active partitions, make sure it is registered"):
        scheduler.update_configuration(configuration_request(ONE, rm_id="nobody"))


def test_what_is_sent_to_an_unknown_partition_is_answered(scheduler: Scheduler, listener: Listener) -> None:
    """Nodes, applications and asks, each in the words of the rules."""
    begin(scheduler, listener)
    scheduler.update_node(node_request("n", partition="no"))
    scheduler.update_application(application_request("a", partition="no"))
    scheduler.update_allocation(ask_request("k", partition="no"))

    listener.wait_for(
        "rejected n: failed to find partition [rm]no for new node n",
        "rejected a: Failed to add application a to partition [rm]no, partition doesn't exist",
        "rejected k: Failed to find partition [rm]no, for application app and allocation k",
    )


def test_what_names_an_unknown_application_or_node_is_answered(
    scheduler: Scheduler, listener: Listener
) -> None:
    """An ask is rejected; an update of a node that is not known has no answer, and no effect."""
    begin(scheduler, listener)
    update = node_request("nowhere")
    update.nodes[0].action = si.NodeInfo.DRAIN_NODE
    scheduler.update_node(update)
    scheduler.update_allocation(ask_request("ask", application="nobody"))
    scheduler.update_allocation(ask_request("existing", node_id="nowhere"))
    scheduler.update_node(node_request("node-default"))

    listener.wait_for(
        "rejected ask: failed to find application nobody",
        "rejected existing: failed to find node nowhere",
        "rejected node-default: failure while adding new node, node rejected with error: failed to add node "
        "node-default to partition [rm]default, error: partition [rm]default has an existing node "
        "node-default, node name must be unique",
    )
    assert 3 == len(listener.all("rejected "))


@pytest.mark.parametrize("partition", ["", "no"])
def test_an_odd_request_for_a_node_is_answered(
    scheduler: Scheduler, listener: Listener, partition: str
) -> None:
    """Once, whether its partition exists: what is wrong with it is named."""
    begin(scheduler, listener)
    odd = node_request("negative", "", "unknown", "missing", partition=partition)
    negative, _, unknown, missing = odd.nodes
    negative.schedulableResource.resources["memory"].value = -1
    unknown.action = 77  # type: ignore[assignment] # of a later version
    missing.ClearField("action")

    scheduler.update_node(odd)

    known = "known are CREATE, UPDATE, DRAIN_NODE, DECOMISSION, DRAIN_TO_SCHEDULABLE, CREATE_DRAIN"
    expected = [
        "rejected negative: the capacity of node negative is negative: memory is -1",
        "rejected : nothing is done for the action CREATE: the node id is empty",
        f"rejected unknown: nothing is done with node 'unknown': its action 77 is unknown; {known}",
        f"rejected missing: nothing is done with node 'missing': its action is missing; {known}",
    ]
    listener.wait_for(*expected)
    assert expected == [f"rejected {text}" for text in listener.all("rejected ")]


def test_what_has_no_name_is_answered(scheduler: Scheduler, listener: Listener) -> None:
    """It could not be released or taken away: an empty key means all there."""
    begin(scheduler, listener)
    foreign = ask_request("", application="", node_id="node-default")
    foreign.allocations[0].allocationTags["foreign"] = "static"
    scheduler.update_application(application_request(""))
    scheduler.update_allocation(ask_request("", ""))
    scheduler.update_allocation(ask_request("", node_id="node-default"))
    scheduler.update_allocation(older_ask_request("", timeout_ms=5))
    scheduler.update_allocation(foreign)
    scheduler.update_allocation(ask_request("lost", application=""))

    empty = "rejected : the allocation key of an ask of application 'app' is empty"
    expected = [
        "rejected : the application id is empty",
        *4 * [empty],
        "rejected : the allocation key of a foreign allocation on node 'node-default' is empty",
        "rejected lost: the application id of the ask lost is empty",
    ]
    listener.wait_for(*expected)
    assert expected == [f"rejected {text}" for text in listener.all("rejected ")]


def test_a_scheduler_that_runs_by_itself_is_not_stepped(scheduler: Scheduler) -> None:
    """It has no virtual clock, and what it says is delivered by its own threads."""
    for step in (scheduler.deliver, scheduler.schedule, scheduler.run_until_idle, scheduler.next_deadline_ns):
        with pytest.raises(LicorneError, match="this scheduler runs by itself"):
            step()


def test_every_ask_between_the_actors_goes_down(listener: Listener) -> None:
    """Cluster, partition, application, node: checked in a busy scheduler, failures would be in the log."""
    with running(check_direction=True) as scheduler:
        begin(scheduler, listener, configuration=TWO)
        scheduler.update_allocation(ask_request(*keys(100)))
        scheduler.update_configuration(configuration_request(ONE))
        listener.wait_for_count("placed ", 100)
        scheduler.register("rm", listener, configuration=ONE)
