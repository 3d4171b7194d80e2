"""A leaf whose asks no quota has room for is skipped until one of its sizes fits its headroom."""

from __future__ import annotations

from typing import Final

import pytest
from support.model.builders import a_resource
from support.model.harness import Harness, a_partition
from support.proxy.counted_lines import lines_executed

from licorne.model.queues.queue import Queue
from licorne.model.scheduling import cycle
from licorne.model.scheduling.cycle import run_cycle
from licorne.model.scheduling.leaf_visit import visit_leaf
from licorne.model.state.partition_state import PartitionState
from licorne.proxy.base.process import is_compiled

SIX_LEAVES: Final = "\n".join(f"- name: q{number}" for number in range(6))
UNIT: Final = a_resource(memory=1)


def note_visits(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that gets the path of each leaf that is visited."""
    visited: list[str] = []

    def noted(state: PartitionState, leaf: Queue, now_ns: int) -> bool | None:
        visited.append(leaf.path)
        return visit_leaf(state, leaf, now_ns)

    monkeypatch.setattr(cycle, "visit_leaf", noted)
    return visited


def waiting_in(h: Harness, *leaves: str, count: int = 5) -> None:
    """Have one application in each leaf ask for so many units."""
    for leaf in leaves:
        h.submit(leaf, f"root.{leaf}")
        h.ask(*(f"{leaf}-{number}" for number in range(count)), application_id=leaf, resource=UNIT)
    h.run_until_idle()


def test_a_release_in_a_full_cluster_visits_the_leaf_that_gets_the_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The maximum of the root bars all leaves; those behind see that the room is gone again."""
    h = Harness(SIX_LEAVES)
    h.nodes("n1", capacity=a_resource(memory=12))
    waiting_in(h, *(f"q{number}" for number in range(6)))
    assert len(h.placements) == 12
    visited = note_visits(monkeypatch)

    h.release("q3-0", application_id="q3")
    h.run_until_idle()

    assert len(h.placements) == 13
    assert len(visited) <= 2


def test_leaves_that_got_none_of_the_room_and_the_one_that_got_it_are_not_visited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All asks have one size: those that are left wait for the same as before."""
    h = Harness(SIX_LEAVES)
    h.nodes("n1", capacity=a_resource(memory=12))
    waiting_in(h, *(f"q{number}" for number in range(6)))
    visited = note_visits(monkeypatch)

    h.release("q3-0", application_id="q3")
    h.run_until_idle()

    assert (13, [], {}) == (len(h.placements), visited, h.state.tree.bars.open)
    h.validate()


@pytest.mark.skipif(is_compiled(), reason="machine code executes no lines that are counted")
def test_a_walk_after_a_fruitless_one_measures_no_headroom_again() -> None:
    """That of a leaf was measured after the last change, and nothing has changed since."""
    h = Harness(SIX_LEAVES)
    h.nodes("n1", capacity=a_resource(memory=12))
    waiting_in(h, *(f"q{number}" for number in range(6)))
    h.release("q3-0", application_id="q3")
    h.run_until_idle()

    h.state.changes += 1
    after_a_change = lines_executed(lambda: run_cycle(h.state))

    assert lines_executed(lambda: run_cycle(h.state)) < after_a_change / 1.5


@pytest.mark.parametrize("limited", ["both", "one"])
def test_a_leaf_is_visited_again_when_its_own_headroom_has_room(limited: str) -> None:
    """Whether the maximum is its own or that of the parent, and whichever queue gives back."""
    maximum = "resources: {max: {memory: 5}}"
    own = f"- {{name: a, parent: true, queues: [{{name: x, {maximum}}}, {{name: y, {maximum}}}]}}"
    shared = f"- {{name: a, parent: true, {maximum}, queues: [{{name: x}}, {{name: y}}]}}"
    h = Harness(own if limited == "one" else shared)
    h.nodes("n1", capacity=a_resource(memory=100))
    for leaf in ("x", "y"):
        h.submit(leaf, f"root.a.{leaf}")
        h.ask(*(f"{leaf}-{number}" for number in range(8)), application_id=leaf, resource=UNIT)
    h.run_until_idle()
    placed = [*h.placements]

    h.release(placed[0], application_id=placed[0][0])
    h.run_until_idle()

    assert len(h.placements) == len(placed) + 1


def test_a_leaf_is_visited_again_when_its_maximum_is_raised() -> None:
    """Nothing else changes."""
    queues = "- {name: leaf, resources: {max: {memory: 2}}}"
    h = Harness(queues)
    h.nodes("n1", capacity=a_resource(memory=100))
    waiting_in(h, "leaf")

    h.reload(queues.replace("2", "4"))
    h.run_until_idle()

    assert len(h.placements) == 4


def test_an_ask_that_gets_small_enough_for_the_quota_is_placed() -> None:
    """It was barred as it was."""
    h = a_partition(
        "n1", capacity=a_resource(memory=100), queues="- {name: leaf, resources: {max: {memory: 2}}}"
    )
    h.ask_and_run("big", resource=a_resource(memory=3))

    h.ask_and_run("big", resource=a_resource(memory=2))

    assert [*h.placements] == ["big"]


def test_a_barred_ask_that_fits_its_quota_again_is_tried_for_a_reservation() -> None:
    """No node has room for it then; the quota alone had kept it from being tried."""
    h = Harness("- {name: leaf, resources: {max: {memory: 10}}}\n- {name: other}")
    h.nodes("n1", capacity=a_resource(memory=12))
    h.submit("first")
    h.ask("runs", application_id="first", resource=a_resource(memory=9))
    h.submit("elsewhere", "root.other")
    h.ask_and_run("too", application_id="elsewhere", resource=a_resource(memory=3))
    h.ask_and_run("waits", application_id="first", resource=a_resource(memory=4))
    h.wait(3)
    assert not h.state.reservations

    h.release("runs", application_id="first")
    h.ask_and_run(
        "foreign", application_id="", node_id="n1", resource=a_resource(memory=9), tags={"foreign": "default"}
    )

    assert h.state.reservations


@pytest.mark.parametrize("room", ["nowhere", "in small pieces"])
@pytest.mark.parametrize("reservations_on", [True, False])
def test_an_ask_for_a_full_node_has_a_victim_once_its_quota_has_room(
    room: str, *, reservations_on: bool
) -> None:
    """No room on a node is to be waited for, nor in all nodes together: daemons come to full clusters."""
    queues = "- {name: leaf, resources: {max: {memory: 10}}}\n- {name: other}"
    h = Harness(queues, reservations_on=reservations_on)
    nodes = ("n1", "n2", "n3") if room == "nowhere" else ("n1", "n2", "n3", "n4")
    h.nodes(*nodes, capacity=a_resource(memory=8))
    h.submit("first")
    h.submit("elsewhere", "root.other")
    for node in nodes:
        h.ask(f"large-{node}", application_id="elsewhere", node_id=node, resource=a_resource(memory=5))
        owner = "elsewhere" if node in {"n1", "n4"} else "first"
        h.ask(f"small-{node}", application_id=owner, node_id=node, resource=a_resource(memory=3))
    h.submit("second")
    h.ask("like it", application_id="elsewhere", priority=9, resource=a_resource(memory=5))
    h.ask_and_run("daemon", application_id="second", required_node="n1", resource=a_resource(memory=5))
    assert not h.releases
    if room == "in small pieces":
        h.release("small-n4", application_id="elsewhere")
        h.run_until_idle()

    h.release("small-n2", application_id="first")
    h.run_until_idle()
    h.settle()

    assert h.placements["daemon"] == "n1"


TENANTS: Final = """
- name: tenants
  parent: true
  resources: {max: {memory: 9}}
  queues: [{name: a, resources: {max: {memory: 2}}}, {name: b, resources: {max: {memory: 2}}}]
- name: shared
  limits: [{users: [ann, bob], maxresources: {memory: 2}}, {groups: [dev], maxresources: {memory: 3}}]
"""


def barred_by_quota() -> Harness:
    """Return a partition with room in which two leaves, two users and a group wait at their limits."""
    h = Harness(TENANTS)
    h.nodes("n1", capacity=a_resource(memory=100))
    for leaf in ("a", "b"):
        h.submit(leaf, f"root.tenants.{leaf}")
        h.ask(*(f"{leaf}-{number}" for number in range(4)), application_id=leaf, resource=UNIT)
    for user, group in (("ann", "ops"), ("bob", "ops"), ("eve", "dev")):
        h.submit(user, "root.shared", user=user, groups=(group,))
        h.ask(*(f"{user}-{number}" for number in range(5)), application_id=user, resource=UNIT)
    h.run_until_idle()
    return h


def test_an_end_wakes_only_the_leaf_whose_quota_gets_room() -> None:
    """The others sleep on: also those that a limit of another user bars."""
    h = barred_by_quota()
    awake = h.state.tree.root.awake
    h.cycle()
    assert 3 == len(awake.asleep)

    h.release("a-0", application_id="a")
    h.cycle()

    assert {"root.tenants.b", "root.shared"} == {leaf.path for leaf in awake.asleep}
    assert "a-2" in h.placements


@pytest.mark.parametrize("name", ["a", "b", "ann", "bob", "eve"])
def test_an_end_lets_the_next_ask_at_the_same_quota_run(name: str) -> None:
    h = barred_by_quota()
    before = [*h.placements]

    h.release(f"{name}-0", application_id=name)
    h.run_until_idle()

    assert [name] == [key.split("-")[0] for key in h.placements if key not in before]
    h.validate()


def test_what_bars_nothing_now_is_forgotten() -> None:
    """The applications that waited are gone."""
    h = barred_by_quota()
    bars = h.state.tree.bars
    assert len(bars)

    for name in ("a", "b", "ann", "bob", "eve"):
        h.withdraw(name)
    h.submit("last", "root.shared")
    h.ask_and_run("last", application_id="last", resource=UNIT)

    assert (0, []) == (len(bars), bars.gone)
