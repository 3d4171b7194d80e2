"""Explanations agree with the cycle, whatever has happened: random transcripts, looked at when all rests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest
from support.transcripts.simulated_transcripts import simulated_transcript

from licorne.model.explanation.blockers import summarise
from licorne.model.explanation.explain import explain
from licorne.model.explanation.values import queue_places
from licorne.model.partition import Partition
from licorne.model.queues.quota import ranked_children
from licorne.proxy.core.scheduler.scheduler import Scheduler
from licorne.proxy.play.transcripts.replay import Replay
from licorne.proxy.play.transcripts.transcript import read_transcript

SEEDS: Final = range(12)
SOAK_SEEDS: Final = range(12, 400)


def resting(seed: int) -> Iterator[Partition]:
    """Replay a random transcript, and pause at each partition whenever nothing more can be placed."""
    replay = Replay(Scheduler(engine="direct"), lambda _: None)
    for line in read_transcript("\n".join(simulated_transcript(seed)), "transcript"):
        replay.run([line])
        if line.verb == "schedule":
            replay.scheduler.run_until_idle()
            yield from replay.scheduler._cluster.partitions()


def check_explanations(seed: int) -> int:
    """Check every ask that waits; return how many there were."""
    count = 0
    for partition in resting(seed):
        for name, entry in partition._state.entries.items():
            explanation = partition.read(explain, name)
            assert explanation is not None
            refusals = entry.application.asks.refusals()
            for ask in explanation.waiting:
                count += 1
                blockers = (*explanation.blockers, *ask.blockers)
                assert blockers, f"nothing is said to be in the way of {ask}"
                # The walk's refusals are old where something about the whole application stands in the way.
                if explanation.blockers:
                    continue
                told = {blocker.reason for blocker in ask.blockers}
                for refusal in refusals:
                    if refusal.allocation_key == ask.allocation_key:
                        assert refusal.reason in told, f"{refusal} is not told of {ask}"
    return count


@pytest.mark.parametrize("seed", SEEDS)
def test_every_ask_that_waits_has_a_reason_and_the_one_that_the_walk_gave(seed: int) -> None:
    """Complete, and no other answer than that of the cycle."""
    check_explanations(seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", SOAK_SEEDS)
def test_many_more_transcripts_agree(seed: int) -> None:
    """The same with seeds that the usual run has no time for."""
    check_explanations(seed)


def test_many_asks_wait_in_these_transcripts() -> None:
    """Transcripts in which nothing waits would agree as well."""
    assert sum(check_explanations(seed) for seed in range(6)) > 50


@pytest.mark.parametrize("seed", SEEDS)
def test_the_first_node_with_room_is_the_one_that_the_cycle_takes(seed: int) -> None:
    """And there is none where the cycle finds none."""
    for partition in resting(seed):
        state = partition._state
        for size in [size for queue in state.tree.leaves() for size in queue.entries.sizes]:
            node = state.nodes.first_fit(size)
            assert ("" if node is None else node.node_id) == summarise(state.nodes, size).first


@pytest.mark.parametrize("seed", SEEDS)
def test_the_places_are_those_of_the_orders_that_the_cycle_walks(seed: int) -> None:
    """Of applications in their leaves, and of queues among their siblings."""
    for partition in resting(seed):
        tree = partition._state.tree
        for queue in tree:
            ranked = list(queue.entries.ranked(queue))
            assert list(queue.entries) == ranked == list(queue.entries.ranked(queue))
            children = list(ranked_children(tree, queue))
            assert children == list(tree.children_in_order(queue))
            for number, child in enumerate(children, start=1):
                assert (child.path, queue.path, number) == next(
                    (place.subject, place.among, place.number) for place in queue_places(tree, child)
                )
