"""The users of a leaf in order: `application.sort.policy: users`."""

from __future__ import annotations

import random
from typing import Final, NamedTuple

import pytest
from support.model.builders import a_configuration, a_resource, an_application, the
from support.model.entries import facts_of
from support.model.harness import Harness

from licorne.model.queues.application_entry import ApplicationEntry
from licorne.model.queues.queue import Queue
from licorne.model.queues.quota import ranked_leaves
from licorne.model.queues.tree import QueueTree
from licorne.model.queues.users import LeafUsers
from licorne.model.queues.waiting import RestKind
from licorne.model.requests.reconfiguring import reconfigure
from licorne.model.resources.resource import EMPTY, Resource
from licorne.model.values.messages import User

HOUR: Final = 3600 * 10**9
ORDERED: Final = "application.sort.policy: users, fair.half-life: 24h"
HISTORIES: Final = 300


def a_leaf(*limits: str, properties: str = ORDERED, name: str = "leaf") -> str:
    """Return the configuration of a leaf with limits."""
    return f"- {{name: {name}, properties: {{{properties}}}, limits: [{', '.join(limits)}]}}"


def weighing(user: str, weight: int) -> str:
    return f"{{limit: '', users: ['{user}'], weight: {weight}}}"


def memory(quantity: int) -> Resource:
    return a_resource(memory=quantity) if quantity else EMPTY


class Cluster:
    """Leaves in a cluster of a hundred, with applications of users, each of which has something waiting."""

    def __init__(self, queues: str = a_leaf(), root: str = "") -> None:
        self.hours = 0.0
        config = a_configuration(queues, root=root).root
        self.tree = QueueTree(config, now_ns=lambda: round(self.hours * HOUR))
        self.tree.root.set_maximum_from_nodes(memory(100))
        self.tree.limits_changed()
        self.entries: dict[str, ApplicationEntry] = {}

    def the(self, path: str = "leaf") -> Queue:
        return the(self.tree, f"root.{path}")

    def users(self, path: str = "leaf") -> LeafUsers:
        users = self.the(path).entries.users
        assert users is not None, f"{path} does not order its users"
        return users

    def come(self, *names: str, path: str = "leaf", priority: int = 0) -> None:
        """Have applications come whose users are the letters of their names, the first ones earlier."""
        for name in names:
            user = User(name.rstrip("0123456789"), ())
            facts = facts_of(pending=memory(1), priority=priority, age=1_000 - len(self.entries))
            leaf = self.the(path)
            entry = ApplicationEntry(an_application(name, user=user), name, user, leaf, facts)
            self.entries[name] = entry
            leaf.entries.add(entry)
            leaf.entries.refresh(entry)
            for level in leaf.above:
                level.add_pending(memory(1))
            self.tree.refresh(leaf)

    def use(self, name: str, quantity: int, hours: float | None = None) -> None:
        """Have an application use so much from some hour on."""
        self.hours = self.hours if hours is None else hours
        entry = self.entries[name]
        facts = entry.facts
        entry.facts = facts_of(pending=facts.pending, allocated=memory(quantity), priority=facts.max_priority)
        entry.facts.submitted_at_ns = facts.submitted_at_ns
        entry.queue.entries.refresh(entry)

    def go(self, *names: str, hours: float | None = None) -> None:
        """Have applications end."""
        self.hours = self.hours if hours is None else hours
        for name in names:
            entry = self.entries.pop(name)
            entry.queue.entries.remove(entry)

    def order(self, hours: float | None = None, path: str = "leaf") -> list[str]:
        """Return the applications in order at some hour, as explanations, walks and passes have them."""
        self.hours = self.hours if hours is None else hours
        leaf = self.the(path)
        explained = [entry.application_id for entry in leaf.entries.ranked(leaf)]
        walked = [entry.application_id for entry in leaf.entries]
        assert walked == explained == [e.application_id for e in leaf.entries.in_order(leaf.entries.by_id)]
        return walked

    def mean(self, user: str, hours: float, path: str = "leaf") -> float:
        return self.users(path).seen(user).mean(round(hours * HOUR)).get("memory", 0.0)


