"""The metrics of a scheduler, compared with what was recorded, and what the text has besides."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from prometheus_client.parser import text_string_to_metric_families
from support.proxy.metric_texts import Series, kinds_of, scraped, values_of
from support.proxy.rest_scenario import RECORDED, rest_scenario

from licorne import RequestError, ResourceManager, Scheduler
from licorne.proxy.core.metrics.exporter import SchedulerCollector, exposition
from licorne.proxy.core.scheduler.engine_names import EngineName
from licorne.proxy.si import si_pb2 as si

TIMED: Final = ("_milliseconds_bucket", "_milliseconds_count", "_milliseconds_sum")
"""How often something is timed depends on the program that does it."""
NOT_HERE: Final[frozenset[Series]] = frozenset(
    {("yunikorn_queue_app", frozenset({("queue", ""), ("state", "new")}))}
)
"""Recorded as -1: an application that was rejected was subtracted from a queue that it had never entered."""
QUEUES: Final = """
partitions:
  - name: default
    queues: [{name: root, submitacl: "*", queues: [{name: leaf, resources: {max: {memory: 50}}}]}]
"""


def recorded() -> str:
    return (RECORDED / "metrics.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("engine", ["direct", "actors", "threads"])
def test_names_types_labels_and_values_are_those_that_were_recorded(engine: EngineName) -> None:
    """Buckets too; only how often the parts of a cycle were timed is our own."""
    with rest_scenario(engine) as scheduler:
        text = exposition(scheduler)[0].decode()
    values, expected = values_of(text), values_of(recorded())

    assert kinds_of(recorded()) == {
        name: kind for name, kind in kinds_of(text).items() if name in kinds_of(recorded())
    }
    assert expected.keys() - NOT_HERE <= values.keys()
    plain = {series for series in expected if not series[0].endswith(TIMED)} - NOT_HERE
    assert {series: expected[series] for series in plain} == {series: values[series] for series in plain}


def test_prometheus_can_read_the_text() -> None:
    """Its own parser finds every family, also one with a queue in its name."""
    with rest_scenario() as scheduler:
        text, content_type = exposition(scheduler)

    families = {family.name for family in text_string_to_metric_families(text.decode())}
    assert {"yunikorn_root_a_queue_container", "licorne_ask_latency_seconds", "python_info"} <= families
    assert content_type == "text/plain; version=0.0.4; charset=utf-8"


def test_placements_are_counted_by_queue() -> None:
    """The recorded core counts only those that were placed before it started."""
    with rest_scenario() as scheduler:
        values = scraped(scheduler)

    placed = values["yunikorn_root_a_queue_container", frozenset({("state", "allocated")})]
    assert placed == 5


def test_what_waits_is_counted_by_its_queue_and_its_first_blocker() -> None:
    """In few words; a queue without waiting applications has none."""
    with rest_scenario() as scheduler:
        values = scraped(scheduler)

    waiting = {
        dict(labels)["queue"]: (dict(labels)["reason"], value)
        for (name, labels), value in values.items()
        if name == "licorne_waiting"
    }
    assert {"root.a": ("user limit", 1), "root.b.static": ("no room: memory", 1)} == waiting


def test_queues_of_one_path_are_added_up() -> None:
    """Two resource managers, with a queue `root.leaf` each."""
    with Scheduler(engine="direct") as scheduler:
        for rm_id in ("one", "two"):
            scheduler.register(rm_id, ResourceManager(), configuration=QUEUES)
            submit(scheduler, rm_id, memory=5)
        scheduler.run_until_idle()
        values = scraped(scheduler)

    labels = {("queue", "root.leaf"), ("resource", "memory"), ("state", "allocated")}
    assert values["yunikorn_queue_resource", frozenset(labels)] == 10
    assert values["yunikorn_scheduler_node", frozenset({("state", "active")})] == 2


def test_an_ask_counts_from_its_creation_to_its_placement() -> None:
    """Here three seconds, until there is a node."""
    with Scheduler(engine="direct") as scheduler:
        scheduler.register("rm", ResourceManager(), configuration=QUEUES)
        submit(scheduler, "rm", memory=5, node=False)
        scheduler.run_until_idle()
        scheduler.advance_to(scheduler.now_ns() + 3_000_000_000)
        scheduler.update_node(si.NodeRequest(rmID="rm", nodes=[a_node()]))
        scheduler.run_until_idle()
        values = scraped(scheduler)

    assert values["licorne_ask_latency_seconds_sum", frozenset()] == 3
    assert values["licorne_ask_latency_seconds_bucket", frozenset({("le", "1")})] == 0
    assert values["licorne_ask_latency_seconds_bucket", frozenset({("le", "10")})] == 1


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("engine", ["direct", "actors"])
def test_what_is_sent_is_counted_also_while_it_is_recorded(
    engine: EngineName, *, recorded: bool, tmp_path: Path
) -> None:
    """A recorder settles the generation of each announcement, and passes something else to the link."""
    with Scheduler(engine=engine, stepped=True, record=tmp_path / "here" if recorded else None) as scheduler:
        scheduler.register("rm", ResourceManager(), configuration=QUEUES)
        submit(scheduler, "rm", memory=5)
        scheduler.run_until_idle()
        values = scraped(scheduler)

    attempts = "yunikorn_scheduler_container_allocation_attempt_total"
    assert values[attempts, frozenset({("state", "allocated")})] == 1
    submissions = "yunikorn_scheduler_application_submission_total"
    assert values[submissions, frozenset({("result", "accepted")})] == 1


def test_a_node_for_a_partition_that_is_not_there_has_failed() -> None:
    """Others that are refused have not."""
    with Scheduler(engine="direct") as scheduler:
        scheduler.register("rm", ResourceManager())
        scheduler.update_node(si.NodeRequest(rmID="rm", nodes=[a_node({"si/node-partition": "no"})]))
        for _ in range(2):
            scheduler.update_node(si.NodeRequest(rmID="rm", nodes=[a_node()]))
        values = scraped(scheduler)

    assert values["yunikorn_scheduler_node", frozenset({("state", "failed")})] == 1
    assert values["yunikorn_scheduler_node", frozenset({("state", "active")})] == 1


def test_a_node_that_drains_and_one_that_is_gone_are_counted() -> None:
    """One that drains is still active, as in the recorded core."""
    with rest_scenario() as scheduler:
        gone = {"nodeID": "node-3", "action": "DECOMISSION"}
        scheduler.update_node(si.NodeRequest(rmID="rm", nodes=[gone]))
        values = scraped(scheduler)

    states = ("active", "draining", "decommissioned")
    counts = [values["yunikorn_scheduler_node", frozenset({("state", state)})] for state in states]
    assert [2, 1, 1] == counts


def test_each_predicate_is_timed() -> None:
    """One that refuses as well."""

    class Picky(ResourceManager):
        def predicates(self, args: si.PredicatesArgs) -> None:
            if args.nodeID == "bad":
                raise ValueError("not there")

    with Scheduler(engine="direct") as scheduler:
        scheduler.register("rm", Picky(), configuration=QUEUES)
        scheduler.update_node(si.NodeRequest(rmID="rm", nodes=[a_node(node_id="bad")]))
        submit(scheduler, "rm", memory=5)
        scheduler.run_until_idle()
        values = scraped(scheduler)

    assert values["yunikorn_scheduler_trynode_latency_milliseconds_count", frozenset()] == 2


def test_what_a_queue_without_use_has_is_zero() -> None:
    """So that its use over its maximum has a value."""
    with Scheduler(engine="direct") as scheduler:
        scheduler.register("rm", ResourceManager(), configuration=QUEUES)
        values = scraped(scheduler)

    labels = {("queue", "root.leaf"), ("resource", "memory")}
    assert values["yunikorn_queue_resource", frozenset({*labels, ("state", "max")})] == 50
    assert values["yunikorn_queue_resource", frozenset({*labels, ("state", "allocated")})] == 0


def test_the_load_of_an_engine_is_shown() -> None:
    """Here of actors that run by themselves: two threads, and nothing waits."""
    with Scheduler() as scheduler:
        scheduler.register("rm", ResourceManager())
        values = scraped(scheduler)

    assert values["licorne_dispatcher_threads", frozenset({("state", "all")})] >= 2
    assert ("licorne_mailbox_messages", frozenset({("partition", "[rm]default")})) in values
    assert ("licorne_link_backlog", frozenset({("rm", "rm")})) in values


def test_what_a_stopped_manager_had_is_not_shown_as_if_it_were_there() -> None:
    """Its nodes and queues are not; what was counted stays, also when it is forgotten."""
    with Scheduler(engine="direct") as scheduler:
        for rm_id in ("gone", "stays"):
            scheduler.register(rm_id, ResourceManager(), configuration=QUEUES)
            submit(scheduler, rm_id, memory=5)
        scheduler.run_until_idle()
        nodes = ("yunikorn_scheduler_node", frozenset({("state", "active")}))
        used = frozenset({("queue", "root.leaf"), ("resource", "memory"), ("state", "allocated")})
        placed = (
            "yunikorn_scheduler_container_allocation_attempt_total",
            frozenset({("state", "allocated")}),
        )
        paused, stopped = (
            ("licorne_manager", frozenset({("rm", "gone"), ("state", state)}))
            for state in ("paused", "stopped")
        )
        shown: list[list[float | None]] = []
        for change in (
            lambda: None,
            lambda: scheduler.pause_manager("gone", "lost"),
            lambda: scheduler.stop_manager("gone", "too long"),
            lambda: scheduler.forget_manager("gone"),
        ):
            change()
            values = scraped(scheduler)
            series = (nodes, ("yunikorn_queue_resource", used), placed, paused, stopped)
            shown.append([values.get(each) for each in series])

    assert [[2, 10, 2, 0, 0], [2, 10, 2, 1, 0], [1, 5, 2, 0, 1], [1, 5, 2, None, None]] == shown


def test_two_schedulers_have_metrics_of_their_own() -> None:
    """Nothing is kept for the process."""
    with rest_scenario() as busy, Scheduler(engine="direct") as idle:
        series = (
            "yunikorn_scheduler_container_allocation_attempt_total",
            frozenset({("state", "allocated")}),
        )

        assert (12, 0) == (scraped(busy)[series], scraped(idle)[series])


def test_a_scheduler_that_has_stopped_has_no_metrics() -> None:
    """It says so."""
    scheduler = Scheduler(engine="direct")
    scheduler.stop()

    with pytest.raises(RequestError, match="has been stopped"):
        list(SchedulerCollector(scheduler).collect())


def submit(scheduler: Scheduler, rm_id: str, *, memory: int, node: bool = True) -> None:
    """Bring a node, and an application with an ask."""
    if node:
        scheduler.update_node(si.NodeRequest(rmID=rm_id, nodes=[a_node()]))
    application = {"applicationID": "app", "queueName": "root.leaf", "ugi": {"user": "ada"}}
    scheduler.update_application(si.ApplicationRequest(rmID=rm_id, new=[application]))
    size = {"resources": {"memory": {"value": memory}}}
    ask = {"allocationKey": "ask", "applicationID": "app", "resourcePerAlloc": size}
    scheduler.update_allocation(si.AllocationRequest(rmID=rm_id, allocations=[ask]))


def a_node(attributes: dict[str, str] | None = None, node_id: str = "node") -> si.NodeInfo:
    """Return a new node."""
    size = si.Resource(resources={"memory": si.Quantity(value=100)})
    action = si.NodeInfo.ActionFromRM.CREATE
    return si.NodeInfo(nodeID=node_id, action=action, schedulableResource=size, attributes=attributes)


def test_what_became_of_events_is_counted() -> None:
    """Under the names of the recorded core; streams under names of our own."""
    with rest_scenario() as scheduler:
        stream = scheduler.events.stream()
        values = values_of(exposition(scheduler)[0].decode())
        counters = scheduler.events.counters()
        stream.close()

    assert counters.created > 0
    names = ("created", "channeled", "not_channeled", "processed", "stored", "not_stored", "collected")
    assert {name: getattr(counters, name) for name in names} == {
        name: values[f"yunikorn_event_total_{name}", frozenset()] for name in names
    }
    shown = ("streams", "streams_dropped", "lost_to_streams")
    assert [1, 0, 0] == [values[f"licorne_event_{name}", frozenset()] for name in shown]
