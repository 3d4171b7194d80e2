"""The scheduling cycle: reservations, the back-off, and required nodes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from support.model.builders import SECOND_NS, FakePredicates, a_resource
from support.model.harness import Asked, Harness, a_roomy_partition

from licorne.model.scheduling.cycle import CycleOutcome
from licorne.model.values.allocation import RefusalReason
from licorne.model.values.messages import NodeAction

FIVE = a_resource(memory=5)
HUNDRED = a_resource(memory=100)
NOTHING = CycleOutcome.NOTHING
PREPARED = CycleOutcome.PREPARED


def a_partition(*node_ids: str, **settings: Any) -> Harness:
    """Return a partition in which only nodes bar an ask, and the application `app`."""
    h = a_roomy_partition(*node_ids, **settings)
    h.submit()
    return h


# ----------------------------------------------------------------------------------------- reservations


def waiting(*nodes: str, predicates: FakePredicates | None = None, reservations_on: bool = True) -> Harness:
    """Return a partition whose nodes are partly used, so that an ask of ten finds no room."""
    h = a_partition(*nodes, predicates=predicates, reservations_on=reservations_on)
    for number, node_id in enumerate(nodes):
        h.ask(f"used-{number}", node_id=node_id, resource=a_resource(memory=3 + number))
    h.ask_and_run("a")
    h.forget()
    return h


def reserved(h: Harness) -> dict[str, tuple[str, ...]]:
    """Return the reserved nodes with the keys of their asks."""
    nodes = [entry.node.facts() for entry in h.state.nodes.by_name()]
    return {node.node_id: node.reservations for node in nodes if node.reservations}


def test_a_node_is_reserved_after_two_seconds() -> None:
    """Not at two seconds, but after them; there is no message."""
    h = waiting("one")
    h.advance(2)
    h.ask("other", resource=HUNDRED)
    early = h.cycle()
    h.advance(milliseconds=1)

    assert (NOTHING, PREPARED) == (early, h.cycle())
    assert ({"one": ("a",)}, []) == (reserved(h), h.announcements)


def test_the_node_of_the_least_use_to_others_is_reserved() -> None:
    """Among those that are large enough: not the one that has other things left as well."""
    h = waiting("three", "four")
    h.nodes("small", capacity=a_resource(memory=9))
    h.update_node("three", NodeAction.UPDATE, a_resource(memory=10, gpu=1))
    h.advance(3)

    h.run_until_idle()

    assert {"four": ("a",)} == reserved(h)


def test_an_ask_has_one_reservation() -> None:
    """However long it waits; the second ask has the second node, the third none."""
    h = waiting("one", "two")
    h.ask("b", "c")
    h.advance(3)

    outcomes = [h.cycle() for _ in range(4)]

    assert ([PREPARED, PREPARED, NOTHING, NOTHING], {"one": ("a",), "two": ("b",)}) == (
        outcomes,
        reserved(h),
    )


def test_a_reserved_node_is_used_for_no_other_ask() -> None:
    """Also for asks that would fit."""
    h = waiting("one")
    h.wait(3)
    h.ask("small", resource=a_resource(memory=1), priority=9)

    assert NOTHING is h.cycle()
    assert {} == h.placements


def test_cordoned_nodes_are_not_reserved() -> None:
    """Nothing would be placed there."""
    h = waiting("one")
    h.update_node("one", NodeAction.DRAIN_NODE)
    h.advance(3)

    assert NOTHING is h.cycle()


def test_the_predicates_must_allow_a_reservation() -> None:
    """They are asked without allocating; where they refuse, the ask waits without a reservation."""
    predicates = FakePredicates(unreservable={("a", "one"): "taint"})
    h = waiting("one", predicates=predicates)
    predicates.asked.clear()
    h.advance(3)

    assert NOTHING is h.cycle()
    assert [("a", "one", False)] == predicates.asked


def test_an_ask_that_is_refused_everywhere_may_still_reserve() -> None:
    """The RM is asked another question: whether the node would do, once it has room."""
    predicates = FakePredicates(refused={("a", "one"): "not now"})
    h = a_partition("one", predicates=predicates)
    h.ask_and_run("a")
    h.advance(3)

    assert (PREPARED, {"one": ("a",)}) == (h.cycle(), reserved(h))


def test_reservations_can_be_switched_off() -> None:
    """Then asks just wait."""
    h = waiting("one", reservations_on=False)
    h.advance(30)

    assert NOTHING is h.cycle()
    assert {} == reserved(h)


# ---------------------------------------------------------------------------------------- the back-off

BACKOFF = """
- name: leaf
  properties: {application.unschedasks.backoff: "2", application.unschedasks.backoff.delay: 10s}
