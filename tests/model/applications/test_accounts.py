"""What an application accounts for: reservations, marks, sums, the most it used, and resource-seconds."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.model.builders import SECOND_NS, START_NS, a_resource, an_allocation, an_ask
from support.model.driven_application import DrivenApplication, running

from licorne.model.resources.resource import EMPTY, Resource
from licorne.model.values.messages import TerminationType
from licorne.proxy.core.documents.applications import application_document

STOPPED = TerminationType.STOPPED_BY_RM


def test_waiting_asks_beyond_the_range_of_quantities_can_be_removed() -> None:
    """Their sum is exact; one that stopped at the border was less than its parts."""
    application = DrivenApplication().application
    huge = a_resource(memory=2**62, gpu=1)
    application.asks.add([an_ask(key, resource=huge) for key in ("a", "b", "c")], START_NS)
    pending = [application.facts().pending]

    for key in ("a", "b", "c"):
        application.asks.remove(key, START_NS)
        pending.append(application.facts().pending)

    assert [(3 * 2**62, 3), (2**63, 2), (2**62, 1), (0, 0)] == [
        (resource.get("memory"), resource.get("gpu")) for resource in pending
    ]


# ------------------------------------------------------------------------------------ reservations


def test_a_waiting_ask_has_one_reservation() -> None:
    """A second one, and one for an ask that is placed or unknown, is declined."""
    app = running("placed")
    app.ask("waits")
    application = app.application

    app.take(application.reservations.try_add("waits", "node", app.now_ns, required=False))

    assert 1 == application.facts().reserved
    assert [
        application.reservations.try_add(key, "other", app.now_ns, required=True)
        for key in ("waits", "placed", "unknown")
    ] == [None, None, None]


def test_an_ask_that_is_placed_lets_its_reservation_go() -> None:
    """On whatever node it is placed; the answer tells of the reservation."""
    app = DrivenApplication()
    app.ask("a")
    app.take(app.application.reservations.try_add("a", "reserved", app.now_ns, required=False))

    answer = app.take(app.application.allocations.try_place(app.allocation("a", "other"), app.now_ns))

    assert [("a", "reserved")] == [(entry.allocation_key, entry.node_id) for entry in answer.reservations]
    assert 0 == app.application.facts().reserved


def test_a_reservation_goes_with_its_ask() -> None:
    """The answer of the ask's removal has the reservation."""
    app = DrivenApplication()
    app.ask("a")
    app.take(app.application.reservations.try_add("a", "node", app.now_ns, required=False))

    answer = app.take(app.application.asks.remove("a", app.now_ns))

    assert ["node"] == [entry.node_id for entry in answer.reservations]
    assert app.application.reservations.remove("a") is None


def test_reserved_asks_come_with_their_reservations() -> None:
    """In the order the reservations were made."""
    app = DrivenApplication()
    app.ask("a", "b")
    for key in "ba":
        app.take(app.application.reservations.try_add(key, f"node-{key}", app.now_ns, required=False))

    rows = app.application.reservations.with_asks()

    assert [("b", "node-b", True), ("a", "node-a", True)] == [
        (reservation.allocation_key, reservation.node_id, record is not None) for reservation, record in rows
    ]


# ------------------------------------------------------------------------------------------- marks


def test_a_victim_is_chosen_once_and_not_released_as_well() -> None:
    """Preempted and released exclude each other; a choice can be taken back."""
    app = running("a")
    allocations = app.application.allocations

    marks = [
        allocations.mark_preempted("a"),
        allocations.mark_preempted("a"),
        allocations.mark_released("a"),
    ]
    allocations.unmark_preempted("a")
    marks += [
        allocations.mark_released("a"),
        allocations.mark_released("a"),
        allocations.mark_preempted("a"),
    ]

    assert [True, False, False, True, False, False] == marks
    assert not allocations.mark_preempted("unknown")
    app.application.validate()


def test_what_leaves_the_application_is_a_copy() -> None:
    """Marks on what was handed out change nothing."""
    app = running("a")

    (copy,) = app.application.allocations.all()
    copy.preempted = True

    assert not app.application.allocations.is_preempted("a")


# --------------------------------------------------------------------------------------- accounting


