"""Siblings ordered by what they have used: `fair.half-life` and `fair.weight`."""

from __future__ import annotations

from typing import Final, NamedTuple

import pytest
from support.model.builders import a_configuration, memory, the
from support.model.entries import an_entry, facts_of
from support.model.harness import Harness

from licorne.model.queues import quota
from licorne.model.queues.queue import Queue
from licorne.model.queues.quota import ranked_leaves
from licorne.model.queues.tree import QueueTree, awake_in_order
from licorne.model.queues.use_order import DepartedUse, mean_use, weight_of
from licorne.model.requests.reconfiguring import reconfigure
from licorne.model.resources.decayed_use import no_use, raised_to

HOUR: Final = 3600 * 10**9
DAY: Final = 24 * HOUR
MEMORY: Final = "properties: {fair.half-life: 24h}"


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.hours = 0.0

    def now_ns(self) -> int:
        return round(self.hours * HOUR)


class Cluster:
    """Queues in a cluster of a hundred, in each of which something waits."""

    def __init__(self, queues: str, root: str = MEMORY) -> None:
        self.clock = Clock()
        config = a_configuration(queues, root=root).root
        self.tree = QueueTree(config, now_ns=self.clock.now_ns)
        self.tree.root.set_maximum_from_nodes(memory(100))
        self.tree.limits_changed()
        for leaf in self.tree.leaves():
            self.wait(leaf)

    def wait(self, leaf: Queue) -> None:
        an_entry(leaf, leaf.path, facts_of(pending=memory(1)))
        for level in leaf.above:
            level.add_pending(memory(1))
        self.tree.refresh(leaf)

    def the(self, path: str) -> Queue:
        return the(self.tree, f"root.{path}")

    def use(self, path: str, quantity: int, hours: float | None = None) -> None:
        """Have a leaf use more, or by a negative quantity less, at some hour."""
        self.clock.hours = self.clock.hours if hours is None else hours
        leaf = self.the(path)
        if quantity > 0:
            quota.charge(leaf, memory(quantity))
        else:
            quota.release_charge(leaf, memory(-quantity))
        self.tree.refresh(leaf)

    def order(self, hours: float | None = None) -> list[str]:
        """Return the names of the leaves in order at some hour, as each of the walks has them."""
        self.clock.hours = self.clock.hours if hours is None else hours
        explained = [leaf.name for leaf in ranked_leaves(self.tree)]
        walked = [leaf.name for leaf in self.tree.leaves_in_order()]
        assert walked == explained == [leaf.name for leaf in self.tree.leaves_snapshot()]
        self.tree.root.awake.sleep([], (0, 0, 0, 0))
        assert set(walked) >= {leaf.name for leaf in awake_in_order(self.tree)}
        self.tree.validate()
        return walked

    def mean(self, path: str, hours: float) -> float:
        return mean_use(self.the(path), round(hours * HOUR)).get("memory", 0.0)


TWO: Final = "- name: x\n- name: y"


def test_who_has_used_less_goes_first() -> None:
    """Although nobody uses anything now; time alone changes no order then."""
    cluster = Cluster(TWO)
    cluster.use("x", 50, 0)
    cluster.use("x", -50, 10)

    assert ["y", "x"] == cluster.order() == cluster.order(500)


class Level(NamedTuple):
    """The weights of x and of y, and the hour at which they are level."""

    x: int
    y: int
    hours: float


LEVELS: Final = {
    "equal weights": Level(1, 1, 55.7263),
    "y has twice the weight": Level(1, 2, 38.0391),
    "x has twice the weight": Level(2, 1, 76.0782),
}


@pytest.mark.parametrize("case", LEVELS.values(), ids=LEVELS)
def test_an_order_changes_with_time_alone(case: Level) -> None:
    """X uses 10 from the beginning on, y used 40 for a day; nothing else happens."""
    lines = [
        f"- {{name: {name}, properties: {{fair.weight: '{weight}'}}}}"
        for name, weight in (("x", case.x), ("y", case.y))
    ]
    cluster = Cluster("\n".join(lines))
    cluster.use("x", 10, 0)
    cluster.use("y", 40, 0)
    cluster.use("y", -40, 24)

    assert ["x", "y"] == cluster.order(case.hours - 0.001)
    assert ["y", "x"] == cluster.order(case.hours + 0.001)


class Turns(NamedTuple):
    """The weights of queues, who has the cluster in the first hours, and the hours of each in ten days."""

    weights: tuple[int, ...]
    begin: str
    hours: tuple[int, ...]
    last_hours: tuple[int, ...]
    """Of the last three days."""


TURNS: Final = {
    "two alike": Turns((1, 1), "xyxyxyxy", (120, 120), (36, 36)),
    "2 to 1": Turns((2, 1), "xyxyxxyxxyxx", (159, 81), (48, 24)),
    "3 to 1": Turns((3, 1), "xyxxyxxxyxxxy", (178, 62), (53, 19)),
}


