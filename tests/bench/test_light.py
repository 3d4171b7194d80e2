from __future__ import annotations

import itertools

import pytest
from figures import BenchError
from light import LIGHT_ALLOCATIONS, LIGHT_NODES, Light


def no_time() -> float:
    """Return a time that stands still."""
    return 0.0


def test_the_light_is_what_it_always_was() -> None:
    """10,000 allocations over 5,000 nodes: other figures could not be compared with older ones."""
    assert (LIGHT_ALLOCATIONS, LIGHT_NODES) == (10_000, 5_000)


def test_the_light_charges_queues_and_applications_with_both_resource_types() -> None:
    """Each ask of 10/1 is on all three levels of its path; two applications ask in turn."""
    light = Light(allocations=20, nodes=5)
    light.run_seconds(no_time)

    assert ({"memory": 200, "vcore": 20},) * 3 == light.queue_usage()
    assert {name: {"memory": 100, "vcore": 10} for name in "ab"} == light.application_usage()


def test_the_light_keeps_its_nodes_in_order() -> None:
    """A node that was charged goes behind all that were not."""
    light = Light(allocations=2, nodes=4)
    light.run_seconds(no_time)

    used, unused = {"memory": 10, "vcore": 1}, {"memory": 0, "vcore": 0}
    assert [
        ("node-00002", unused),
        ("node-00003", unused),
        ("node-00000", used),
        ("node-00001", used),
    ] == list(light.node_usage().items())


def test_the_light_spreads_over_all_nodes() -> None:
    """The first node of the order is always one that is used least, so none gets two ahead of another."""
    light = Light(allocations=25, nodes=10)
    light.run_seconds(no_time)

    assert [20] * 5 + [30] * 5 == sorted(usage["memory"] for usage in light.node_usage().values())


def test_the_light_answers_with_the_allocation() -> None:
    """The response names key, application, node and size, as the core's does."""
    light = Light(allocations=2, nodes=2)

    (placed,) = light.place(light.requests[1]).new

    assert (placed.allocationKey, placed.applicationID, placed.nodeID) == ("ask-00001", "b", "node-00000")
    sizes = {name: quantity.value for name, quantity in placed.resourcePerAlloc.resources.items()}
    assert sizes == {"memory": 10, "vcore": 1}
    assert placed.HasField("preemptionPolicy")


def test_every_run_of_the_light_does_the_same() -> None:
    """The cluster is made anew, so a second run charges no more than the first."""
    light = Light(allocations=30, nodes=7)
    light.run_seconds(no_time)
    first = light.node_usage()
    light.run_seconds(no_time)

    assert first == light.node_usage()


def test_the_light_takes_the_time_of_the_loop_alone() -> None:
    """The clock is read once before and once after, whatever the number of asks."""
    readings = iter([5.0, 7.5])

    assert Light(allocations=10, nodes=3).run_seconds(lambda: next(readings)) == 2.5


def test_the_pace_of_the_light_is_that_of_the_run_in_the_middle() -> None:
    """Three runs of 1, 4 and 2 seconds: ten asks in 2 seconds are 5 a second."""
    readings = itertools.accumulate([0.0, 1.0, 0.0, 4.0, 0.0, 2.0])
    light = Light(allocations=10, nodes=3)

    assert light.allocations_per_second(lambda: next(readings), runs=3) == 5.0


def test_the_light_checks_that_there_is_room() -> None:
    """One node holds 100 asks; the check is real, and nothing is placed that does not fit."""
    light = Light(allocations=101, nodes=1)

    with pytest.raises(BenchError, match=r"no room for \d+ \w+ on node-00000"):
        light.run_seconds(no_time)
