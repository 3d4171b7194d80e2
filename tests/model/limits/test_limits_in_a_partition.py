"""Limits of users and groups where the partition works with them: what asks them, and what does not."""

from __future__ import annotations

import pytest
from support.model.builders import FIVE, TEN, TWENTY, a_resource
from support.model.harness import Harness
from support.model.limit_builders import groups_shown

from licorne.model.resources.resource import EMPTY

HUNDRED = a_resource(memory=100)
BOB_HAS_TEN = "limits: [{limit: bob, users: [bob], maxresources: {memory: 10}}]"
DEV_HAS_TEN = "limits: [{limit: dev, groups: [dev], maxresources: {memory: 10}}]"


def limited(root: str = BOB_HAS_TEN, queues: str = "- name: leaf") -> Harness:
    """Return a partition with much room and an application of `bob`, who is in `dev`."""
    h = Harness(queues, root=root)
    h.nodes("one", capacity=HUNDRED)
    h.submit()
    return h


def group_usage(h: Harness) -> dict[str, object]:
    """Return what each group uses in the root and all below."""
    documents = groups_shown(h.state.limits)
    return {str(entry["groupName"]): entry["queues"] for entry in documents}


# --------------------------------------------------------------------------------- what is not refused


def test_an_existing_allocation_beyond_a_limit_is_taken_over() -> None:
    """It runs, and counts: nothing more is placed."""
    h = limited()

    h.ask("old", node_id="one", resource=TWENTY)
    h.ask_and_run("new")

    assert ({"old": "one"}, TWENTY) == (h.placements, h.user_usage())


def test_a_waiting_ask_that_the_rm_places_is_beyond_no_limit() -> None:
    """What the RM has decided has happened."""
    h = limited()
    h.ask_and_run("a", resource=TWENTY)

    h.ask("a", node_id="one", resource=TWENTY)

    assert ({"a": "one"}, TWENTY) == (h.placements, h.user_usage())


def test_an_allocation_may_be_resized_beyond_a_limit() -> None:
    """The user then has no room until something ends."""
    h = limited()
    h.ask_and_run("a")

    h.ask("a", resource=TWENTY)
    h.ask_and_run("b", resource=FIVE)

    assert (["a"], TWENTY) == (list(h.placements), h.user_usage())


# ------------------------------------------------------------------------------------- what is refused


def test_a_limit_stops_what_does_not_fit_under_it() -> None:
    """Smaller asks of the same application go on."""
    h = limited()
    h.ask("large", resource=TWENTY)
    h.ask("small", resource=FIVE)

    h.run_until_idle()

    assert ["small"] == list(h.placements)


def test_what_ends_makes_room_under_a_limit() -> None:
    """At once, and for another application of the user."""
    h = limited()
    h.ask_and_run("a")
    h.submit("next")
    h.ask_and_run("b", application_id="next")

    h.release("a")
    h.run_until_idle()

    assert (["a", "b"], TEN) == (list(h.placements), h.user_usage())


def test_a_type_that_no_limit_names_is_free() -> None:
    """The limit is about memory."""
    h = limited()
    h.nodes("two", capacity=a_resource(memory=10, vcore=99))

    h.ask_and_run("a", resource=a_resource(memory=1, vcore=99))

    assert ["a"] == list(h.placements)


def test_a_limit_of_nothing_but_zeros_limits_nothing() -> None:
    """The check of the configuration refuses it; with another limit beside it passes."""
    h = limited(
        "limits: [{limit: bob, users: [bob], maxresources: {memory: 10, vcore: 0}}]",
    )

    h.ask_and_run("a", resource=a_resource(memory=1))

    assert ["a"] == list(h.placements)