"""


def test_an_application_backs_off_after_so_many_asks_without_room() -> None:
    """Its further asks are not looked at; other applications go on."""
    h = a_partition("one", queues=BACKOFF, reservations_on=False)
    h.ask("big-1", "big-2", resource=HUNDRED, priority=1)
    h.ask("small")
    h.submit("other")
    h.ask("other", application_id="other", resource=FIVE)

    h.run_until_idle()

    assert ["other"] == list(h.placements)


def test_an_application_comes_back_after_the_delay() -> None:
    """Not before it, whatever changes; then its asks are looked at anew."""
    h = a_partition("one", queues=BACKOFF, reservations_on=False)
    h.ask("big-1", "big-2", resource=HUNDRED, priority=1)
    h.ask_and_run("small")

    h.nodes("huge", capacity=a_resource(memory=1000))
    h.advance(9)
    held = h.run_until_idle()
    h.advance(1)

    assert (0, 3) == (held, h.run_until_idle())


def test_an_ask_that_is_placed_already_counts_as_a_further_one() -> None:
    """The bound is looked at before each ask of the list, and what is placed stays in it."""
    h = a_partition("one", queues=BACKOFF, reservations_on=False)
    h.ask_and_run("placed")
    h.ask("big-1", "big-2", resource=HUNDRED, priority=1)

    h.run_until_idle()

    assert h.clock.now_ns() + 10 * SECOND_NS == h.entry().backoff_until_ns


# ------------------------------------------------------------------------------------ required nodes


@dataclass(frozen=True)
class Required:
    """Asks for a node, where they are placed, and which nodes are reserved for them."""

    asked: list[Asked]
    placements: dict[str, str] = field(default_factory=dict)
    reserved: dict[str, tuple[str, ...]] = field(default_factory=dict)
    queues: str = "- name: leaf"
    refused: str = ""


REQUIRED = {
    "is placed there whatever the order of nodes, and though the node is cordoned": Required(
        [Asked("daemon", required_node="two")], {"daemon": "two"}
    ),
    # The ask can run nowhere else, so it waits there.
    "has it reserved where the predicates refuse it": Required(
        [Asked("daemon", required_node="one")], reserved={"one": ("daemon",)}, refused="daemon"
    ),
    "shares its reservation with others": Required(
        [Asked("used", node_id="one"), Asked("d1 d2", required_node="one")],
        {"used": "one"},
        {"one": ("d1", "d2")},
    ),
    "has neither the node nor a reservation beyond the quota": Required(
        [Asked("daemon", required_node="one")], queues="- {name: leaf, resources: {max: {memory: 5}}}"
    ),
}


@pytest.mark.parametrize("case", REQUIRED.values(), ids=REQUIRED)
def test_an_ask_that_requires_a_node(case: Required) -> None:
    """It runs on that one alone; the second one is cordoned."""
    predicates = FakePredicates(refused={(case.refused, "one"): "taint"})
    h = a_partition("one", "two", queues=case.queues, predicates=predicates)
    h.update_node("two", NodeAction.DRAIN_NODE)
    h.have(case.asked)
    h.run_until_idle()

    assert (case.placements, case.reserved) == (h.placements, reserved(h))


def test_an_ask_waits_for_its_required_node_to_come() -> None:
    """The next ask is tried meanwhile."""
    h = a_partition("one")
    h.ask("daemon", required_node="two", priority=1)
    h.ask_and_run("other")
    before = dict(h.placements)

    h.nodes("two")
    h.run_until_idle()

    assert ({"other": "one"}, "two") == (before, h.placements.get("daemon"))


def test_a_required_node_without_room_is_reserved_at_once() -> None:
    """No two seconds, and no question to the predicates about that."""
    predicates = FakePredicates()
    h = a_partition("one", predicates=predicates)
    h.ask("used", node_id="one")
    h.ask("daemon", required_node="one", resource=FIVE)
    predicates.asked.clear()

    assert PREPARED is h.cycle()
    assert ({"one": ("daemon",)}, []) == (reserved(h), [ask for ask in predicates.asked if not ask[2]])


def test_a_required_node_with_room_that_the_predicates_refuse_is_not_called_full() -> None:
    """The refusal has the words of the manager, and is asked for again a second later."""
    predicates = FakePredicates(refused={("daemon", "one"): "taint"})
    h = a_partition("one", predicates=predicates, reservations_on=False)
    h.ask_and_run("daemon", required_node="one")

    (refusal,) = h.application().asks.refusals()

    assert (RefusalReason.PREDICATES, "one", "taint") == (refusal.reason, refusal.subject, refusal.detail)
    assert h.partition.next_retry_ns() == refusal.until_ns == h.clock.now_ns() + SECOND_NS


def test_room_that_is_held_for_one_that_requires_the_node_is_not_for_the_next() -> None:
    """Both have their reservations there, and the first one's turn comes first."""
    h = a_partition("one")
    h.ask("used", node_id="one", resource=FIVE)
    h.ask_and_run("large", required_node="one")
    h.ask("small", required_node="one", resource=FIVE, priority=9)

    assert PREPARED is h.cycle()
    assert {"one": ("large", "small")} == reserved(h)


def test_an_ask_that_its_required_node_can_never_hold_bars_no_other() -> None:
    """It gets no reservation, takes none away, and the next ask is tried in the same cycle."""
    h = waiting("one")
    h.wait(3)
    h.nodes("two")
    h.ask("daemon", required_node="one", resource=HUNDRED, priority=9)
    h.ask("next", resource=FIVE)

    h.run_until_idle()

    assert {"a": "two", "next": "one"} == h.placements


def test_an_ask_that_requires_a_node_drives_ordinary_reservations_away() -> None:
    """It takes the room that others have waited for."""
    h = waiting("one")
    h.wait(3)
    before = reserved(h)
    h.ask("daemon", required_node="one", resource=a_resource(memory=1))

    h.cycle()

    assert ({"one": ("a",)}, {}, {"daemon": "one"}) == (before, reserved(h), h.placements)