def test_the_most_that_was_used_is_kept() -> None:
    """Of each type, over time; real allocations and placeholders are not added together."""
    app = DrivenApplication(announced=a_resource(memory=15))
    app.ask("p", group="g", placeholder=True, resource=a_resource(memory=15))
    app.place("p")
    app.ask("a", resource=a_resource(memory=10, gpu=2))
    app.place("a")
    app.end("a")

    assert {"memory": 15, "gpu": 2} == application_document(app.application.shown())["maxUsedResource"]


@pytest.mark.parametrize(
    ("placeholder", "victim", "where"),
    [
        (False, False, "resourceUsage"),
        (True, False, "placeholderResource"),
        (False, True, "preemptedResource"),
        (True, True, "preemptedResource"),
    ],
)
def test_resource_seconds_are_counted_at_the_end(where: str, *, placeholder: bool, victim: bool) -> None:
    """Whole seconds times quantities; victims apart, then placeholders."""
    app = DrivenApplication()
    app.ask("a", group="g" if placeholder else "", placeholder=placeholder)
    app.place("a")
    if victim:
        app.application.allocations.mark_preempted("a")
    app.now_ns += 3 * SECOND_NS + 999_999_999

    app.end("a")

    assert {where: {"UNKNOWN": {"memory": 30}}} == application_document(app.application.shown())[
        "resourceHistory"
    ]


STEPS = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 5), st.integers(1, 9), st.booleans()), max_size=40
)


class RandomApplication(DrivenApplication):
    """An application that does whatever can be done."""

    def step(self, what: int, key: str, quantity: int, *, placeholder: bool) -> None:
        """Do something with a key; the quantity is a size, or the number of another key."""
        application, now_ns, size = self.application, self.now_ns, a_resource(memory=quantity)
        known = application.asks.record(key) is not None
        steps: list[Callable[[], object]] = [
            lambda: self.enter(key, size, placeholder=placeholder, recovered=False),
            lambda: self.enter(key, size, placeholder=placeholder, recovered=True),
            lambda: known and application.allocations.try_place(self.allocation(key), now_ns),
            lambda: known and application.swaps.begin(self.allocation(key), f"key-{quantity}"),
            lambda: application.allocations.remove(key, STOPPED, now_ns),
            lambda: application.asks.remove(key, now_ns),
            lambda: application.asks.resize(key, size) or application.allocations.resize(key, size),
            lambda: application.swaps.end(key, TerminationType.PLACEHOLDER_REPLACED, now_ns),
            lambda: self.give_up_swap(key),
            lambda: application.reservations.try_add(key, "node", now_ns, required=False),
        ]
        steps[what]()
        application.validate()

    def enter(self, key: str, size: Resource, *, placeholder: bool, recovered: bool) -> None:
        """Add an unknown key."""
        application = self.application
        if application.swaps.onto(key) or application.allocations.get(key) or application.asks.record(key):
            return
        ask = an_ask(key, resource=size, task_group_name="g", placeholder=placeholder)
        if recovered:
            application.allocations.recover((an_allocation(ask=ask),), self.now_ns)
        else:
            self.add(ask)

    def give_up_swap(self, key: str) -> None:
        """Let a swap onto a placeholder go."""
        real = self.application.swaps.cancel(key)
        if real is not None:
            self.application.asks.displace(real.allocation_key)


@settings(max_examples=100)
@given(STEPS)
def test_sums_are_those_of_what_waits_and_runs(steps: list[tuple[int, int, int, bool]]) -> None:
    """Whatever happens in whatever order: what waits, runs and is held is the sum of its parts."""
    app = RandomApplication()
    for what, number, quantity, placeholder in steps:
        app.step(what, f"key-{number}", quantity, placeholder=placeholder)
        waiting = [record.ask.resource.get("memory") for record in app.application.asks.waiting()]
        placed = [entry.allocation for entry in app.application.allocations.all()]
        real = sum(entry.resource.get("memory") for entry in placed if not entry.ask.placeholder)
        held = sum(entry.resource.get("memory") for entry in placed if entry.ask.placeholder)
        assert (sum(waiting), real, held) == app.sums()


def test_validation_finds_a_wrong_sum() -> None:
    """What waits and what runs must be the sum of its parts."""
    app = running("a")
    app.application._core.holdings.allocated = EMPTY

    with pytest.raises(AssertionError, match="application app: allocated"):
        app.application.validate()
