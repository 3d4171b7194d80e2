"""Registration and configuration while work goes on; what is refused, and in which words."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import pytest
from support.proxy.listening import Gate, Listener
from support.proxy.manager_requests import (
    BROKEN,
    ONE,
    TWO,
    application_request,
    ask_request,
    configuration_request,
    gang_request,
    keys,
    node_request,
    older_ask_request,
    placeholder_request,
)
from support.proxy.running_scheduler import actors_of, begin, in_threads, placed_in, running, threads_of_ours
from support.waiting import WAIT_SECONDS, wait_until

from licorne import LicorneError, RequestError, Scheduler
from licorne.proxy.si import si_pb2 as si

SECOND_NS: Final = 1_000_000_000


def test_a_manager_that_registers_again_starts_afresh(scheduler: Scheduler, listener: Listener) -> None:
    """While it is busy: all that it had ends, and the same names are free again."""
    begin(scheduler, listener)
    scheduler.update_allocation(ask_request(*keys(500)))
    listener.wait_for_count("placed ", 1)
    again = Listener()
    begin(scheduler, again)

    assert 0 == placed_in(scheduler)
    assert "app is Failed" in listener.heard
    scheduler.update_allocation(ask_request(*keys(500)))
    again.wait_for_count("placed ", 500)


def test_registrations_at_once_take_turns(scheduler: Scheduler) -> None:
    """One of them stays; none hangs, and no link of the others either."""
    listeners = [Listener() for _ in range(4)]
    served = Gate("accepted node")
    served.open()
    for listener in listeners:
        listener.react = served.hold
    bodies = [partial(scheduler.register, "rm", listener, configuration=ONE) for listener in listeners]
    in_threads(*bodies)
    scheduler.update_node(node_request("node"))

    assert served.reached.wait(WAIT_SECONDS)
    assert 1 == sum("accepted node" in listener.heard for listener in listeners)


def test_what_an_earlier_registration_had_is_dropped() -> None:
    """The actors of cluster and partition are all that remain."""
    with running() as scheduler:
        listener = Listener()
        for _ in range(3):
            begin(scheduler, listener)
            scheduler.update_allocation(ask_request("ask"))
            listener.wait_for("placed ask")
        scheduler.register("rm", listener, configuration=ONE)

        assert 2 == actors_of(scheduler)


def test_timers_of_an_earlier_registration_do_not_reach_the_next_one() -> None:
    """An application of the same name starts its time anew; on the virtual clock."""
    scheduler, listener = Scheduler(engine="direct"), Listener()
    start_ns = scheduler.now_ns()
    for begun_ns in (0, 50 * SECOND_NS):
        scheduler.advance_to(start_ns + begun_ns)
        scheduler.register("rm", listener, configuration=ONE)
        scheduler.update_node(node_request("node"))
        scheduler.update_application(gang_request(total=2, timeout_ms=60_000))
        scheduler.update_allocation(placeholder_request("holder"))
        scheduler.run_until_idle()
    scheduler.advance_to(start_ns + 61 * SECOND_NS)

    assert "released holder TIMEOUT" not in listener.heard


def test_a_partition_is_removed_while_it_is_busy(scheduler: Scheduler, listener: Listener) -> None:
    """Its asks end with it, later ones are answered, and the other partition goes on."""
    begin(scheduler, listener, configuration=TWO)
    scheduler.update_allocation(ask_request(*keys(500), application="app-second", partition="second"))
    listener.wait_for_count("placed ", 1)
    scheduler.update_configuration(configuration_request(ONE))
    listener.wait_for("app-second is Failed")

    scheduler.update_allocation(ask_request("late", application="app-second", partition="second"))
    scheduler.update_allocation(ask_request("other"))
    reason = "Failed to find partition [rm]second, for application app-second and allocation late"
    listener.wait_for(f"rejected late: {reason}", "placed other")


@pytest.mark.lockcheck(off=True)  # the thread that registers stands for another one besides
@pytest.mark.parametrize("change", ["registration", "removal"])
def test_what_arrives_while_its_partition_ends_is_answered(
    scheduler: Scheduler, listener: Listener, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """A request that was sent between the end of the partition and the news of it."""
    begin(scheduler, listener, configuration=TWO)
    enter = scheduler._managers.enter
    errors: list[Exception] = []

    def late(*args: Any) -> Any:
        try:
            scheduler.update_application(application_request("late", partition="second"))
        except Exception as error:  # noqa: BLE001 - none is expected
            errors.append(error)
        return enter(*args)

    monkeypatch.setattr(scheduler._managers, "enter", late)
    if change == "registration":
        scheduler.register("rm", listener, configuration=TWO)
    else:
        scheduler.update_configuration(configuration_request(ONE))

    assert [] == errors
    wait_until(lambda: any(" late" in text for text in listener.heard))


@pytest.mark.parametrize("text", [BROKEN, "no: [yaml"])
def test_a_refused_configuration_leaves_everything_as_it_was(
    scheduler: Scheduler, listener: Listener, text: str
) -> None:
    """Whether it comes with an update or with another registration."""
    begin(scheduler, listener, configuration=TWO)
    scheduler.update_allocation(ask_request("ask"))
    listener.wait_for("placed ask")
    before = scheduler.snapshot()

    with pytest.raises(RequestError, match="update of configuration failed: "):
        scheduler.update_configuration(configuration_request(text))
    with pytest.raises(RequestError, match="registration of RM failed: "):
        scheduler.register("rm", Listener(), configuration=text)
    assert before == scheduler.snapshot()
    scheduler.update_allocation(ask_request("next", application="app-second", partition="second"))
    listener.wait_for("placed next")


def test_a_registration_without_an_id_is_refused_in_few_words(
    scheduler: Scheduler, listener: Listener
) -> None:
    """That it failed is reported once, whichever thread finds out why."""
    with pytest.raises(RequestError, match=r"^registration of RM failed: the rmID is empty$"):
        scheduler.register("", listener)


def test_a_refused_registration_leaves_no_manager_and_no_thread(
    scheduler: Scheduler, listener: Listener
) -> None:
    """As if it had never been tried."""
    before = threads_of_ours()
    with pytest.raises(RequestError, match="registration of RM failed: "):
        scheduler.register("rm", listener, configuration=BROKEN)

    assert before == threads_of_ours()
    with pytest.raises(RequestError, match="not registered"):
        scheduler.update_node(node_request("node"))


# --------------------------------------------------------------------------------------------- refusals


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
    """An ask is rejected, and an update of a node that is not known."""
    begin(scheduler, listener)
    update = node_request("nowhere")
    update.nodes[0].action = si.NodeInfo.DRAIN_NODE
    scheduler.update_node(update)
    scheduler.update_allocation(ask_request("ask", application="nobody"))
    scheduler.update_allocation(ask_request("existing", node_id="nowhere"))
    scheduler.update_node(node_request("node-default"))

    listener.wait_for(
        "rejected nowhere: nothing is done for the action DRAIN_NODE: "
        "partition [rm]default has no node nowhere",
        "rejected ask: failed to find application nobody",
        "rejected existing: failed to find node nowhere",
        "rejected node-default: failure while adding new node, node rejected with error: failed to add node "
        "node-default to partition [rm]default, error: partition [rm]default has an existing node "
        "node-default, node name must be unique",
    )
    assert 4 == len(listener.all("rejected "))


def test_a_cordoned_node_is_shown_so_and_takes_asks(scheduler: Scheduler, listener: Listener) -> None:
    """Its attribute decides nothing; an update may change it."""
    begin(scheduler, listener)
    for text, is_schedulable in (("true", False), ("false", True)):
        update = node_request("node-default")
        update.nodes[0].action = si.NodeInfo.UPDATE
        update.nodes[0].ClearField("schedulableResource")
        update.nodes[0].attributes["licorne/cordoned"] = text
        scheduler.update_node(update)
        scheduler.update_allocation(ask_request(text))
        listener.wait_for(f"placed {text}")
        snapshot: Any = scheduler.snapshot()

        assert [is_schedulable] == [each["schedulable"] for each in snapshot["nodes"]["default"]]


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
        with pytest.raises(LicorneError, match="this scheduler is not stepped"):
            step()


def test_every_ask_between_the_actors_goes_down(listener: Listener) -> None:
    """Cluster, partition, application, node: checked in a busy scheduler, failures would be in the log."""
    with running(check_direction=True) as scheduler:
        begin(scheduler, listener, configuration=TWO)
        scheduler.update_allocation(ask_request(*keys(100)))
        scheduler.update_configuration(configuration_request(ONE))
        listener.wait_for_count("placed ", 100)
        scheduler.register("rm", listener, configuration=ONE)
