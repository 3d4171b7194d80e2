"""The asks of one application beside a plain list that does what the rules say."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from support.model.builders import FIVE, SECOND_NS, START_NS, TEN, an_ask

from licorne.model.applications.pending_asks import AskRecord, PendingAsks
from licorne.model.resources.resource import Resource
from licorne.model.values.allocation import Ask


def old_ask(key: str, second: int, *, priority: int, resource: Resource) -> Ask:
    """Return an ask that was made so many seconds after the start."""
    created_at_ns = START_NS + second * SECOND_NS
    return an_ask(key, created_at_ns=created_at_ns, priority=priority, resource=resource)


def keys(pending: PendingAsks) -> list[str]:
    """Return the keys of the waiting asks in order."""
    pending.validate()
    return [record.ask.allocation_key for record in pending.waiting()]


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
TestAsksAreThoseOfAPlainList.settings = settings(deadline=None, max_examples=60, stateful_step_count=30)
