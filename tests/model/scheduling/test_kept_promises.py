"""Backfilling with a promise for each job: what keeps the promises, what moves them and what ends them."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from support.model.builders import FakePredicates, a_resource, an_application_submission, an_ask_submission
from support.model.harness import Harness
from support.model.planned_days import is_placed, planned_start_of, send

from licorne.model.explanation.dry_run import dry_run_application
from licorne.model.explanation.explain import explain
from licorne.model.explanation.planned_starts import PlannedStart
from licorne.model.planning import kept_plan
from licorne.model.values.messages import NodeAction

SECOND_NS = 1_000_000_000
ROOT = 'properties: {backfill.reservations: "all"}'


def a_pool(*capacities: int, root: str = ROOT, predicates: FakePredicates | None = None) -> Harness:
    """Return a partition with nodes `n1`, `n2` and so on, and one leaf."""
    harness = Harness(root=root, predicates=predicates)
    for number, capacity in enumerate(capacities, 1):
        harness.nodes(f"n{number}", capacity=a_resource(vcore=capacity * 1000))
    return harness


def submit(harness: Harness, name: str, size: int, walltime: int | None, *, priority: int = 0) -> None:
    """Submit a job, whose walltime is in seconds, and run cycles."""
    text = "" if walltime is None else f"{walltime}s"
    send(harness, name, "root.leaf", "eve", size=size, walltime=text, priority=priority)


def starts(harness: Harness, *names: str) -> list[int | str]:
    """Return in how many seconds jobs are to start, 0 for one that runs; a reason if that is not known."""
    return [_start(harness, name) for name in names]


def _start(harness: Harness, name: str) -> int | str:
    if is_placed(harness, name):
        return 0
    planned = planned_start_of(harness, name)
    assert planned is not None
    if planned.start_ns is None:
        return planned.reason
    assert planned.is_promised
    return (planned.start_ns - harness.clock.now_ns()) // SECOND_NS


def three_waiting(*capacities: int, predicates: FakePredicates | None = None) -> Harness:
    """Return a pool on which `a` has seven for 10 s, while `b`, `c` and `d` wait or run beside it."""
    harness = a_pool(*(capacities or (10,)), predicates=predicates)
    submit(harness, "a", 7, 10)
    submit(harness, "b", 5, 20)
    submit(harness, "c", 5, 10)
    submit(harness, "d", 2, 11)
    return harness


def test_a_job_that_has_room_waits_for_the_promises_of_all_before_it() -> None:
    """The first two start together, and the third would delay one of them."""
    assert [10, 10, 20] == starts(three_waiting(), "b", "c", "d")


def test_an_explanation_names_the_promise_that_a_job_would_delay() -> None:
    """It is the one of the second job: the first one still has room."""
    explanation = explain(three_waiting().state, "d")
    assert explanation is not None
    (blocker,) = explanation.waiting[0].blockers
    expected = (
        "c",
        "it would end in 11s, 1s after c is to get n1 in 10s",
        "a walltime of at most 10s instead of 11s",
    )
    assert expected == (blocker.subject, blocker.detail, blocker.change)


def test_who_comes_first_is_planned_before_the_others() -> None:
    """A job with a higher priority takes the first moment; who does not fit beside it moves."""
    harness = three_waiting()
    submit(harness, "urgent", 8, 5, priority=9)
    assert [10, 15, 15, 0] == starts(harness, "urgent", "b", "c", "d")


def test_who_is_withdrawn_lets_the_others_move_up() -> None:
    """As if it had ended before its time."""
    harness = three_waiting()
    harness.withdraw("c")
    harness.run_until_idle()
    assert [10, 0] == starts(harness, "b", "d")


def test_a_node_that_goes_moves_the_promises_that_it_had() -> None:
    """The others are kept."""
    harness = three_waiting(10, 6)
    assert [0, 10, 0] == starts(harness, "b", "c", "d")
    harness.update_node("n1", NodeAction.DRAIN_NODE)
    harness.run_until_idle()
    assert [20] == starts(harness, "c")


def test_a_node_that_comes_is_used_at_once() -> None:
    """Nothing waits for a promise that can be better."""
    harness = three_waiting()
    harness.nodes("n2", capacity=a_resource(vcore=12_000))
    harness.run_until_idle()
    assert [0, 0, 0] == starts(harness, "b", "c", "d")


def test_work_that_does_not_end_moves_the_promises_until_it_ends() -> None:
    """It is expected a minute later; when it ends before, all move up."""
    harness = three_waiting()
    harness.partition.schedule_wakeups()
    harness.wait(10)
    moved = starts(harness, "b", "c", "d")
    harness.advance(3)
    harness.release("a", application_id="a")
    harness.run_until_idle()
    assert ([60, 60, 0], [0, 8]) == (moved, starts(harness, "b", "c"))


def test_promises_are_kept_over_a_reload() -> None:
    """What a later configuration says elsewhere is no reason to plan anew."""
    harness = three_waiting()
    kept = harness.state.ends.kept["root"].by_key
    harness.reload("- name: leaf\n- name: other", root=ROOT)
    harness.run_until_idle()
    assert kept == harness.state.ends.kept["root"].by_key


def test_promises_end_with_the_setting() -> None:
    """A queue that promises one job alone keeps nothing."""
    harness = three_waiting()
    harness.reload("- name: leaf", root=ROOT.replace("all", "1"))
    harness.run_until_idle()
    assert ({}, True) == (harness.state.ends.kept, is_placed(harness, "d"))


def test_a_job_whose_nodes_the_manager_refuses_holds_no_room() -> None:
    """Others are planned as if it were not there."""
    predicates = FakePredicates(refused={("b", "n1"): "taint"})
    harness = a_pool(10, predicates=predicates)
    submit(harness, "b", 8, 20)
    submit(harness, "c", 5, 10)
    assert (False, True) == (is_placed(harness, "b"), is_placed(harness, "c"))


def test_a_job_without_a_walltime_starts_where_it_may_stay_for_ever() -> None:
    """It leaves all promises as they are, also those to come to none."""
    harness = a_pool(10)
    submit(harness, "a", 6, 10)
    submit(harness, "b", 6, 10)
    submit(harness, "small", 4, None)
    submit(harness, "large", 5, None)
    submit(harness, "behind", 10, 10)
    expected = [10, 0, 20, "2 allocations on its nodes have no walltime"]
    harness.run_until_idle()
    assert expected[:3] == starts(harness, "b", "small", "large")
    assert ["1 allocation on its nodes has no walltime"] == starts(harness, "behind")


def test_a_new_ask_is_promised_a_start_behind_all_that_waits() -> None:
    """A dry run says when, and nothing is kept of it."""
    harness = three_waiting()
    submission = an_ask_submission("new", "new", resource=a_resource(vcore=9_000), tags={"walltime": "5s"})
    run = dry_run_application(harness.state, an_application_submission("new"), submission)
    assert run.ask is not None
    planned = run.ask.planned_start
    at_ns = harness.clock.now_ns() + 31 * SECOND_NS
    assert PlannedStart(start_ns=at_ns, node_id="n1", is_promised=True, passes_left=3) == planned
    assert "new" not in harness.state.ends.kept["root"].by_key


def test_so_many_jobs_have_a_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those behind wait until they are among the first, and say so."""
    monkeypatch.setattr(kept_plan, "PROMISES_MAX", 2)
    monkeypatch.setattr(kept_plan, "_FEW", 2)
    harness = three_waiting()
    assert [10, 10, "1000 jobs or more wait before it"] == starts(harness, "b", "c", "d")
    harness.withdraw("b")
    harness.run_until_idle()
    assert [10, 0] == starts(harness, "c", "d")