def test_the_user_who_has_used_less_goes_first() -> None:
    """With all applications, in the order of their submission."""
    cluster = Cluster()
    cluster.come("ada1", "bob1", "ada2", "bob2")
    cluster.use("ada1", 50, 0)
    cluster.use("ada1", 0, 10)

    assert ["bob1", "bob2", "ada1", "ada2"] == cluster.order() == cluster.order(500)


def test_without_a_half_life_what_is_in_use_counts() -> None:
    """What was used before does not."""
    cluster = Cluster(a_leaf(properties="application.sort.policy: users"))
    cluster.come("ada1", "bob1", "ada2")
    cluster.use("ada1", 90, 0)
    cluster.use("ada1", 10, 24)
    cluster.use("bob1", 20)

    assert ["ada1", "ada2", "bob1"] == cluster.order()
    assert None is cluster.users().places["ada"].decayed


WEIGHTS: Final = {
    "twice the weight": ((weighing("ada", 2),), ["ada1", "bob1"]),
    "one of the wildcard counts for all others": ((weighing("bob", 1), weighing("*", 3)), ["ada1", "bob1"]),
    "one's own comes before that of the wildcard": (
        (weighing("ada", 1), weighing("*", 3)),
        ["bob1", "ada1"],
    ),
    "equal weights": ((), ["bob1", "ada1"]),
}


@pytest.mark.parametrize("case", WEIGHTS.values(), ids=WEIGHTS)
def test_what_is_used_is_divided_by_the_weight(case: tuple[tuple[str, ...], list[str]]) -> None:
    """Ada uses 30, bob 20."""
    limits, expected = case
    cluster = Cluster(a_leaf(*limits))
    cluster.come("ada1", "bob1")
    cluster.use("ada1", 30, 0)
    cluster.use("bob1", 20)

    assert expected == cluster.order(24)


def test_priorities_come_first() -> None:
    """Where the leaf sorts by them; then users, then their submission."""
    cluster = Cluster()
    cluster.come("ada1", "bob1")
    cluster.come("ada2", "bob2", priority=5)
    cluster.use("ada1", 30, 0)

    assert ["bob2", "ada2", "bob1", "ada1"] == cluster.order(24)


def test_users_come_first_where_priorities_are_off() -> None:
    """And within a user the submission."""
    cluster = Cluster(a_leaf(properties=f"{ORDERED}, application.sort.priority: disabled"))
    cluster.come("ada1", "bob1")
    cluster.come("ada2", "bob2", priority=5)
    cluster.use("ada1", 30, 0)

    assert ["bob1", "bob2", "ada1", "ada2"] == cluster.order(24)


class Level(NamedTuple):
    """The weights of ada and of bob, and the hour at which they are level."""

    ada: int
    bob: int
    hours: float


LEVELS: Final = {
    "equal weights": Level(1, 1, 55.7263),
    "bob has twice the weight": Level(1, 2, 38.0391),
    "ada has twice the weight": Level(2, 1, 76.0782),
}


@pytest.mark.parametrize("case", LEVELS.values(), ids=LEVELS)
def test_an_order_changes_with_time_alone(case: Level) -> None:
    """Ada uses 10 from the beginning on, bob used 40 for a day; nothing else happens."""
    cluster = Cluster(a_leaf(weighing("ada", case.ada), weighing("bob", case.bob)))
    cluster.come("ada1", "bob1")
    cluster.use("ada1", 10, 0)
    cluster.use("bob1", 40, 0)
    cluster.use("bob1", 0, 24)

    assert ["ada1", "bob1"] == cluster.order(case.hours - 0.001)
    assert ["bob1", "ada1"] == cluster.order(case.hours + 0.001)


