"""The asks of one application: their order, their groups, and what is placed; beside a plain list."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import Final

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from support.model.builders import FIVE, SECOND_NS, START_NS, TEN, an_ask

from licorne.model.applications.pending_asks import AskGroup, AskRecord, PendingAsks, shape_of
from licorne.model.resources.resource import Resource
from licorne.model.values.allocation import Ask


def old_ask(key: str, second: int = 0, *, priority: int = 0, resource: Resource = TEN) -> Ask:
    """Return an ask that was made so many seconds after the start."""
    created_at_ns = START_NS + second * SECOND_NS
    return an_ask(key, created_at_ns=created_at_ns, priority=priority, resource=resource)


def asks_of(*asks: Ask) -> PendingAsks:
    pending = PendingAsks()
    for ask in asks:
        pending.add(ask)
    return pending


def known(pending: PendingAsks, key: str) -> AskRecord:
    record = pending.get(key)
    assert record is not None
    return record


def max_priority_of(pending: PendingAsks) -> int | None:
    """Return the priority of the ask that goes first."""
    group = pending.first_group()
    return None if group is None else -group.order[0]


def keys(pending: PendingAsks) -> list[str]:
    """Return the keys of the waiting asks in order."""
    pending.validate()
    return [record.ask.allocation_key for record in pending.waiting()]


# ------------------------------------------------------------------------------------------- the order


ORDERS: Final = {
    "the highest priority is first, whatever the age": (
        [old_ask("low", 1, priority=-1), old_ask("high", 3, priority=7), old_ask("mid", 2)],
        ["high", "mid", "low"],
        7,
    ),
    "of equal priority the oldest is first": (
        [old_ask("a", 3), old_ask("b", 1), old_ask("c", 2)],
        ["b", "c", "a"],
        0,
    ),
    "an ask as old as the last one is behind it: those of one message stay in its order": (
        [old_ask("c"), old_ask("a"), old_ask("b")],
        ["c", "a", "b"],
        0,
    ),
    "an ask as old as an earlier one is before the first of that age once a younger ask is there": (
        [old_ask("a", 1), old_ask("b", 1), old_ask("young", 2), old_ask("c", 1), old_ask("d", 1)],
        ["d", "c", "a", "b", "young"],
        0,
    ),
    "an ask of lower priority is behind as a younger one is": (
        [old_ask("a", 1), old_ask("low", 0, priority=-1), old_ask("b", 1)],
        ["b", "a", "low"],
        0,
    ),
    "without asks there is no priority": ([], [], None),
}


@pytest.mark.parametrize(("asks", "order", "priority"), ORDERS.values(), ids=ORDERS)
def test_asks_wait_in_order(asks: list[Ask], order: list[str], priority: int | None) -> None:
    """By priority, then by age; keys do not matter."""
    pending = asks_of(*asks)

    assert (order, priority, bool(asks)) == (keys(pending), max_priority_of(pending), pending.has_waiting)


def test_placed_asks_count_for_who_is_the_last() -> None:
    """An ask that is placed stays in the list and is passed over: it is still the last one."""
    pending = asks_of(old_ask("a", 1), old_ask("young", 2))

    pending.place(known(pending, "young"))
    pending.add(old_ask("b", 1))

    assert ["b", "a"] == keys(pending)


def test_removed_asks_no_longer_count_for_who_is_the_last() -> None:
    """Once the younger ask is removed, the older age is the last again."""
    pending = asks_of(old_ask("a", 1), old_ask("young", 2))

    pending.remove("young")
    pending.add(old_ask("b", 1))

    assert ["a", "b"] == keys(pending)


# ----------------------------------------------------------------------------------------- the changes


def test_a_placed_ask_waits_no_longer_but_is_known() -> None:
    """It is out of the order, and out of the priority."""
    pending = asks_of(old_ask("a", priority=5), old_ask("b"))

    pending.place(known(pending, "a"))

    assert (["b"], 0, True) == (keys(pending), max_priority_of(pending), "a" in pending)
    assert known(pending, "a").placed
    assert known(pending, "a").group is None


def test_an_ask_can_come_in_placed() -> None:
    """A recovered allocation brings an ask that never waits."""
    pending = PendingAsks()

    pending.add(old_ask("a"), placed=True)

    assert ([], False, True) == (keys(pending), pending.has_waiting, "a" in pending)


def test_a_displaced_ask_waits_in_its_old_place() -> None:
    """It goes where it was, not to the end."""
    pending = asks_of(old_ask("a"), old_ask("b"), old_ask("c"))
    record = known(pending, "b")

    pending.place(record)
    pending.displace(record)

    assert ["a", "b", "c"] == keys(pending)


def test_an_ask_is_placed_once_and_displaced_once() -> None:
    """The second time is a mistake of ours."""
    pending = asks_of(old_ask("a"))
    record = known(pending, "a")

    with pytest.raises(AssertionError, match="ask a waits already"):
        pending.displace(record)
    pending.place(record)
    with pytest.raises(AssertionError, match="ask a is placed twice"):
        pending.place(record)


def test_an_ask_is_known_once() -> None:
    """A second ask with the same key is a mistake of ours."""
    pending = asks_of(old_ask("a"))

    with pytest.raises(AssertionError, match="ask a is known"):
        pending.add(old_ask("a", 5))


def test_a_removed_ask_is_given_back_once() -> None:
    """Waiting or placed; what is not there gives nothing."""
    pending = asks_of(old_ask("a"), old_ask("b"))
    pending.place(known(pending, "b"))

    removed = [pending.remove(key) for key in ("a", "b", "a")]

    assert ["a", "b", None] == [None if entry is None else entry.ask.allocation_key for entry in removed]
    assert ([], {}) == (keys(pending), pending.records)


def test_a_resized_ask_keeps_its_place() -> None:
    """Only its size is another one."""
    pending = asks_of(old_ask("a"), old_ask("b"), old_ask("c"))

    pending.resize(known(pending, "b"), FIVE)

    assert ["a", "b", "c"] == keys(pending)
    assert FIVE == known(pending, "b").ask.resource


def test_a_placed_ask_can_be_resized() -> None:
    """It does not wait because of that; displaced, it waits with its new size."""
    pending = asks_of(old_ask("a"))
    record = known(pending, "a")
    pending.place(record)

    pending.resize(record, FIVE)
    waits = keys(pending)
    pending.displace(record)

    assert ([], ["a"]) == (waits, keys(pending))
    assert FIVE == next(iter(pending.groups)).resource


# ------------------------------------------------------------------------------------------ the groups


def head_of(group: AskGroup) -> str:
    """Return the key of the ask that goes first in a group."""
    head = group.head()
    assert head is not None
    return head.ask.allocation_key


def test_asks_of_one_shape_are_one_group() -> None:
    """The groups come in the order of their first asks."""
    pending = asks_of(
        old_ask("b1", 1, resource=FIVE), old_ask("a1", 2), old_ask("b2", 3, resource=FIVE), old_ask("a2", 0)
    )

    assert [("a2", 2), ("b1", 2)] == [(head_of(group), len(group)) for _, group in pending.walk()]


@pytest.mark.parametrize(
    "other",
    [
        an_ask("b", resource=FIVE),
        an_ask("b", priority=1),
        an_ask("b", required_node="node"),
        an_ask("b", task_group_name="group"),
        an_ask("b", task_group_name="group", placeholder=True),
    ],
)
def test_whatever_decides_the_answer_is_in_the_shape(other: Ask) -> None:
    """Size, priority and constraints tell groups apart; key, age and originator do not."""
    alike = an_ask("c", created_at_ns=START_NS + 5, originator=True)

    assert shape_of(an_ask("a")) == shape_of(alike)
    assert shape_of(an_ask("a")) != shape_of(other)


def test_the_next_of_a_group_takes_the_head() -> None:
    """Where the first goes, the group is in the order by its second."""
    pending = asks_of(old_ask("a1", 1), old_ask("b", 2, resource=FIVE), old_ask("a2", 3))

    pending.place(known(pending, "a1"))

    assert ["b", "a2"] == [head_of(group) for _, group in pending.walk()]


def test_those_behind_a_place_are_walked_in_order() -> None:
    """The place itself is not among them."""
    pending = asks_of(*(old_ask(key, second) for second, key in enumerate("abcd")))
    group = known(pending, "b").group
    assert group is not None

    behind = [record.ask.allocation_key for record in group.after(known(pending, "b").order)]

    assert ["c", "d"] == behind


def test_one_ask_stands_for_those_before_a_mark() -> None:
    """An ask counts as attempted if it was, or if one before the mark stood for all."""
    pending = asks_of(*(old_ask(key, second) for second, key in enumerate("abcd")))
    group = known(pending, "a").group
    assert group is not None

    group.attempted_until = known(pending, "b").order
    known(pending, "d").attempted = True

    attempted = [group.was_attempted(known(pending, key)) for key in "abcd"]
    assert [True, True, False, True] == attempted


def test_an_ask_that_leaves_its_group_remembers_the_attempt() -> None:
    """Resized into another group, it still counts as attempted."""
    pending = asks_of(old_ask("a", 1), old_ask("b", 2))
    group = known(pending, "a").group
    assert group is not None
    group.attempted_until = known(pending, "a").order

    for key in "ab":
        pending.resize(known(pending, key), FIVE)

    assert (True, False) == (known(pending, "a").attempted, known(pending, "b").attempted)


def test_nothing_has_happened_to_a_new_ask() -> None:
    """No mark is set on it, and its log is empty."""
    record = known(asks_of(old_ask("a")), "a")

    marks = (record.placed, record.attempted, record.released, record.scale_up_triggered)
    assert (False, False, False, False) == marks
    assert (False, None, None) == (record.preemption_triggered, record.preemption_checked_ns, record.log)


def test_refusals_are_counted_by_text() -> None:
    """How often, and when last."""
    record = known(asks_of(old_ask("a")), "a")

    for text, now_ns in (("no room", 1), ("no quota", 2), ("no room", 3)):
        record.note(text, now_ns)

    assert {"no room": (2, 3), "no quota": (1, 2)} == record.log


def test_validation_finds_a_lost_ask() -> None:
    """An ask that waits in no group is found."""
    pending = asks_of(old_ask("a"))
    pending.groups.clear()

    with pytest.raises(AssertionError, match="'a'"):
        pending.validate()


# ---------------------------------------------------------------------------------- answers of their own


def test_an_ask_that_is_set_apart_stays_so_until_others_stand_for_it_again() -> None:
    """Also in another group, and when it waits again after it was placed."""
    pending = asks_of(old_ask("a"), old_ask("b", 1))
    record = known(pending, "b")
    pending.set_apart(record)
    pending.resize(record, FIVE)
    pending.place(record)
    pending.displace(record)
    pending.validate()
    group = record.group
    assert group is not None
    assert [record] == list(group.apart)

    group.share(record)

    pending.validate()
    assert [] == list(group.apart)


def test_a_placed_ask_that_is_set_apart_is_so_when_it_waits() -> None:
    """It is in no group meanwhile."""
    pending = asks_of(old_ask("a"))
    record = known(pending, "a")
    pending.place(record)
    pending.set_apart(record)
    pending.displace(record)

    group = record.group
    assert group is not None
    assert [record] == list(group.apart)


# ---------------------------------------------------------------------------------- beside a plain list


@dataclass
class PlainAsks:
    """The list of the rules: every ask in it, placed ones are passed over."""

    rows: list[tuple[tuple[int, int], str]] = field(default_factory=list)
    sizes: dict[str, Resource] = field(default_factory=dict)
    placed: set[str] = field(default_factory=set)

    def add(self, ask: Ask) -> None:
        """Insert before the first that is not before it, unless it belongs at the end."""
        age = (-ask.priority, ask.created_at_ns)
        at_end = not self.rows or age >= self.rows[-1][0]
        place = len(self.rows) if at_end else bisect_left(self.rows, age, key=lambda row: row[0])
        self.rows.insert(place, (age, ask.allocation_key))
        self.sizes[ask.allocation_key] = ask.resource

    def remove(self, key: str) -> None:
        self.rows = [row for row in self.rows if row[1] != key]
        self.placed.discard(key)
        self.sizes.pop(key, None)

    def waiting(self) -> list[str]:
        return [key for _, key in self.rows if key not in self.placed]


class AsksMachine(RuleBasedStateMachine):
    """The pending asks beside a plain list."""

    def __init__(self) -> None:
        super().__init__()
        self.pending = PendingAsks()
        self.plain = PlainAsks()
        self.serial = 0

    def pick(self, place: int) -> AskRecord | None:
        records = list(self.pending.records.values())
        return records[place % len(records)] if records else None

    @rule(
        priority=st.integers(-1, 1),
        second=st.integers(0, 3),
        resource=st.sampled_from([FIVE, TEN]),
        placed=st.booleans(),
    )
    def add(self, priority: int, second: int, resource: Resource, *, placed: bool) -> None:
        """Take an ask in."""
        self.serial += 1
        ask = old_ask(f"ask-{self.serial}", second, priority=priority, resource=resource)
        self.pending.add(ask, placed=placed)
        self.plain.add(ask)
        if placed:
            self.plain.placed.add(ask.allocation_key)

    @rule(place=st.integers(0, 99))
    def remove(self, place: int) -> None:
        """Forget an ask."""
        record = self.pick(place)
        if record is not None:
            self.pending.remove(record.ask.allocation_key)
            self.plain.remove(record.ask.allocation_key)

    @rule(place=st.integers(0, 99))
    def turn(self, place: int) -> None:
        """Place an ask that waits, or let a placed one wait again."""
        record = self.pick(place)
        if record is None:
            return
        (self.pending.displace if record.placed else self.pending.place)(record)
        self.plain.placed ^= {record.ask.allocation_key}

    @rule(place=st.integers(0, 99), resource=st.sampled_from([FIVE, TEN]))
    def resize(self, place: int, resource: Resource) -> None:
        """Give an ask another size."""
        record = self.pick(place)
        if record is not None:
            self.pending.resize(record, resource)
            self.plain.sizes[record.ask.allocation_key] = resource

    @invariant()
    def both_say_the_same(self) -> None:
        """Order, sizes and the highest priority agree, and so does the order of the groups."""
        waiting = self.plain.waiting()
        assert waiting == keys(self.pending)
        ages = {key: age for age, key in self.plain.rows}
        group = self.pending.first_group()
        highest = None if group is None else -group.order[0]
        assert max((-ages[key][0] for key in waiting), default=None) == highest
        for record in self.pending.waiting():
            assert self.plain.sizes[record.ask.allocation_key] == record.ask.resource
        firsts: dict[tuple[Resource, int], str] = {}
        for key in waiting:
            firsts.setdefault((self.plain.sizes[key], ages[key][0]), key)
        heads = [head for _, group in self.pending.walk() if (head := group.head()) is not None]
        assert list(firsts.values()) == [head.ask.allocation_key for head in heads]


TestAsksAreThoseOfAPlainList = AsksMachine.TestCase
TestAsksAreThoseOfAPlainList.settings = settings(max_examples=60, stateful_step_count=30)