def test_a_gang_with_a_member_that_needs_its_node_starts_beside_the_promises() -> None:
    """It is promised nothing, and delays nothing."""
    harness = three_waiting()
    for name, walltime in (("long", "11s"), ("short", "10s")):
        harness.submit(name, tags={"gangSize": "2", "walltime": walltime})
        for key, node_id in ((f"{name}-1", "n1"), (f"{name}-2", "")):
            size = a_resource(vcore=1_000)
            harness.ask(key, application_id=name, resource=size, required_node=node_id)
    harness.run_until_idle()
    assert (False, True) == (is_placed(harness, "long"), is_placed(harness, "short"))


def many(
    harness: Harness, count: int, *, application: str = "array", leaf: str = "root.leaf", **ask: int
) -> None:
    """Ask for many of one core each, or another size, by one user."""
    harness.submit(application, leaf, user="eve")
    for number in range(count):
        harness.ask(
            f"{application}-{number:02}",
            application_id=application,
            resource=a_resource(vcore=ask.get("vcore", 1000)),
            tags={"walltime": "10s"},
        )
    harness.run_until_idle()


@pytest.mark.parametrize("leaf", ["root.leaf", "root.other"])
@pytest.mark.parametrize(
    "queues",
    [
        "- name: leaf\n- name: other",
        "- name: leaf\n  limits: [{limit: all, users: [eve], maxresources: {vcore: 1}}]\n- name: other",
    ],
    ids=["nodes", "a limit"],
)
def test_jobs_that_can_be_planned_nowhere_take_no_places(
    queues: str, leaf: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither where nodes are too small nor under a limit; who comes behind them is planned and starts."""
    monkeypatch.setattr(kept_plan, "PROMISES_MAX", 2)
    monkeypatch.setattr(kept_plan, "_FURTHER_MAX", 0)
    harness = Harness(queues, root=ROOT)
    harness.nodes("n1", capacity=a_resource(vcore=8000))
    many(harness, 4, vcore=2000 if "limits" in queues else 9000)
    send(harness, "behind", leaf, "bob", size=1, walltime="10s")
    assert is_placed(harness, "behind")


@dataclass(frozen=True)
class Place:
    """A job behind as many as may have promises, and whether it is planned nevertheless."""

    user: str
    leaf: str
    starts: bool


PLACES = {
    "another user in the same leaf is planned": Place("bob", "root.leaf", starts=True),
    "the same user in another leaf is planned": Place("eve", "root.other", starts=True),
    "the same user in the same leaf is not": Place("eve", "root.leaf", starts=False),
}


@pytest.mark.parametrize("case", PLACES.values(), ids=PLACES)
def test_one_user_or_leaf_does_not_use_up_all_promises(case: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those with few promises in their leaf have places of their own."""
    monkeypatch.setattr(kept_plan, "PROMISES_MAX", 4)
    monkeypatch.setattr(kept_plan, "_FEW", 2)
    harness = Harness("- name: leaf\n- name: other", root=ROOT)
    harness.nodes("n1", capacity=a_resource(vcore=8000))
    many(harness, 6, vcore=7000)
    send(harness, "behind", case.leaf, case.user, size=1, walltime="1h")
    assert case.starts is is_placed(harness, "behind")


@pytest.mark.parametrize(
    ("bound", "expected"), [("user", ["b0", "b1", "b2", "c"]), ("leaf", ["b0", "b1", "c"])]
)
def test_further_promises_are_not_used_up_by_one_either(
    bound: str, expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one user in many leaves, or of many users in one leaf, some have none."""
    monkeypatch.setattr(kept_plan, "PROMISES_MAX", 1)
    monkeypatch.setattr(kept_plan, "_FEW", 1)
    monkeypatch.setattr(kept_plan, "_FURTHER_OF_ONE_MAX", 2)
    leaves = [f"q{number}" for number in range(4)]
    harness = Harness("".join(f"- name: {leaf}\n" for leaf in ("leaf", *leaves)), root=ROOT)
    harness.nodes("n1", capacity=a_resource(vcore=8000))
    send(harness, "a", "root.leaf", "eve", size=8, walltime="1h")
    for number, leaf in enumerate(leaves):
        user, queue = ("ann", f"root.{leaf}") if bound == "user" else (f"u{number}", "root.leaf")
        send(harness, f"b{number}", queue, user, size=8, walltime="1h")
    send(harness, "c", "root.q0", "zoe", size=8, walltime="1h")
    promised = harness.state.ends.kept["root"].by_key
    assert expected == sorted(promised)


@pytest.mark.parametrize("promises", ["1", "all"])
@pytest.mark.parametrize(
    ("name", "walltime", "expected"),
    [("a", "30s", [30, 0]), ("a", "5s", [5, 10]), ("b", "3s", [10, 13]), ("c", "10s", [10, 0])],
    ids=["what runs, longer", "what runs, shorter", "what is promised, shorter", "what waits, shorter"],
)
def test_plans_follow_another_walltime(name: str, walltime: str, expected: list[int], promises: str) -> None:
    """At once: `a` has seven of ten for 10 s, `b` waits for eight, and `c` would delay it by its 11 s."""
    harness = a_pool(10, root=ROOT.replace("all", promises))
    submit(harness, "a", 7, 10)
    submit(harness, "b", 8, 20)
    submit(harness, "c", 3, 11)
    known = harness.application(name).asks.record(name)
    assert known is not None
    size, tags = known.ask.resource, {"walltime": walltime}
    assert harness.ask(name, application_id=name, resource=size, tags=tags) == ()
    harness.run_until_idle()

    found = planned_start_of(harness, "b")
    assert found is not None
    assert found.start_ns is not None
    starts_in = (found.start_ns - harness.clock.now_ns()) // SECOND_NS
    assert (expected[0], expected[1] == 0) == (starts_in, is_placed(harness, "c"))


def test_who_names_a_longer_walltime_loses_his_promise() -> None:
    """He is planned as if he came now: the one behind him was promised his start beside less."""
    harness = a_pool(10)
    submit(harness, "a", 10, 10)
    submit(harness, "b", 6, 10)
    submit(harness, "c", 6, 10)
    size = a_resource(vcore=6000)
    kept = harness.state.ends.kept["root"].by_key["b"]
    harness.ask("b", application_id="b", resource=size, tags={"walltime": "20s"})
    harness.run_until_idle()

    assert kept.serial < harness.state.ends.kept["root"].by_key["c"].serial
    assert kept.serial < harness.state.ends.kept["root"].by_key["b"].serial
    assert [10, 30] == starts(harness, "b", "c")