@pytest.mark.parametrize("limited_at", ["root", "root.p", "root.p.leaf"])
def test_a_limit_at_any_level_stops_a_user(limited_at: str) -> None:
    """Each level above the application counts."""
    level = {path: BOB_HAS_TEN if path == limited_at else "" for path in ("root", "root.p", "root.p.leaf")}
    h = Harness(
        f"""
        - name: p
          {level["root.p"]}
          queues:
            - name: leaf
              {level["root.p.leaf"]}
        """,
        root=level["root"],
    )
    h.nodes("one", capacity=HUNDRED)
    h.submit(queue_name="root.p.leaf")
    h.ask("a", "b")

    h.run_until_idle()

    assert ["a"] == list(h.placements)


def test_users_of_a_group_share_its_limit() -> None:
    """What one has, the other cannot get."""
    h = limited(DEV_HAS_TEN)
    h.ask("a")
    h.submit("other", user="eve")
    h.ask("b", application_id="other")

    h.run_until_idle()

    assert ["a"] == list(h.placements)


def test_the_group_that_a_lookup_found_counts_like_one_that_was_named() -> None:
    """Who has no groups is in that of the own name."""
    h = limited(DEV_HAS_TEN)
    h.submit("own", user="dev", groups=())
    h.ask("a", "b", application_id="own")

    h.run_until_idle()

    assert ["a"] == list(h.placements)


def test_a_group_runs_so_many_applications_at_most() -> None:
    """The next one starts when the first has gone; users of other groups are not concerned."""
    h = limited("limits: [{limit: dev, groups: [dev], maxapplications: 1}]")
    h.ask("a")
    h.submit("second", user="eve")
    h.ask("b", application_id="second")
    h.submit("free", user="joe", groups=("ops",))
    h.ask_and_run("c", application_id="free")
    before = set(h.placements)

    h.withdraw("app")
    h.run_until_idle()

    assert ({"a", "c"}, {"a", "b", "c"}) == (before, set(h.placements))


def test_an_application_that_runs_may_go_on_though_its_number_is_lowered() -> None:
    """The number is asked of applications that start."""
    h = limited("")
    h.ask("a")
    h.submit("second")
    h.ask_and_run("b", application_id="second")

    h.reload("- name: leaf", root="limits: [{limit: bob, users: [bob], maxapplications: 1}]")
    h.ask("more-a")
    h.ask_and_run("more-b", application_id="second")

    assert {"a", "b", "more-a", "more-b"} == set(h.placements)


def test_an_application_without_allocations_goes_on_counting_while_it_waits() -> None:
    """It counts from its first allocation until nothing of it is left, and not only while it has one."""
    h = limited("limits: [{limit: bob, users: [bob], maxapplications: 1}]")
    h.ask_and_run("a")
    h.ask("too large", resource=a_resource(memory=1000))
    h.submit("second")
    h.ask("b", application_id="second")
    h.release("a")
    h.run_until_idle()
    while_it_waits = list(h.placements)

    h.release("too large")
    h.withdraw("app")
    h.run_until_idle()

    assert (["a"], ["a", "b"]) == (while_it_waits, list(h.placements))


@pytest.mark.parametrize("limit", ["users: [bob]", "groups: [dev]"])
@pytest.mark.parametrize(
    "released", [["waits", "a"], ["a", "waits"], [""]], ids=["allocation last", "ask last", "all at once"]
)
def test_an_application_that_completes_gives_its_place_back_at_once(released: list[str], limit: str) -> None:
    """Whatever it ended with: the next one does not wait until it is Completed."""
    h = limited(f"limits: [{{limit: one, {limit}, maxapplications: 1}}]", "- name: leaf\n- name: other")
    h.ask_and_run("a")
    h.ask("waits", resource=a_resource(memory=1000))
    h.submit("second", "root.other")
    h.ask_and_run("b", application_id="second")
    assert ["a"] == list(h.placements)

    h.release(*released)
    h.run_until_idle()

    assert ("Completing", ["a", "b"]) == (h.states()[-1], list(h.placements))


