"""The figures of a partition, and how its cycles are timed."""

from __future__ import annotations

from itertools import count

from support.model.harness import Harness

from licorne.model.applications.effects import ApplicationState
from licorne.model.state.counters import DETAILED_EVERY, TimedPart
from licorne.model.views.rows import partition_figures

LEAF = ("root.leaf", ApplicationState.RUNNING)


def test_applications_are_counted_by_leaf_and_state() -> None:
    """Active ones as they are; those that have ended once and for all."""
    harness = Harness()
    harness.nodes("node")
    harness.submit("app")
    harness.ask("ask")
    harness.run_until_idle()

    assert harness.partition.read(partition_figures).active == {LEAF: 1}

    harness.release("ask")
    harness.advance(seconds=31)
    figures = harness.partition.read(partition_figures)

    assert (figures.active, figures.ended) == ({}, {("root.leaf", ApplicationState.COMPLETED): 1})


def test_a_rejected_application_has_ended() -> None:
    """Of no queue, where no rule has found one."""
    harness = Harness()
    harness.submit("app", "root.no.such")

    ((queue, state),) = harness.partition.read(partition_figures).ended
    assert (state, queue) == (ApplicationState.REJECTED, "")


def test_allocations_of_a_leaf_are_counted_from_their_placement_to_their_end() -> None:
    """Parents have none of their own."""
    harness = Harness()
    harness.nodes("first", "second")
    harness.submit("app")
    for key in ("one", "two"):
        harness.ask(key)
    harness.run_until_idle()
    harness.release("one")
    figures = harness.partition.read(partition_figures)

    assert ({"root.leaf": 2}, {"root.leaf": 1}) == (figures.placed_in, figures.ended_in)


def test_counts_of_a_dynamic_leaf_go_with_it() -> None:
    """Names of users may be any: what is kept of them is bounded."""
    rules = "placementrules: [{name: provided, create: true}]"
    harness = Harness("- {name: people, parent: true}", partition=rules)
    harness.nodes("node")
    harness.submit("app", "root.people.ann")
    harness.ask("ask")
    harness.run_until_idle()
    assert {"root.people.ann": 1} == harness.state.placed.placed_in

    harness.release("ask")
    harness.advance(seconds=120)

    assert ({}, {}) == (harness.state.placed.placed_in, harness.state.placed.ended_in)


def test_each_cycle_is_timed_and_one_in_some_in_detail() -> None:
    """By the stopwatch of the host, which here gains a microsecond each time it is looked at."""
    harness = Harness()
    harness.nodes(*(f"node-{number}" for number in range(DETAILED_EVERY + 1)))
    harness.submit("app")
    harness.state.times.stopwatch_ns = count(0, 1000).__next__
    for number in range(DETAILED_EVERY + 1):
        harness.ask(f"ask-{number}")
        harness.cycle()
    times = harness.partition.read(partition_figures).times

    assert DETAILED_EVERY + 1 == times[TimedPart.CYCLE].durations
    details = (
        TimedPart.REGULAR,
        TimedPart.QUEUE_ORDER,
        TimedPart.APPLICATION_ORDER,
        TimedPart.NODE_SEARCH,
    )
    assert [2] * len(details) == [times[part].durations for part in details]
    assert (0, 0) == (times[TimedPart.RESERVED].durations, times[TimedPart.PREEMPTION].durations)
    assert times[TimedPart.NODE_SEARCH].total_ns == 2000


def test_a_cycle_with_nothing_to_place_is_not_timed() -> None:
    """Otherwise the times of cycles that work would be lost among those that do not."""
    harness = Harness()
    harness.nodes("node")
    harness.cycle()

    assert harness.partition.read(partition_figures).times[TimedPart.CYCLE].durations == 0
