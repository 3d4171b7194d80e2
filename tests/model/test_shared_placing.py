"""What a cycle may do that shares its partition with others, step by step on one thread."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest
from builders import TEN, a_resource
from harness import FakePredicates, Harness

from licorne.model import queue_quota
from licorne.model.application import Application
from licorne.model.node import Node
from licorne.model.placing import reserve
from licorne.model.resources import EMPTY
from licorne.model.shared_placing import SharedOutcome, place_beside_others
from licorne.model.user_limits import UserLimits

if TYPE_CHECKING:
    from collections.abc import Callable

    from licorne.model.queue import Queue

TWO: Final = "- name: a\n- name: b"
PLACED, TAKEN, ALONE = SharedOutcome.PLACED, SharedOutcome.TAKEN, SharedOutcome.ALONE


def waiting(queues: str = TWO, **settings: Any) -> Harness:
    """Return a partition with a node of ten, and an ask of five in each of two leaves."""
    h = Harness(queues, **settings)
    h.nodes("one")
    for name in ("a", "b"):
        h.submit(f"app-{name}", f"root.{name}")
        h.ask(f"ask-{name}", application_id=f"app-{name}", resource=a_resource(memory=5))
    h.forget()
    return h


def place(h: Harness) -> SharedOutcome:
    outcome = place_beside_others(h.state)
    h.validate()
    return outcome


def leaf(h: Harness, name: str) -> Queue:
    return h.queue(f"root.{name}")


def test_the_first_ask_of_the_first_leaf_is_placed() -> None:
    """And counted everywhere."""
    h = waiting()

    assert [PLACED, PLACED, ALONE] == [place(h) for _ in range(3)]
    assert {"ask-a": "one", "ask-b": "one"} == h.placements
    assert (EMPTY, 2) == (h.node("one").available, h.state.placed.allocations)
    assert (TEN, TEN) == (h.queue("root").allocated, h.user_usage())


def test_a_leaf_that_another_one_has_is_passed_over() -> None:
    """And left alone."""
    h = waiting()
    assert leaf(h, "a").try_claim()

    assert PLACED is place(h)
    assert {"ask-b": "one"} == h.placements
    assert TAKEN is place(h)
    assert not leaf(h, "a").try_claim()


def test_a_leaf_is_free_again_whatever_came_of_it() -> None:
    """Also where it has to be said by a cycle that has the partition alone."""
    h = waiting()
    while place(h) is PLACED:
        pass

    assert leaf(h, "a").try_claim()
    assert leaf(h, "b").try_claim()


def test_no_leaf_is_passed_over_that_only_a_whole_cycle_can_judge() -> None:
    """Its ask does not fit, and whether that is all there is to say is said elsewhere; the next one waits."""
    h = waiting("- name: a\n  resources: {max: {memory: 4}}\n- name: b")

    assert ALONE is place(h)
    assert {} == h.placements
    assert h.queue("root.a").seats.rest is None


def test_a_leaf_that_rests_is_passed_over() -> None:
    """A whole cycle has found nothing there, and nothing has changed."""
    h = waiting("- name: a\n  resources: {max: {memory: 4}}\n- name: b")
    h.cycle()
    h.ask("more", application_id="app-b", resource=a_resource(memory=1))

    assert leaf(h, "a").seats.rest is not None
    assert PLACED is place(h)


def test_swaps_go_first() -> None:
    """While a placeholder is placed, whole cycles look whether something takes its place."""
    h = waiting()
    h.nodes("two")
    h.ask("p", application_id="app-a", resource=a_resource(memory=1), placeholder=True, task_group_name="g")
    h.cycle()
    h.cycle()
    h.cycle()
    assert 1 == h.state.placed.placeholders

    h.ask("late", application_id="app-b")
    assert ALONE is place(h)


def test_reserved_asks_go_first() -> None:
    """A reservation is for who has the partition alone."""
    h = waiting()
    record = h.application("app-a").ask_record("ask-a")
    node = h.state.nodes.get("one")
    assert record is not None
    assert node is not None
    assert reserve(h.state, h.seat("app-a"), record.ask, node, required=False)

    assert ALONE is place(h)


def test_an_rm_that_judges_is_asked_by_whole_cycles() -> None:
    """They know what to do while they wait for it."""
    assert ALONE is place(waiting(predicates=FakePredicates()))


@pytest.mark.parametrize(
    "queues",
    [
        "- name: a\n  maxapplications: 1\n- name: b\n  maxapplications: 1",
        "- name: a\n  limits: [{limit: bob, users: [bob], maxapplications: 1}]\n- name: b",
    ],
)
def test_no_application_is_started_where_their_number_is_limited(queues: str) -> None:
    """Two threads that look at once would both see the last place."""
    assert ALONE is place(waiting(queues))


def test_what_runs_is_placed_within_the_limits_of_its_user() -> None:
    """Up to the limit, and no further."""
    h = waiting("- name: a\n  limits: [{limit: bob, users: [bob], maxresources: {memory: 8}}]\n- name: b")
    h.cycle()
    h.cycle()
    h.ask("fits", application_id="app-a", resource=a_resource(memory=3))
    h.ask("is too much", application_id="app-a", resource=a_resource(memory=1))
    h.nodes("two")

    assert [PLACED, ALONE] == [place(h), place(h)]
    assert {"ask-a", "ask-b", "fits"} == h.placements.keys()


# ------------------------------------------------------------- what comes between looking and taking


def decline(_: object, *__: object, **___: object) -> None:
    """Say no, as after somebody else came first."""


def refuse(_: object, *__: object, **___: object) -> bool:
    return False


def break_down(_: object, *__: object, **___: object) -> None:
    raise ZeroDivisionError("broken")


STEPS: Final = [
    pytest.param(queue_quota, "try_charge", lambda leaf, _: leaf, id="a queue"),
    pytest.param(UserLimits, "try_increase", refuse, id="a limit"),
    pytest.param(Node, "try_add", decline, id="the node"),
    pytest.param(Application, "try_place", decline, id="the application"),
]


@pytest.mark.parametrize(("owner", "name", "step"), STEPS)
def test_where_a_step_declines_nothing_has_happened(
    monkeypatch: pytest.MonkeyPatch, owner: object, name: str, step: Callable[..., object]
) -> None:
    """The steps before it are taken back, in all books, and a whole cycle places the ask after all."""
    h = waiting()
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, step)
        assert ALONE is place(h)
    assert ({}, EMPTY) == (h.placements, h.queue("root").allocated)
    assert (TEN, EMPTY, EMPTY) == (h.node("one").available, h.node("one").allocated, h.user_usage())

    h.cycle()
    assert {"ask-a": "one"} == h.placements


@pytest.mark.parametrize("owner", [Node, Application])
def test_where_a_step_breaks_nothing_has_happened(monkeypatch: pytest.MonkeyPatch, owner: type) -> None:
    """What the error says is somebody else's concern."""
    h = waiting()
    with monkeypatch.context() as patch:
        patch.setattr(owner, "try_add" if owner is Node else "try_place", break_down)
        with pytest.raises(ZeroDivisionError):
            place_beside_others(h.state)
    h.validate()
    assert (TEN, EMPTY, EMPTY) == (h.node("one").available, h.node("one").allocated, h.user_usage())
    assert leaf(h, "a").try_claim()
