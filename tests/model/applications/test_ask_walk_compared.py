"""The walk by groups of equal asks beside a plain walk, ask by ask."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st
from support.model.builders import SECOND_NS, START_NS, a_resource, an_ask

from licorne.model.applications.ask_walk import (
    RESERVATION_DELAY_NS,
    AskWalk,
    CandidateKind,
    FailedTry,
    next_candidate,
)
from licorne.model.applications.pending_asks import PendingAsks, shape_of
from licorne.model.applications.reservations import Reservation, Reservations
from licorne.model.applications.task_groups import TaskGroups
from licorne.model.resources.resource import Resource
from licorne.model.values.allocation import Ask


def attempted(asks: PendingAsks) -> list[str]:
    """Return the waiting asks for which scheduling looked for room, in order."""
    return [
        record.ask.allocation_key
        for record in asks.waiting()
        if asks.groups[shape_of(record.ask)].was_attempted(record)
    ]


@dataclass(frozen=True)
class Scene:
    """What a walk meets."""

    asks: tuple[Ask, ...]
    placed: frozenset[str]
    reserved: frozenset[str]
    room: frozenset[int]
    user: Resource | None
    queue: Resource | None
    backoff: int


def _ask(number: int, parts: tuple[int, int, int]) -> Ask:
    size, priority, age = parts
    created_at_ns = START_NS - age * SECOND_NS
    return an_ask(
        f"ask-{number}", resource=a_resource(memory=size), priority=priority, created_at_ns=created_at_ns
    )


HEADROOMS = st.sampled_from([None, a_resource(memory=1), a_resource(memory=2)])
NUMBERS = st.frozensets(st.integers(0, 9).map("ask-{}".format), max_size=4)
SCENES = st.builds(
    Scene,
    asks=st.lists(st.tuples(st.integers(1, 3), st.integers(0, 1), st.integers(0, 4)), max_size=10).map(
        lambda rows: tuple(_ask(number, parts) for number, parts in enumerate(rows))
    ),
    placed=NUMBERS,
    reserved=NUMBERS,
    room=st.frozensets(st.integers(1, 3), max_size=1),
    user=HEADROOMS,
    queue=HEADROOMS,
    backoff=st.sampled_from([0, 0, 1, 2]),
)


def fits(headroom: Resource | None, ask: Ask) -> bool:
    return headroom is None or ask.resource.get("memory") <= headroom.get("memory")


def reservable(scene: Scene, ask: Ask) -> bool:
    return ask.allocation_key not in scene.reserved and START_NS - ask.created_at_ns > RESERVATION_DELAY_NS


def plain_walk(scene: Scene, order: list[Ask]) -> tuple[str, str, list[str]]:
    """Do what the rules say, ask by ask: what comes of it, for which ask, and which were attempted."""
    attempted: list[str] = []
    missed = 0
    for ask in order:
        if scene.backoff and missed >= scene.backoff:
            return "back off", "", attempted
        if ask.allocation_key in scene.placed or not fits(scene.user, ask):
            continue
        attempted.append(ask.allocation_key)
        if not fits(scene.queue, ask):
            continue
        if ask.resource.get("memory") in scene.room:
            return "place", ask.allocation_key, attempted
        if reservable(scene, ask):
            return "reserve", ask.allocation_key, attempted
        missed += 1
    return "nothing", "", attempted


def grouped_walk(scene: Scene, asks: PendingAsks, reservations: Reservations) -> tuple[str, str, list[str]]:
    """Do what the partition does with the walk."""
    walk = AskWalk(
        now_ns=START_NS,
        queue_path="root.leaf",
        queue_headroom=scene.queue,
        headroom_below_root=scene.queue,
        user_name="bob",
        user_headroom=scene.user,
        preemption=False,
        backoff_count=scene.backoff,
    )
    failed = FailedTry(holds_for_shape=True)
    while (candidate := next_candidate(walk, failed, asks, TaskGroups(), reservations)) is not None:
        ask = candidate.ask
        record = asks.get(ask.allocation_key)
        assert record is not None
        if candidate.kind is CandidateKind.NODES and ask.resource.get("memory") in scene.room:
            walk.mark_attempted(record.order)
            return "place", ask.allocation_key, attempted(asks)
        if reservable(scene, ask):
            walk.mark_attempted(record.order)
            return "reserve", ask.allocation_key, attempted(asks)
    return ("back off" if walk.backoff_due else "nothing"), "", attempted(asks)


@settings(deadline=None, max_examples=300)
@given(SCENES)
def test_the_walk_by_groups_does_what_a_walk_by_asks_does(scene: Scene) -> None:
    """The same ask is placed or reserved for, and the same asks count as attempted."""
    asks, reservations = PendingAsks(), Reservations()
    for ask in scene.asks:
        asks.add(ask)
    order = [record.ask for record in asks.waiting()]
    for record in list(asks.records.values()):
        if record.ask.allocation_key in scene.placed:
            asks.place(record)
        elif record.ask.allocation_key in scene.reserved:
            reservations.add(Reservation(record.ask.allocation_key, "n", START_NS, required=False))

    assert plain_walk(scene, order) == grouped_walk(scene, asks, reservations)