@pytest.mark.parametrize("case", TURNS.values(), ids=TURNS)
def test_who_needs_the_whole_cluster_each_time_takes_turns_by_weight(case: Turns) -> None:
    """Jobs of an hour; without a memory x would have the cluster for ever."""
    names = "xyz"[: len(case.weights)]
    lines = [
        f"- {{name: {name}, properties: {{fair.weight: '{weight}'}}}}"
        for name, weight in zip(names, case.weights, strict=True)
    ]
    cluster = Cluster("\n".join(lines))
    turns = ""
    for hour in range(240):
        turn = cluster.order(hour)[0]
        cluster.use(turn, 100)
        cluster.use(turn, -100, hour + 1)
        turns += turn

    assert case.begin == turns[: len(case.begin)]
    assert case.hours == tuple(turns.count(name) for name in names)
    assert case.last_hours == tuple(turns[-72:].count(name) for name in names)


def test_three_queues_take_turns_by_weight() -> None:
    """3 to 2 to 1 over the last three days."""
    cluster = Cluster(
        "- {name: x, properties: {fair.weight: '3'}}\n- {name: y, properties: {fair.weight: '2'}}\n- name: z"
    )
    turns = ""
    for hour in range(240):
        turn = cluster.order(hour)[0]
        cluster.use(turn, 100)
        cluster.use(turn, -100, hour + 1)
        turns += turn

    assert (35, 24, 13) == tuple(turns[-72:].count(name) for name in "xyz")


def test_a_guarantee_is_worth_no_less_because_of_the_past() -> None:
    """Below it a queue goes first, whatever it has used; from there on its past counts."""
    cluster = Cluster("- name: x\n- {name: y, resources: {guaranteed: {memory: 40}}}")
    cluster.use("y", 90, 0)
    cluster.use("x", 9, 240)
    cluster.use("y", -51)
    below = cluster.order()
    cluster.use("y", 1)

    assert (["y", "x"], ["x", "y"]) == (below, cluster.order())


def test_what_is_within_the_guarantee_is_not_remembered() -> None:
    """Of 60 with 40 guaranteed 20 count: 10 after a day, 5 a day after it uses 40 alone."""
    cluster = Cluster("- name: x\n- {name: y, resources: {guaranteed: {memory: 40}}}")
    cluster.use("y", 60, 0)
    after_a_day = cluster.mean("y", 24)
    cluster.use("y", -20, 24)

    assert (10.0, 5.0) == (after_a_day, cluster.mean("y", 48))


def test_all_counts_where_the_parent_says_so() -> None:
    """Of the same use 30 after a day, and 35 a day later; below the guarantee a queue goes first as ever."""
    queues = "- name: x\n- {name: y, resources: {guaranteed: {memory: 40}}}"
    cluster = Cluster(queues, root="properties: {fair.half-life: 24h, fair.count: all}")
    cluster.use("y", 60, 0)
    after_a_day = cluster.mean("y", 24)
    cluster.use("y", -20, 24)
    a_day_later, order = cluster.mean("y", 48), cluster.order(48)
    cluster.use("y", -1)

    assert (30.0, 35.0) == (after_a_day, a_day_later)
    assert (["x", "y"], ["y", "x"]) == (order, cluster.order())


def test_all_counts_without_a_half_life_too() -> None:
    """40 of a guarantee of 40 are more than 20 without one; by default they are nothing."""
    queues = "- {name: x, properties: {fair.weight: '1'}}\n- {name: y, resources: {guaranteed: {memory: 40}}}"
    orders = []
    for root in ("properties: {fair.count: all}", ""):
        cluster = Cluster(queues, root=root)
        cluster.use("x", 20)
        cluster.use("y", 40)
        orders.append(cluster.order())

    assert [["x", "y"], ["y", "x"]] == orders


def test_all_of_one_account_go_before_all_of_another() -> None:
    """Each level is ordered by itself: 40 shares with 100 used go before 60 with 300."""
    cluster = Cluster(
        """
        - name: heavy
          properties: {fair.weight: "60"}
          queues:
          - name: h1
          - name: h2
        - name: light
          properties: {fair.weight: "40"}
          queues:
          - name: l1
          - name: l2
        """
    )
    for path, used in (("heavy.h1", 30), ("light.l1", 9), ("light.l2", 1)):
        cluster.use(path, used, 0)
        cluster.use(path, -used, 24)

    assert ["l2", "l1", "h2", "h1"] == cluster.order()


def test_priorities_come_before_the_past() -> None:
    """Where the parent sorts by priority."""
    cluster = Cluster("- {name: x, properties: {priority.offset: '5'}}\n- name: y")
    cluster.use("x", 50, 0)

    assert ["x", "y"] == cluster.order(24)


def test_the_past_comes_before_priorities() -> None:
    """Where the parent does not."""
    cluster = Cluster(
        "- {name: x, properties: {priority.offset: '5'}}\n- name: y",
        root="properties: {fair.half-life: 24h, application.sort.priority: disabled}",
    )
    cluster.use("x", 50, 0)

    assert ["y", "x"] == cluster.order(24)