class Turns(NamedTuple):
    """The weights of two users, who has the cluster in the first hours, and the hours of each in ten days."""

    weights: tuple[int, int]
    begin: str
    hours: tuple[int, int]


TURNS: Final = {
    "two alike": Turns((1, 1), "abababab", (120, 120)),
    "2 to 1": Turns((2, 1), "ababaabaabaa", (159, 81)),
    "3 to 1": Turns((3, 1), "abaabaaabaaab", (178, 62)),
}


@pytest.mark.parametrize("case", TURNS.values(), ids=TURNS)
def test_users_who_need_the_whole_cluster_take_turns_by_weight(case: Turns) -> None:
    """Jobs of an hour, each an application of its own, which is gone at its end."""
    cluster = Cluster(a_leaf(weighing("a", case.weights[0]), weighing("b", case.weights[1])))
    turns = ""
    cluster.come("a0", "b0")
    for hour in range(240):
        first = cluster.order(hour)[0]
        turns += first[0]
        cluster.use(first, 100)
        cluster.go(first, hours=hour + 1)
        cluster.come(f"{first[0]}{hour + 1}")

    assert case.begin == turns[: len(case.begin)]
    assert case.hours == (turns.count("a"), turns.count("b"))


def test_one_long_job_counts_as_many_short_ones() -> None:
    """To the last bit: 100 for 48 hours, as two applications or as 48 of an hour each."""
    cluster = Cluster()
    cluster.come("ada1", "ada2", "bob0")
    cluster.use("ada1", 60, 0)
    cluster.use("ada2", 40, 0)
    for hour in range(48):
        cluster.hours = hour
        cluster.come(f"bob{hour + 1}")
        cluster.use(f"bob{hour + 1}", 100)
        cluster.go(f"bob{hour + 1}", hours=hour + 1)
    cluster.use("ada1", 0)
    cluster.use("ada2", 0)

    assert cluster.users().places["ada"].decayed == cluster.users().places["bob"].decayed
    assert [75.0, 37.5, 18.75] == [cluster.mean("bob", hours) for hours in (48, 72, 96)]


def test_all_users_of_one_account_go_before_all_of_another() -> None:
    """Weights of 40 to 60 with 100 to 300 used, although 90 of the 100 were one user's."""
    lines = [
        a_leaf(name="heavy", properties=f"{ORDERED}, fair.weight: '60'"),
        a_leaf(name="light", properties=f"{ORDERED}, fair.weight: '40'"),
    ]
    cluster = Cluster("\n".join(lines), root="properties: {fair.half-life: 24h}")
    cluster.come("eve1", "fay1", path="heavy")
    cluster.come("ada1", "bob1", path="light")
    for name, used in (("eve1", 30), ("ada1", 9), ("bob1", 1)):
        leaf = cluster.entries[name].queue
        for level in leaf.above:
            level.charge(memory(used))
        cluster.use(name, used, 0)

    cluster.hours = 24
    leaves = [leaf.name for leaf in ranked_leaves(cluster.tree)]

    assert ["light", "heavy"] == leaves
    assert ["bob1", "ada1", "fay1", "eve1"] == [name for leaf in leaves for name in cluster.order(path=leaf)]


def test_a_change_moves_the_user_alone() -> None:
    """Their applications keep their own places, also those that rest."""
    cluster = Cluster()
    cluster.come(*(f"{user}{number}" for number in range(20) for user in ("ada", "bob", "cyd")))
    waiting = cluster.the().entries.waiting
    for name in ("ada3", "bob4", "ada0"):
        waiting.rest(cluster.entries[name], RestKind((memory(1),), may_reserve=False), None)
    places = {name: entry.order for name, entry in cluster.entries.items()}

    cluster.use("ada7", 10, 0)

    of_bob, of_cyd, of_ada = ([f"{user}{n}" for n in range(20)] for user in ("bob", "cyd", "ada"))
    assert [*of_bob, *of_cyd, *of_ada] == cluster.order(24)
    assert all(entry.order is places[name] for name, entry in cluster.entries.items())
    assert "bob0" == cluster.the().entries.waiting.first_to_place((), (0, 0), 0).application_id  # type: ignore[union-attr]


