"""The walk of one application's asks: what is tried, what is passed over, and why; beside a plain walk."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.model.builders import FIVE, SECOND_NS, START_NS, TEN, a_resource, an_ask

from licorne.model.applications.ask_walk import (
    RESERVATION_DELAY_NS,
    AskWalk,
    Candidate,
    CandidateKind,
    FailedTry,
    next_candidate,
)
from licorne.model.applications.gang import TaskGroups
from licorne.model.applications.pending_asks import EVER_NS, PendingAsks, Reservation, Reservations, shape_of
from licorne.model.resources.resource import Resource
from licorne.model.values.allocation import Ask, Refusal, RefusalReason

NODES = CandidateKind.NODES
RESERVATION = CandidateKind.RESERVATION


@dataclass
class Walker:
    """The application's side of a walk."""

    asks: PendingAsks = field(default_factory=PendingAsks)
    groups: TaskGroups = field(default_factory=TaskGroups)
    reservations: Reservations = field(default_factory=Reservations)

    def next(self, walk: AskWalk, failed: FailedTry | None = None) -> Candidate | None:
        return next_candidate(walk, failed, self.asks, self.groups, self.reservations)

    def tried(self, walk: AskWalk, *, shared: bool = False) -> list[tuple[str, CandidateKind]]:
        """Walk to the end without placing anything; `shared`: no ask of a shape that missed finds room."""
        tried = []
        failed = FailedTry(holds_for_shape=shared)
        while (candidate := self.next(walk, failed)) is not None:
            tried.append((candidate.ask.allocation_key, candidate.kind))
        return tried

    def attempted(self) -> list[str]:
        """Return the waiting asks for which scheduling looked for room, in order."""
        return [
            record.ask.allocation_key
            for record in self.asks.waiting()
            if self.asks.groups[shape_of(record.ask)].was_attempted(record)
        ]

    def log(self, key: str) -> dict[str, tuple[int, int]]:
        record = self.asks.get(key)
        assert record is not None
        return record.log or {}


def a_walker(*asks: Ask) -> Walker:
    walker = Walker()
    for ask in asks:
        walker.asks.add(ask)
    return walker


def a_walk(
    *,
    queue: Resource | None = None,
    user: Resource | None = None,
    backoff: int = 0,
    preemption: bool = False,
    seconds: int = 0,
    reservations_on: bool = True,
) -> AskWalk:
    """Return a walk so many seconds after the start, without limits unless they are given."""
    return AskWalk(
        now_ns=START_NS + seconds * SECOND_NS,
        queue_path="root.leaf",
        queue_headroom=queue,
        headroom_below_root=queue,
        user_name="bob",
        user_headroom=user,
        preemption=preemption,
        backoff_count=backoff,
        reservations_on=reservations_on,
    )


def a_choosy_ask(key: str, created_at_ns: int = START_NS) -> Ask:
    """Return an ask that may preempt others."""
    return Ask(
        allocation_key=key,
        application_id="app",
        resource=TEN,
        created_at_ns=created_at_ns,
        allow_preempt_other=True,
    )


# --------------------------------------------------------------------------------------- what is tried


def test_asks_are_tried_in_their_order() -> None:
    """By priority, then age; after the last one the walk is at its end."""
    walker = a_walker(an_ask("a"), an_ask("b", priority=2), an_ask("c", priority=1))

    assert [("b", NODES), ("c", NODES), ("a", NODES)] == walker.tried(a_walk())


def test_asks_that_are_placed_or_gone_meanwhile_are_not_tried() -> None:
    """Between two questions the application may have changed."""
    walker = a_walker(an_ask("a"), an_ask("b", resource=FIVE), an_ask("c", resource=a_resource(memory=1)))
    walk = a_walk()
    walker.next(walk)

    walker.asks.remove("b")
    record = walker.asks.get("c")
    assert record is not None
    walker.asks.place(record)

    assert walker.next(walk, FailedTry()) is None


def test_one_ask_without_room_stands_for_all_of_its_shape() -> None:
    """Where no equal ask will find room, the next shape is tried."""
    walker = a_walker(an_ask("a"), an_ask("b"), an_ask("c", resource=FIVE))

    assert [("a", NODES), ("c", NODES)] == walker.tried(a_walk(), shared=True)


def test_without_a_verdict_for_all_each_ask_is_tried() -> None:
    """The RM's predicates may judge equal asks differently."""
    walker = a_walker(an_ask("a"), an_ask("b"), an_ask("c", resource=FIVE))

    assert ["a", "b", "c"] == [key for key, _ in walker.tried(a_walk())]