def test_weights_without_a_half_life_count_what_is_in_use() -> None:
    """Above the guarantee: 30 by 4 is less than 10 by 1, and what was used before does not count."""
    cluster = Cluster("- {name: x, properties: {fair.weight: '4'}}\n- name: y", root="")
    cluster.use("x", 90, 0)
    cluster.use("x", -60, 24)
    cluster.use("y", 10)

    assert ["x", "y"] == cluster.order()
    assert None is cluster.the("x").decayed


def test_nothing_is_kept_where_nothing_is_configured() -> None:
    """Shares alone decide, as ever."""
    cluster = Cluster(TWO, root="")
    cluster.use("x", 50, 0)

    assert (None, False) == (cluster.the("x").decayed, cluster.tree.root.weighs_use)
    assert ["y", "x"] == cluster.order()


class Reload(NamedTuple):
    """Other settings after a day of use of 80, and the means after it: at once, and a day later."""

    queues: str
    root: str
    at_once: float
    a_day_later: float


RELOADS: Final = {
    "to count all counts from now on": Reload(
        TWO, "properties: {fair.half-life: 24h, fair.count: all}", 40.0, 60.0
    ),
    "the same": Reload(TWO, MEMORY, 40.0, 60.0),
    "another half-life counts from now on": Reload(TWO, "properties: {fair.half-life: 12h}", 40.0, 70.0),
    "a guarantee counts from now on": Reload(
        "- {name: x, resources: {guaranteed: {memory: 60}}}\n- name: y", MEMORY, 40.0, 30.0
    ),
    "without a half-life what is in use counts": Reload(TWO, "", 80.0, 80.0),
}


@pytest.mark.parametrize("case", RELOADS.values(), ids=RELOADS)
def test_a_reload_keeps_what_was_used(case: Reload) -> None:
    """What changes counts from then on."""
    cluster = Cluster(TWO)
    cluster.use("x", 80, 0)
    cluster.clock.hours = 24

    cluster.tree.load(a_configuration(case.queues, root=case.root).root)

    assert (case.at_once, case.a_day_later) == (cluster.mean("x", 24), cluster.mean("x", 48))


def test_a_half_life_that_is_set_later_begins_without_a_past() -> None:
    """What runs then counts from then on."""
    cluster = Cluster(TWO, root="")
    cluster.use("x", 80, 0)
    cluster.clock.hours = 24

    cluster.tree.load(a_configuration(TWO, root=MEMORY).root)

    assert (0.0, 40.0) == (cluster.mean("x", 24), cluster.mean("x", 48))


def test_a_reload_that_is_taken_back_leaves_the_past_as_it_was() -> None:
    """Although the half-life was gone in between."""
    h = Harness(root="properties: {fair.half-life: 10s}")
    h.nodes("node")
    h.submit()
    h.ask_and_run("ask")
    h.advance(10)
    leaf = h.queue()
    before = mean_use(leaf, h.state.now_ns())

    savepoint = reconfigure(h.state, a_configuration())
    gone = leaf.decayed
    savepoint.restore(h.state)

    assert (None, before, True) == (gone, mean_use(leaf, h.state.now_ns()), h.queue("root").weighs_use)
    assert any(before.values())


DYNAMIC: Final = "- {name: users, parent: true}"


def test_a_dynamic_queue_that_is_made_again_has_its_past() -> None:
    """Nobody loses their past by waiting until their queue is removed."""
    cluster = Cluster(DYNAMIC)
    cluster.tree.create("root.users.ada")
    cluster.use("users.ada", 80, 0)
    cluster.use("users.ada", -80, 24)
    cluster.tree.clean()
    assert None is cluster.tree.find("root.users.ada")

    cluster.clock.hours = 48
    cluster.tree.create("root.users.ada")
    cluster.tree.create("root.users.bob")

    assert (20.0, 0.0) == (cluster.mean("users.ada", 48), cluster.mean("users.bob", 48))
    for name in ("ada", "bob"):
        cluster.wait(cluster.the(f"users.{name}"))
    assert ["bob", "ada"] == cluster.order()


def test_a_weight_of_a_template_counts() -> None:
    """All that are made from it are ordered by what they use above their guarantee."""
    cluster = Cluster(
        "- {name: users, parent: true, childtemplate: {properties: {fair.weight: '2'}}}", root=""
    )
    cluster.tree.create("root.users.ada")

    assert (True, 2) == (cluster.the("users").weighs_use, weight_of(cluster.the("users.ada")))


def test_little_is_kept_of_queues_that_are_gone() -> None:
    """Nothing of less than a unit; beyond so many the smallest are dropped first."""
    departed = DepartedUse(most=10)
    for number in range(12):
        use = raised_to(no_use(DAY, 0), {"memory": 2 * number}, 0)
        departed.keep(f"q{number}", use, DAY)

    assert 10 == len(departed)
    assert ["q0", "q1"] == [f"q{number}" for number in range(12) if departed.take(f"q{number}") is None]
