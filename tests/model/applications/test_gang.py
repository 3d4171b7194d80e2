"""Gangs: when they are complete, who replaces whom, and what happens when they do not come together."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from support.model.builders import FIVE, SECOND_NS, START_NS, TEN, a_resource, an_allocation, an_ask

from licorne.model.applications import gang
from licorne.model.applications.effects import ApplicationEvent, Effect, ReleaseWanted
from licorne.model.applications.gang import GangSettings, SwapOffer, SwapWalk, TaskGroups
from licorne.model.applications.holdings import HeldAllocation
from licorne.model.applications.pending_asks import PendingAsks
from licorne.model.resources.resource import EMPTY, Resource
from licorne.model.values.messages import TerminationType

TIMEOUT = TerminationType.TIMEOUT


@dataclass
class Gang:
    """What an application has of its gang."""

    asks: PendingAsks = field(default_factory=PendingAsks)
    placed: dict[str, HeldAllocation] = field(default_factory=dict)
    groups: TaskGroups = field(default_factory=TaskGroups)

    def member(self, key: str, group: str = "g", *, resource: Resource = TEN, priority: int = 0) -> None:
        """Add a real ask that waits."""
        self.asks.add(an_ask(key, task_group_name=group, resource=resource, priority=priority))

    def placeholder(self, key: str, group: str = "g", *, resource: Resource = TEN) -> HeldAllocation:
        """Add a placeholder that is placed."""
        ask = an_ask(key, task_group_name=group, resource=resource, placeholder=True)
        self.asks.add(ask, placed=True)
        self.groups.count_placeholder(ask)
        self.placed[key] = HeldAllocation(an_allocation(ask=ask))
        return self.placed[key]

    def waiting_placeholder(self, key: str, group: str = "g") -> None:
        ask = an_ask(key, task_group_name=group, placeholder=True)
        self.asks.add(ask)
        self.groups.count_placeholder(ask)

    def next_swap(self, walk: SwapWalk) -> SwapOffer | None:
        by_group: dict[str, dict[str, HeldAllocation]] = {}
        for key, placed in self.placed.items():
            by_group.setdefault(placed.allocation.ask.task_group_name, {})[key] = placed
        return gang.next_swap(walk, self.asks, by_group)

    def offers(self) -> list[SwapOffer]:
        """Walk all pairs."""
        walk = SwapWalk()
        offers = []
        while (offer := self.next_swap(walk)) is not None:
            offers.append(offer)
        return offers

    def pairs(self) -> list[tuple[str, str]]:
        return [(offer.ask.allocation_key, offer.placeholder.allocation_key) for offer in self.offers()]


# --------------------------------------------------------------------------------------- the settings


@pytest.mark.parametrize(("hard", "event"), [(False, ApplicationEvent.RESUME), (True, ApplicationEvent.FAIL)])
def test_the_style_decides_what_a_timeout_does(event: ApplicationEvent, *, hard: bool) -> None:
    """A soft gang resumes without placeholders, a hard one fails."""
    assert event is GangSettings(hard=hard).timeout_event


def test_placeholders_time_out_after_a_quarter_of_an_hour() -> None:
    """Unless the application says otherwise."""
    assert START_NS + 900 * SECOND_NS == GangSettings().placeholder_due_ns(START_NS)
    assert START_NS + 5 * SECOND_NS == GangSettings(timeout_ms=5000).placeholder_due_ns(START_NS)


@pytest.mark.parametrize(("age_seconds", "left_ms"), [(0, 60_000), (20, 40_000), (60, 1), (999, 1)])
def test_the_age_of_the_application_shortens_the_timeout(age_seconds: int, left_ms: int) -> None:
    """By the time since it was made, down to a millisecond."""
    settings = GangSettings(timeout_ms=60_000, created_at_ns=START_NS - age_seconds * SECOND_NS)

    assert START_NS + left_ms * 1_000_000 == settings.placeholder_due_ns(START_NS)


@pytest.mark.parametrize(
    ("placed", "complete"),
    [
        (TEN, True),
        (a_resource(memory=10, gpu=0), True),
        (FIVE, False),
        (a_resource(memory=10, gpu=1), True),
        (a_resource(memory=20), True),
        (a_resource(gpu=10), False),
    ],
)
def test_a_gang_is_complete_with_at_least_what_it_announced(placed: Resource, *, complete: bool) -> None:
    """A type that is missing is none of it."""
    assert complete is GangSettings(placeholder_ask=TEN).is_complete(placed)


def test_what_announced_nothing_is_no_gang_that_could_be_complete() -> None:
    """Not even without a placeholder."""
    assert not GangSettings().is_complete(TEN)
    assert not GangSettings().is_complete(EMPTY)


# ----------------------------------------------------------------------------------- the replacement


def test_members_are_paired_in_order_with_placeholders_as_they_were_placed() -> None:
    """The first member with each placeholder, then the next member."""
    group = Gang()
    for key in ("p2", "p1"):
        group.placeholder(key)
    group.member("low")
    group.member("high", priority=1)

    assert [("high", "p2"), ("high", "p1"), ("low", "p2"), ("low", "p1")] == group.pairs()


def test_members_are_paired_with_placeholders_of_their_own_group() -> None:
    """Asks without a group, and placeholders that wait themselves, are in no pair."""
    group = Gang()
    group.placeholder("p1", "one")
    group.placeholder("p2", "two")
    group.waiting_placeholder("p3", "two")
    group.member("m2", "two")
    group.member("m3", "three")
    group.member("loner", "")

    assert [("m2", "p2")] == group.pairs()


def test_placeholders_on_their_way_out_are_passed_over() -> None:
    """Whether the RM was asked to end them or they are victims of preemption."""
    group = Gang()
    group.placeholder("released").released = True
    group.placeholder("preempted").preempted = True
    group.placeholder("free")
    group.member("m")

    assert [("m", "free")] == group.pairs()


def test_what_happens_during_the_walk_is_seen() -> None:
    """A member that is placed is in no further pair, and a placeholder that is released neither."""
    group = Gang()
    first = group.placeholder("p1")
    group.placeholder("p2")
    group.member("m1")
    group.member("m2")
    walk = SwapWalk()
    group.next_swap(walk)

    record = group.asks.get("m1")
    assert record is not None
    group.asks.place(record)
    first.released = True
    offer = group.next_swap(walk)

    assert offer is not None
    assert ("m2", "p2") == (offer.ask.allocation_key, offer.placeholder.allocation_key)
    assert group.next_swap(walk) is None


@pytest.mark.parametrize(
    ("size", "fits"),
    [
        (TEN, True),
        (FIVE, True),
        (a_resource(memory=11), False),
        (a_resource(memory=5, gpu=1), False),
        (a_resource(memory=5, gpu=0), True),
    ],
)
def test_a_member_fits_a_placeholder_that_is_no_smaller_in_any_type(size: Resource, *, fits: bool) -> None:
    """A type that the placeholder does not have is none of it."""
    group = Gang()
    group.placeholder("p")
    group.member("m", resource=size)

    assert [fits] == [offer.fits for offer in group.offers()]


# ------------------------------------------------------------------------------------- the timeouts


def test_all_placeholders_are_released_that_are_not_ending_yet() -> None:
    """Real allocations stay, and those on their way out are not released twice."""
    group = Gang()
    group.placeholder("p1")
    group.placeholder("p2").released = True
    group.placeholder("p3").preempted = True
    group.placed["real"] = HeldAllocation(an_allocation("real"))
    effects: list[Effect] = []

    left = gang.release_placeholders(group.placed, "why", effects)

    assert left
    assert [ReleaseWanted("p1", TIMEOUT, "why")] == effects
    assert [True, True, False, False] == [entry.released for entry in group.placed.values()]


def test_without_placeholders_none_is_left() -> None:
    """The answer tells whether any is placed at all."""
    effects: list[Effect] = []

    left = gang.release_placeholders({"real": HeldAllocation(an_allocation("real"))}, "why", effects)

    assert (False, []) == (left, effects)


def test_a_gang_that_gives_up_lets_everything_go() -> None:
    """What is placed first, then what waits; all asks are forgotten, real ones too."""
    group = Gang()
    group.placeholder("placed")
    group.placeholder("leaving").released = True
    group.waiting_placeholder("waits")
    group.member("member")
    effects: list[Effect] = []

    removed = gang.give_up(group.asks, group.placed, group.groups, effects)

    pending = "releasing pending placeholders on placeholder timeout"
    assert [
        ReleaseWanted("placed", TIMEOUT, "releasing allocated placeholders on placeholder timeout"),
        ReleaseWanted("waits", TIMEOUT, pending, of_ask=True),
        ReleaseWanted("member", TIMEOUT, pending, of_ask=True),
    ] == effects
    assert ["placed", "leaving", "waits", "member"] == [record.ask.allocation_key for record in removed]
    assert {} == group.asks.records


def test_placeholders_that_waited_are_counted_as_timed_out() -> None:
    """Placed ones are counted when they end; real asks never, whatever their group."""
    group = Gang()
    group.placeholder("placed")
    group.waiting_placeholder("waits")
    group.member("member")
    group.member("stranger", "unknown")

    gang.give_up(group.asks, group.placed, group.groups, [])

    counts = group.groups.by_name["g"]
    assert (2, 0, 1) == (counts.count, counts.replaced, counts.timed_out)


@pytest.mark.parametrize(
    ("termination", "counted"),
    [
        (TerminationType.PLACEHOLDER_REPLACED, (1, 0)),
        (TerminationType.TIMEOUT, (0, 1)),
        (TerminationType.STOPPED_BY_RM, (0, 1)),
        (TerminationType.PREEMPTED_BY_SCHEDULER, (0, 1)),
    ],
)
def test_a_placeholder_is_replaced_or_else_unused(
    termination: TerminationType, counted: tuple[int, int]
) -> None:
    """Only a confirmed swap counts as a replacement."""
    group = Gang()
    placed = group.placeholder("p")

    gang.count_end(group.groups, placed.allocation.ask, termination)

    counts = group.groups.by_name["g"]
    assert counted == (counts.replaced, counts.timed_out)


# --------------------------------------------------------------------------------------- outstanding


def test_asks_that_were_tried_are_outstanding_in_order() -> None:
    """With whether they are to be reported to the RM now."""
    group = Gang()
    group.member("never", "")
    group.member("told", "")
    group.member("first", "", priority=1)
    for key in ("told", "first"):
        record = group.asks.get(key)
        assert record is not None
        record.attempted = True
        record.scale_up_triggered = key == "told"

    rows = gang.outstanding(group.asks, group.groups)

    assert [("first", True), ("told", False)] == [(ask.allocation_key, tells) for ask, tells in rows]


def test_members_that_wait_for_a_placeholder_are_not_reported() -> None:
    """More nodes would not help them; they count all the same."""
    group = Gang()
    group.placeholder("p")
    group.member("m")
    record = group.asks.get("m")
    assert record is not None
    record.attempted = True

    rows = gang.outstanding(group.asks, group.groups)

    assert [("m", False)] == [(ask.allocation_key, tells) for ask, tells in rows]