def test_a_gang_that_completes_without_having_run_gives_its_place_back_at_once() -> None:
    """Its placeholders counted; with the last of its asks nothing of it is left."""
    h = limited("limits: [{limit: bob, users: [bob], maxapplications: 1}]")
    h.submit("gang", placeholder_ask=TWENTY)
    h.ask_and_run("holder", application_id="gang", task_group_name="g", placeholder=True)
    h.ask("waits", application_id="gang", resource=a_resource(memory=1000))
    h.ask("a")
    h.release("holder", "waits", application_id="gang")
    h.run_until_idle()

    assert ("Completing", {"holder", "a"}) == (h.states("gang")[-1], set(h.placements))


# ------------------------------------------------------------------------------------ which group counts


def test_the_order_of_the_file_decides_which_group_counts() -> None:
    """Not the order in which the RM names the groups."""
    h = Harness(root="limits: [{limit: both, groups: [ops, dev], maxresources: {memory: 10}}]")
    h.nodes("one", capacity=HUNDRED)
    h.submit(groups=("dev", "ops"))
    h.ask("a")

    h.run_until_idle()

    assert {"ops": TEN, "dev": EMPTY} == {name: h.state.limits._groups[name].usage for name in ("ops", "dev")}


def test_a_group_is_decided_once() -> None:
    """A limit that comes later, nearer to the application, does not draw it in."""
    h = limited(DEV_HAS_TEN)
    h.ask_and_run("a")

    nearer = "- {name: leaf, limits: [{limit: ops, groups: [dev2, dev], maxresources: {memory: 10}}]}"
    h.reload(nearer, root=DEV_HAS_TEN)
    h.ask_and_run("b")

    assert ["a"] == list(h.placements)
    assert {"dev", "dev2"} == set(group_usage(h))


def test_all_who_are_in_no_named_group_share_the_wildcard_group() -> None:
    """Together they have what it has; who is in a named group has that group's."""
    limits = (
        "limits: [{limit: dev, groups: [dev], maxresources: {memory: 10}},"
        " {limit: others, groups: ['*'], maxresources: {memory: 10}}]"
    )
    h = limited(limits)
    h.ask("dev-1")
    for name in ("eve", "joe"):
        h.submit(name, user=name, groups=(name,))
        h.ask(name, application_id=name)

    h.run_until_idle()

    assert ["dev-1", "eve"] == list(h.placements)


def test_limits_of_a_queue_with_capitals_count() -> None:
    """Paths are lower case; the recorded core never found these limits."""
    h = Harness("- {name: Leaf, " + BOB_HAS_TEN + "}")
    h.nodes("one", capacity=HUNDRED)
    h.submit(queue_name="root.Leaf")
    h.ask("a", "b")

    h.run_until_idle()

    assert ["a"] == list(h.placements)


# -------------------------------------------------------------------------------- what is beyond limits


def test_a_member_takes_its_placeholders_place_beyond_the_limit_of_its_user() -> None:
    """What the placeholder used is given back for it."""
    h = limited()
    h.submit("gang", placeholder_ask=TEN)
    h.ask_and_run("holder", application_id="gang", task_group_name="g", placeholder=True)
    h.ask_and_run("member", application_id="gang", task_group_name="g")
    h.confirm()

    assert ("one", TEN) == (h.placements.get("member"), h.user_usage())


def test_an_application_that_only_asks_does_not_count_for_its_user() -> None:
    """Another one may start before it, and then bars it."""
    h = limited("limits: [{limit: bob, users: [bob], maxapplications: 1}]")
    h.submit("second")
    h.ask("huge", resource=a_resource(memory=150))
    h.ask_and_run("b", application_id="second")
    h.ask_and_run("a")

    assert ["b"] == list(h.placements)


def test_a_limit_bars_what_must_run_on_one_node_as_well() -> None:
    """An ask beyond it neither runs, nor reserves its node."""
    h = limited()
    h.ask_and_run("daemon", required_node="one", resource=a_resource(memory=11))

    assert ({}, ()) == (h.placements, h.node("one").reservations)