def test_a_user_who_comes_again_has_their_past() -> None:
    """Although they had no application meanwhile; someone new has none."""
    cluster = Cluster()
    cluster.come("ada1")
    cluster.use("ada1", 80, 0)
    cluster.go("ada1", hours=24)
    assert {} == cluster.users().places

    cluster.hours = 48
    seen = cluster.mean("ada", 48)
    cluster.come("ada2", "bob1")

    assert (20.0, 20.0, 0.0) == (seen, cluster.mean("ada", 48), cluster.mean("bob", 48))
    assert ["bob1", "ada2"] == cluster.order()


def test_the_past_of_users_outlives_their_dynamic_leaf() -> None:
    """What is kept belongs to the partition."""
    template = f"childtemplate: {{properties: {{{ORDERED}}}}}"
    cluster = Cluster(f"- {{name: teams, parent: true, {template}}}")
    cluster.tree.create("root.teams.red")
    cluster.come("ada1", path="teams.red")
    cluster.use("ada1", 80, 0)
    cluster.go("ada1", hours=24)
    cluster.tree.clean()
    assert None is cluster.tree.find("root.teams.red")

    cluster.tree.create("root.teams.red")
    cluster.come("ada2", path="teams.red")

    assert 40.0 == cluster.mean("ada", 24, path="teams.red")


def test_what_a_preview_of_a_leaf_sees_stays_as_it_is() -> None:
    """A dry run for a leaf that does not exist changes nothing."""
    cluster = Cluster(f"- {{name: teams, parent: true, childtemplate: {{properties: {{{ORDERED}}}}}}}")
    leaf = cluster.tree.preview("root.teams.red")
    assert isinstance(leaf, Queue)
    user = User("ada", ())
    entry = ApplicationEntry(an_application("new"), "new", user, leaf, facts_of(pending=memory(1)))

    assert [entry] == list(leaf.entries.ranked(leaf, entry))
    assert leaf.entries.users is not None
    assert {} == leaf.entries.users.places


class Reload(NamedTuple):
    """Other properties after a day of use of 80, and the means after it: at once, and a day later."""

    properties: str
    at_once: float
    a_day_later: float


USERS: Final = "application.sort.policy: users"
RELOADS: Final = {
    "the same": Reload(ORDERED, 40.0, 60.0),
    "another half-life counts from now on": Reload(f"{USERS}, fair.half-life: 12h", 40.0, 70.0),
    "without a half-life what is in use counts": Reload(USERS, 80.0, 80.0),
}


@pytest.mark.parametrize("case", RELOADS.values(), ids=RELOADS)
def test_a_reload_keeps_what_was_used(case: Reload) -> None:
    """What changes counts from then on."""
    cluster = Cluster()
    cluster.come("ada1", "bob1")
    cluster.use("ada1", 80, 0)
    cluster.hours = 24

    cluster.tree.load(a_configuration(a_leaf(properties=case.properties)).root)

    assert (case.at_once, case.a_day_later) == (cluster.mean("ada", 24), cluster.mean("ada", 48))
    assert ["bob1", "ada1"] == cluster.order()


def test_a_policy_that_is_set_later_begins_without_a_past() -> None:
    """What is in use then counts from then on, and one that is taken away leaves the order of submission."""
    cluster = Cluster("- name: leaf")
    cluster.come("ada1", "bob1")
    cluster.use("ada1", 80, 0)
    before = cluster.order(24)

    cluster.tree.load(a_configuration(a_leaf()).root)
    means = (cluster.mean("ada", 24), cluster.mean("ada", 48))
    meanwhile = cluster.order(48)
    cluster.tree.load(a_configuration("- name: leaf").root)

    assert (0.0, 40.0) == means
    assert (["ada1", "bob1"], ["bob1", "ada1"], before) == (before, meanwhile, cluster.order())


