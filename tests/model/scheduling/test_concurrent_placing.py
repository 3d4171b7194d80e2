"""What a cycle may do that shares its partition with others, step by step on one thread."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, Never

import pytest
from support.model.builders import TEN, FakePredicates, a_resource
from support.model.harness import Harness
from support.model.limit_builders import users_shown

from licorne.model.applications.allocations import ApplicationAllocations
from licorne.model.limits.user_limits import UserLimits
from licorne.model.nodes.node import Node
from licorne.model.nodes.order import NodeOrder
from licorne.model.queues import quota as queue_quota
from licorne.model.queues.queue import Queue
from licorne.model.resources.resource import EMPTY, Resource
from licorne.model.scheduling.cycle import ConcurrentOutcome, place_concurrently
from licorne.model.state.charges import may_start
from licorne.model.state.placing import reserve

TWO: Final = "- name: a\n- name: b"
PLACED, TAKEN, ALONE = ConcurrentOutcome.PLACED, ConcurrentOutcome.TAKEN, ConcurrentOutcome.ALONE


def waiting(queues: str = TWO, *, memory: int = 5, **settings: Any) -> Harness:
    """Return a partition with a node of ten, and an ask of five, or as much, in each of two leaves."""
    h = Harness(queues, **settings)
    h.nodes("one")
    for name in ("a", "b"):
        h.submit(f"app-{name}", f"root.{name}")
        h.ask(f"ask-{name}", application_id=f"app-{name}", resource=a_resource(memory=memory))
    h.forget()
    return h


def place(h: Harness) -> ConcurrentOutcome:
    outcome = place_concurrently(h.state)
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


def test_what_is_taken_is_said_to_be_only_by_who_has_looked_at_nothing_else() -> None:
    """Of two that have each looked at a leaf, and each found that of the other taken, both go on."""
    h = waiting("- name: a\n  resources: {max: {memory: 4}}\n- name: b")
    h.cycle()
    h.ask("more", application_id="app-b", resource=a_resource(memory=1))
    assert leaf(h, "a").entries.sleep is not None
    assert leaf(h, "b").try_claim()

    assert ALONE is place(h)


def test_an_application_that_backs_off_is_left_to_a_whole_cycle() -> None:
    """Which knows for how long."""
    h = waiting()
    h.entry("app-a").backoff_until_ns = h.clock.now_ns() + 1

    assert ALONE is place(h)


def test_what_is_placed_was_let_run() -> None:
    """Also if it was not when it was looked at before."""
    h = waiting()
    entry = h.entry("app-a")
    entry.runnable_in_queue = entry.runnable_by_user = False

    assert PLACED is place(h)
    assert (True, True) == (entry.runnable_in_queue, entry.runnable_by_user)


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
    assert h.queue("root.a").entries.sleep is None


def test_a_leaf_that_may_be_skipped_is_skipped() -> None:
    """A whole cycle has found nothing there, and nothing has changed."""
    h = waiting("- name: a\n  resources: {max: {memory: 4}}\n- name: b")
    h.run_until_idle()
    h.ask("more", application_id="app-b", resource=a_resource(memory=1))

    assert leaf(h, "a").entries.sleep is not None
    assert PLACED is place(h)


def test_no_room_of_queues_is_asked_for_to_skip_a_leaf(monkeypatch: pytest.MonkeyPatch) -> None:
    """That takes the locks of queues, which a thread must not want that shares the partition."""
    h = waiting("- name: a\n  resources: {max: {memory: 4}}\n- name: b")
    h.cycle()
    h.state.changes += 1
    monkeypatch.setattr(Queue, "room", None)

    assert ALONE is place(h)


def test_where_a_guarantee_is_kept_back_a_whole_cycle_places() -> None:
    """What others withhold is read queue by queue, which two that place at once could not trust."""
    h = waiting("- name: a\n- {name: b, resources: {guaranteed: {memory: 8}, lend: {memory: 2}}}")

    assert [ALONE] == [place(h)]
    assert {} == h.placements
    h.run_until_idle()
    assert {"ask-b": "one"} == h.placements


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
    record = h.ask_record("ask-a", "app-a")
    node = h.state.nodes.get("one")
    assert node is not None
    assert reserve(h.state, h.entry("app-a"), record.ask, node, required=False)

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
    """Decline, as after another thread came first."""


def break_down(_: object, *__: object, **___: object) -> Never:
    raise ZeroDivisionError("broken")


STEPS: Final = [
    pytest.param(UserLimits, "try_increase", decline, id="a limit"),
    pytest.param(queue_quota, "try_charge", lambda leaf, _: leaf, id="a queue"),
    pytest.param(NodeOrder, "take_first_fit", decline, id="the order of the nodes"),
    pytest.param(Node, "try_add", decline, id="the node"),
    pytest.param(ApplicationAllocations, "try_place", decline, id="the application"),
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


@pytest.mark.parametrize("owner", [Node, ApplicationAllocations])
def test_where_a_step_breaks_nothing_has_happened(monkeypatch: pytest.MonkeyPatch, owner: type) -> None:
    """The text of the error does not matter here."""
    h = waiting()
    with monkeypatch.context() as patch:
        patch.setattr(owner, "try_add" if owner is Node else "try_place", break_down)
        with pytest.raises(ZeroDivisionError):
            place_concurrently(h.state)
    h.validate()
    assert (TEN, EMPTY, EMPTY) == (h.node("one").available, h.node("one").allocated, h.user_usage())
    assert leaf(h, "a").try_claim()


def place_between(
    monkeypatch: pytest.MonkeyPatch, h: Harness, owner: type, name: str, *, declines: bool
) -> None:
    """Have another thread place something just before a step of the first one, which then declines or not."""
    step = getattr(owner, name)

    def with_another(*args: Any, **kwargs: Any) -> object:
        monkeypatch.setattr(owner, name, step)
        place_concurrently(h.state)
        return None if declines else step(*args, **kwargs)

    monkeypatch.setattr(owner, name, with_another)


LIMITS: Final = [
    pytest.param("limits: [{limit: of bob, users: [bob], maxresources: {memory: 8}}]", id="of a user"),
    pytest.param("limits: [{limit: of dev, groups: [dev], maxresources: {memory: 8}}]", id="of a group"),
    pytest.param("resources: {max: {memory: 8}}", id="of a queue"),
]


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize(
    ("owner", "name"),
    [
        pytest.param(UserLimits, "try_increase", id="first"),
        pytest.param(NodeOrder, "take_first_fit", id="then"),
        pytest.param(Node, "try_add", id="last"),
    ],
)
def test_two_at_once_stay_within_a_limit(
    monkeypatch: pytest.MonkeyPatch, limits: str, owner: type, name: str
) -> None:
    """Each has room for its ask, and there is none for both, wherever the one comes in between."""
    h = Harness(f"- name: p\n  {limits}\n  queues: [{{name: a}}, {{name: b}}]")
    h.nodes("one", "two")
    for each in ("a", "b"):
        h.submit(f"app-{each}", f"root.p.{each}")
        h.ask(f"first-{each}", application_id=f"app-{each}", resource=a_resource(memory=1))
        h.cycle()
        h.ask(f"ask-{each}", application_id=f"app-{each}", resource=a_resource(memory=5))
    place_between(monkeypatch, h, owner, name, declines=False)

    place(h)
    assert a_resource(memory=7) == h.user_usage() == h.queue("root.p").allocated
    assert 3 == len(h.placements)


def test_a_size_that_found_no_room_meanwhile_finds_what_is_given_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What the other one has noted as full is open again."""
    h = waiting(memory=6)
    h.nodes("small", capacity=a_resource(memory=5))
    place_between(monkeypatch, h, Node, "try_add", declines=True)

    assert ALONE is place(h)
    assert {} == h.state.nodes.closed