def test_an_ask_with_a_required_node_is_tried_there() -> None:
    """And nowhere else."""
    walker = a_walker(an_ask(required_node="node"))

    assert [("ask", CandidateKind.REQUIRED_NODE)] == walker.tried(a_walk())


def test_a_candidate_tells_of_its_reservation() -> None:
    """The node that waits for it, or none."""
    walker = a_walker(an_ask("a"), an_ask("b"))
    walker.reservations.add(Reservation("b", "node", START_NS, required=False))
    walk = a_walk()

    candidates = [walker.next(walk), walker.next(walk, FailedTry())]

    assert ["", "node"] == [entry.reserved_node for entry in candidates if entry is not None]


# ------------------------------------------------------------------------------------------ the quotas


def test_asks_beyond_the_users_quota_are_passed_over() -> None:
    """No node is looked for, nothing is attempted, the ask's log and the refusal say why."""
    walker = a_walker(an_ask("big"), an_ask("small", resource=FIVE))
    walk = a_walk(user=a_resource(memory=7))

    assert [("small", NODES)] == walker.tried(walk)
    assert [
        Refusal(
            reason=RefusalReason.USER_QUOTA,
            subject="bob",
            allocation_key="big",
            asked=TEN,
            available=a_resource(memory=7),
        )
    ] == walk.refusals
    assert {"Not enough user quota": (1, START_NS)} == walker.log("big")
    assert ["small"] == walker.attempted()


def test_asks_beyond_the_queues_quota_are_passed_over() -> None:
    """They count as attempted: scheduling looked for a queue with room."""
    walker = a_walker(an_ask("big"), an_ask("small", resource=FIVE))
    walk = a_walk(queue=a_resource(memory=7))

    assert [("small", NODES)] == walker.tried(walk)
    assert [(RefusalReason.QUEUE_QUOTA, "root.leaf")] == [(no.reason, no.subject) for no in walk.refusals]
    assert {"Not enough queue quota": (1, START_NS)} == walker.log("big")
    assert ["big", "small"] == walker.attempted()


def test_the_user_is_asked_before_the_queue() -> None:
    """Where both have no room, the user is who stands in the way."""
    walker = a_walker(an_ask())
    walk = a_walk(user=FIVE, queue=FIVE)

    assert [] == walker.tried(walk)
    assert [RefusalReason.USER_QUOTA] == [no.reason for no in walk.refusals]


def test_a_type_without_a_limit_is_unlimited() -> None:
    """Only types that the headroom names can be missing; a negative headroom has room for nothing."""
    walker = a_walker(an_ask())

    assert [("ask", NODES)] == walker.tried(a_walk(queue=a_resource(gpu=0), user=a_resource(vcore=0)))
    assert [] == walker.tried(a_walk(queue=a_resource(memory=-1)))


@pytest.mark.parametrize(
    ("preemption", "choosy", "kinds"),
    [(True, True, [CandidateKind.PREEMPTION]), (True, False, []), (False, True, [])],
)
def test_preemption_is_tried_where_the_queue_has_no_room(
    kinds: list[CandidateKind], *, preemption: bool, choosy: bool
) -> None:
    """If the partition has it on and the ask may preempt others."""
    walker = a_walker(a_choosy_ask("ask") if choosy else an_ask("ask"))

    tried = walker.tried(a_walk(queue=FIVE, preemption=preemption))

    assert kinds == [kind for _, kind in tried]


@pytest.mark.parametrize(("queue", "shared"), [(None, True), (FIVE, False)], ids=["no node", "no quota"])
def test_where_preemption_is_refused_to_a_shape_only_those_with_an_answer_of_their_own_are_tried(
    queue: Resource | None, *, shared: bool
) -> None:
    """One that was looked at before, and the first that is younger than those it was refused to."""
    asks = [a_choosy_ask(f"ask-{age}", created_at_ns=START_NS + age) for age in range(6)]
    walker = a_walker(*asks)
    tried_before = walker.asks.get("ask-2")
    assert tried_before is not None
    tried_before.preemption_triggered = True
    walker.asks.set_apart(tried_before)
    walk = a_walk(queue=queue, preemption=True)
    tried = []
    refused_to_ns = {"ask-0": START_NS + 3, "ask-4": EVER_NS}
    failed = None
    while (candidate := walker.next(walk, failed)) is not None:
        key = candidate.ask.allocation_key
        tried.append(key)
        failed = FailedTry(holds_for_shape=shared, preemption_refused_to_ns=refused_to_ns.get(key))

    assert ["ask-0", "ask-2", "ask-4"] == tried
    assert [f"ask-{age}" for age in range(6)] == walker.attempted()