def test_a_reload_that_is_taken_back_leaves_the_past_as_it_was() -> None:
    """Although the policy was gone in between."""
    properties = "application.sort.policy: users, fair.half-life: 10s"
    h = Harness(a_leaf(weighing("bob", 2), properties=properties))
    h.nodes("node")
    h.submit()
    h.ask_and_run("ask")
    h.advance(10)
    leaf = h.queue()
    assert leaf.entries.users is not None
    before = leaf.entries.users.seen("bob").mean(h.state.now_ns())

    savepoint = reconfigure(h.state, a_configuration())
    assert None is h.queue().entries.users
    savepoint.restore(h.state)

    restored = leaf.entries.users
    assert restored is not None
    assert (before, 2) == (restored.seen("bob").mean(h.state.now_ns()), restored.weight_of("bob"))
    assert any(before.values())


def test_what_a_partition_places_and_ends_counts() -> None:
    """From the moment of the placement on, to its end."""
    h = Harness(a_leaf(properties="application.sort.policy: users, fair.half-life: 10s"))
    h.nodes("node")
    h.submit(user="ada")
    h.ask_and_run("ask", resource=a_resource(memory=8))
    h.advance(10)
    users = h.queue().entries.users
    assert users is not None
    half = users.seen("ada").mean(h.state.now_ns())
    h.release("ask")
    h.advance(10)

    assert ({"memory": 4.0}, {"memory": 2.0}) == (half, users.seen("ada").mean(h.state.now_ns()))


def test_a_gang_needs_a_leaf_in_the_order_of_submission() -> None:
    """Two gangs that take turns may hold half each."""
    h = Harness(a_leaf())
    refused = h.submit(placeholder_ask=a_resource(memory=2))

    assert refused is not None
    assert "unsupported sort type" in refused.reason


def test_the_means_of_users_are_those_of_the_closed_form() -> None:
    """Over random histories of applications that come, use, and go, some users without any meanwhile."""
    rng = random.Random(37)  # noqa: S311 - dice, no secret
    for _ in range(HISTORIES):
        half_life = rng.choice([1, 24, 168])
        cluster = Cluster(a_leaf(properties=f"{USERS}, fair.half-life: {half_life}h"))
        held: dict[str, list[tuple[float, float, int]]] = {"ada": [], "bob": [], "cyd": []}
        now = 0.0
        for number in range(rng.randint(1, 12)):
            user = rng.choice([*held])
            begin = now + rng.random() * half_life
            amount, now = rng.randint(1, 10**6), begin + rng.random() * 3 * half_life
            cluster.hours = begin
            cluster.come(f"{user}{number}")
            cluster.use(f"{user}{number}", amount)
            if rng.random() < 0.7:
                cluster.go(f"{user}{number}", hours=now)
            held[user].append((begin, now if f"{user}{number}" not in cluster.entries else 1e9, amount))
        now += rng.random() * half_life
        for user, history in held.items():
            expected = sum(
                amount * (2 ** ((min(end, now) - now) / half_life) - 2 ** ((begin - now) / half_life))
                for begin, end, amount in history
            )

            assert expected == pytest.approx(cluster.mean(user, now), rel=1e-6, abs=1e-6)
        ranked = sorted(
            (
                cluster.mean(name.rstrip("0123456789"), now),
                name.rstrip("0123456789"),
                int(name.lstrip("abcdoy")),
            )
            for name in cluster.entries
        )

        assert [f"{user}{number}" for _, user, number in ranked] == cluster.order(now)


def test_users_take_turns_within_one_moment() -> None:
    """What is placed has no mean yet: of equal means the smaller use of now goes first."""
    cluster = Cluster()
    cluster.come("ada1", "bob1")
    cluster.use("ada1", 10, 0)
    first = cluster.order()
    cluster.use("bob1", 20)

    assert (["bob1", "ada1"], ["ada1", "bob1"]) == (first, cluster.order())