def test_an_application_that_counted_as_running_does_so_after_a_step_was_undone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An application may run with nothing placed for a moment; its place is not anybody else's."""
    one_of_bob = "{limit: one of bob, users: [bob], maxapplications: 1, maxresources: {memory: 100}}"
    h = Harness(f"- name: leaf\n  limits: [{one_of_bob}]")
    h.nodes("one")
    h.submit("app")
    h.ask("first")
    h.cycle()
    h.ask("second")
    h.release("first")
    with monkeypatch.context() as patch:
        patch.setattr(Node, "try_add", decline)
        assert ALONE is place(h)
    h.submit("other")

    assert not may_start(h.state, h.entry("other"))


def test_who_starts_to_run_does_not_after_a_step_was_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if it had never been tried."""
    h = waiting()
    with monkeypatch.context() as patch:
        patch.setattr(Node, "try_add", decline)
        assert ALONE is place(h)

    (view,) = users_shown(h.state.limits, "bob")
    assert "runningApplications" not in view["queues"]


def parents(leaves: Iterable[Queue]) -> list[str]:
    return [leaf.parent.name for leaf in leaves if leaf.parent is not None]


def test_queues_are_ordered_by_what_they_have_after_a_step_was_taken_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another one has walked them while the charge was there."""
    h = Harness("- name: p\n  queues: [{name: a}]\n- name: q\n  queues: [{name: b}]")
    h.nodes("one", capacity=a_resource(memory=100))
    for name, path in (("b", "root.q.b"), ("a", "root.p.a")):
        h.submit(f"app-{name}", path)
        h.ask(
            f"first-{name}", application_id=f"app-{name}", resource=a_resource(memory=8 + 4 * (name == "b"))
        )
        h.cycle()
        h.ask(f"ask-{name}", application_id=f"app-{name}", resource=a_resource(memory=8))

    def decline_after_a_walk(*_: object) -> None:
        h.state.tree.refresh(leaf_a)
        assert ["q", "p"] == parents(h.state.tree.leaves_snapshot())

    leaf_a = h.queue("root.p.a")
    monkeypatch.setattr(NodeOrder, "take_first_fit", decline_after_a_walk)
    assert ALONE is place(h)

    assert ["p", "q"] == parents(h.state.tree.leaves_in_order())


def test_a_queue_that_breaks_leaves_none_above_it_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    """The queues above it have counted already."""
    h = waiting()
    charge = Queue.try_charge

    def break_in_the_leaf(queue: Queue, resource: Resource, beside: Resource) -> bool:
        return break_down(queue) if queue.is_leaf else charge(queue, resource, beside)

    with monkeypatch.context() as patch:
        patch.setattr(Queue, "try_charge", break_in_the_leaf)
        with pytest.raises(ZeroDivisionError):
            place_concurrently(h.state)
    h.validate()
    assert EMPTY == h.queue("root").allocated
