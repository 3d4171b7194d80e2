from __future__ import annotations

from pathlib import Path

import pytest
from support.proxy.simulation_builders import SECOND, written

from licorne.model.configuration.problems import ConfigurationError
from licorne.proxy.play.simulation.workloads.scenario import read_scenario
from licorne.proxy.play.simulation.workloads.workload import NodeChange, count_tasks_larger_than_every_node

_BASE = """\
nodes: [{prefix: n, count: 2, resources: {vcore: 2}}]
applications: [{name: a, queue: root.q, user: u, tasks: [{resources: {vcore: 3}}]}]
events:
"""


def test_events_are_in_the_order_of_their_times(tmp_path: Path) -> None:
    """Each has the nodes that it is about, with what they have."""
    events = """\
  - {at: 30s, restore: n-1}
  - {at: 10s, remove: [n-1, n-2], again: true}
  - {at: 20s, add: {prefix: m, count: 2, resources: {vcore: 4}}}
  - {at: 40s, drain: [m-2]}
"""
    workload = read_scenario(written(tmp_path / "day.yaml", _BASE + events))

    assert [
        (10, NodeChange.REMOVE, ["n-1", "n-2"], True),
        (20, NodeChange.ADD, ["m-1", "m-2"], False),
        (30, NodeChange.RESTORE, ["n-1"], False),
        (40, NodeChange.DRAIN, ["m-2"], False),
    ] == [
        (event.at_ns // SECOND, event.change, [node.node_id for node in event.nodes], event.is_repeated)
        for event in workload.node_events
    ]
    assert {"vcore": 4000} == workload.node_events[3].nodes[0].resources


def test_a_task_that_fits_on_a_later_node_alone_is_not_noted_as_too_large(tmp_path: Path) -> None:
    """It will be placed."""
    before = read_scenario(written(tmp_path / "a.yaml", _BASE.removesuffix("events:\n")))
    added = "  - {at: 20s, add: {prefix: m, resources: {vcore: 3}}}\n"
    after = read_scenario(written(tmp_path / "b.yaml", _BASE + added))

    assert (1, 0) == (count_tasks_larger_than_every_node(before), count_tasks_larger_than_every_node(after))


WRONG: dict[str, tuple[str, str]] = {
    "an event without a change": (
        "{at: 1s}",
        "4:5: events[0]: an event has one of add, remove, drain and restore, not none of them",
    ),
    "an event with two changes": (
        "{at: 1s, drain: n-1, remove: n-2}",
        "4:5: events[0]: an event has one of add, remove, drain and restore, not remove and drain",
    ),
    "an unknown node": (
        "{at: 1s, drain: [n-1, n-3]}",
        "4:27: events[0].drain[1]: there is no node 'n-3' at that time; did you mean 'n-2'?",
    ),
    "a node that was removed before": (
        "{at: 2s, drain: n-1}\n  - {at: 1s, remove: n-1}",
        "4:21: events[0].drain: the node 'n-1' is removed at that time already",
    ),
    "a node that takes work": (
        "{at: 2s, restore: n-1}",
        "4:23: events[0].restore: the node 'n-1' takes work at that time already",
    ),
    "two changes of one node at one moment": (
        "{at: 2s, remove: n-1}\n  - {at: 2s, restore: n-1}",
        "5:23: events[1].restore: the node 'n-1' has changed at that time already",
    ),
    "a prefix that exists": (
        "{at: 2s, add: {prefix: n, resources: {vcore: 1}}}",
        "4:28: events[0].add.prefix: the prefix 'n' is listed twice",
    ),
    "more nodes than a simulation has": (
        "{at: 2s, add: {prefix: m, count: 1000000, resources: {vcore: 1}}}",
        "4:19: events[0].add: there are 1,000,002 nodes with these, more than 1,000,000",
    ),
    "work that nothing ends": (
        "{at: 2s, drain: n-1, again: true}",
        "4:33: events[0].again: only nodes that are removed end what runs on them",
    ),
    "no time": ("{drain: n-1}", "4:5: events[0].at: the key 'at' is missing"),
    "an unknown key": (
        "{at: 1s, drains: n-1}",
        "4:14: events[0].drains: unknown key 'drains'; did you mean 'drain'?",
    ),
    "no flag": (
        "{at: 1s, remove: n-1, again: 2}",
        "4:34: events[0].again: expected true or false, not 2",
    ),
}


@pytest.mark.parametrize("case", WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_named_with_its_place(case: tuple[str, str], tmp_path: Path) -> None:
    """Nothing is simulated then."""
    event, problem = case
    path = written(tmp_path / "day.yaml", f"{_BASE}  - {event}\n")

    with pytest.raises(ConfigurationError) as caught:
        read_scenario(path)

    assert [f"{path}:{problem}"] == str(caught.value).splitlines()