def test_preemption_is_never_tried_for_the_users_quota() -> None:
    """The end of other work makes no room there."""
    assert [] == a_walker(a_choosy_ask("ask")).tried(a_walk(user=FIVE, preemption=True))


# ------------------------------------------------------------------------------------------ the gangs


def test_members_wait_for_placeholders_of_their_group() -> None:
    """Also while none is placed yet; placeholders, and members of other groups, are tried."""
    walker = a_walker(
        an_ask("member", task_group_name="workers"),
        an_ask("stranger", task_group_name="others"),
        an_ask("placeholder", task_group_name="workers", placeholder=True),
    )
    walker.groups.count_placeholder(an_ask("placeholder", task_group_name="workers", placeholder=True))
    walk = a_walk()

    assert ["stranger", "placeholder"] == [key for key, _ in walker.tried(walk)]
    assert [(RefusalReason.WAITS_FOR_PLACEHOLDER, "workers")] == [
        (no.reason, no.subject) for no in walk.refusals
    ]
    assert "member" not in walker.attempted()


def test_members_beyond_the_placeholders_are_tried() -> None:
    """Once every placeholder has been replaced or has timed out."""
    walker = a_walker(an_ask("member", task_group_name="workers"))
    walker.groups.count_placeholder(an_ask("placeholder", task_group_name="workers", placeholder=True))
    walker.groups.count_end("workers", replaced=True)

    assert [("member", NODES)] == walker.tried(a_walk())


# ----------------------------------------------------------------------------------- the reservations


def test_an_equal_ask_that_is_old_enough_may_reserve() -> None:
    """It finds no room as the first did not, but it can have a reservation of its own."""
    walker = a_walker(an_ask("a"), an_ask("b"), an_ask("c"))
    walker.reservations.add(Reservation("a", "node", START_NS, required=False))

    assert [("a", NODES), ("b", RESERVATION)] == walker.tried(a_walk(seconds=3), shared=True)


@pytest.mark.parametrize(("older_ns", "tried"), [(0, ["a"]), (1, ["a", "b"])])
def test_nothing_is_reserved_in_the_first_two_seconds(older_ns: int, tried: list[str]) -> None:
    """An equal ask is worth a try when its age is more than two seconds."""
    older = START_NS - older_ns
    walker = a_walker(an_ask("a", created_at_ns=older), an_ask("b", created_at_ns=older))

    assert 2 * 10**9 == RESERVATION_DELAY_NS
    assert tried == [key for key, _ in walker.tried(a_walk(seconds=2), shared=True)]


def test_without_reservations_equal_asks_are_not_tried() -> None:
    """The switch is off: nothing is left to try for them."""
    walker = a_walker(an_ask("a"), an_ask("b"))

    assert [("a", NODES)] == walker.tried(a_walk(seconds=9, reservations_on=False), shared=True)


# ---------------------------------------------------------------------------------------- the back-off


@pytest.mark.parametrize(("count", "tried"), [(1, 1), (2, 2), (0, 4)])
def test_a_walk_ends_after_so_many_asks_without_room(count: int, tried: int) -> None:
    """Then the application backs off; zero is no bound."""
    walker = a_walker(*(an_ask(key) for key in "abcd"))
    walk = a_walk(backoff=count)

    assert tried == len(walker.tried(walk))
    assert bool(count) is walk.backoff_due


def test_an_application_does_not_back_off_for_its_last_ask() -> None:
    """The bound is looked at before the next ask; where there is none, nothing is gained by waiting."""
    walker = a_walker(an_ask("a"), an_ask("b"))
    walk = a_walk(backoff=2)

    assert (2, False) == (len(walker.tried(walk)), walk.backoff_due)


def test_asks_beyond_their_quota_do_not_count_for_the_back_off() -> None:
    """Neither do required nodes that are full, nor members that wait for a placeholder."""
    walker = a_walker(
        an_ask("queue", priority=5),
        an_ask("there", priority=4, resource=FIVE, required_node="node"),
        an_ask("member", priority=3, resource=FIVE, task_group_name="workers"),
        an_ask("first", priority=2, resource=FIVE),
        an_ask("second", priority=1, resource=FIVE),
    )
    walker.groups.count_placeholder(an_ask("ph", task_group_name="workers", placeholder=True))
    walk = a_walk(queue=a_resource(memory=7), backoff=1)

    assert ["there", "first"] == [key for key, _ in walker.tried(walk)]
    assert walk.backoff_due


# ---------------------------------------------------------------------------------- beside a plain walk


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


@settings(max_examples=300)
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
