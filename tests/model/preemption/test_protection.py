"""The minimum run time: what has not run for it is no victim, and a preemptor waits for exactly that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from support.model.builders import SECOND_NS, START_NS, memory
from support.model.explained import ask_of, explained, place_in_file
from support.model.preemption_scenes import HUNDRED, Scene

from licorne.model.explanation.dry_run import prospects
from licorne.model.preemption.guarantee import attempt
from licorne.model.preemption.guarantee.attempt_budget import NoPreemption
from licorne.model.preemption.protection import Protection
from licorne.model.preemption.required_node import PROTECTED
from licorne.model.values.allocation import RefusalReason

MINUTE_NS = 60 * SECOND_NS
TEN_MINUTES = """
    - name: a
      properties: {preemption.delay: 10s}
      resources: {guaranteed: {memory: 50}}
    - name: b
      properties: {preemption.min-runtime: 10m}
      resources: {guaranteed: {memory: 20}}
"""
TEAMS = """
    - name: dev
      properties: {preemption.min-runtime: 30m}
      queues:
      - name: a
        properties: {preemption.min-runtime: 2h}
      - name: b
      - name: c
        properties: {preemption.min-runtime: 0s}
    - name: prod
"""


def a_full_cluster(queues: str = TEN_MINUTES, partition: str = "") -> Scene:
    """One allocation of ten after the other, ten seconds apart, fills the only node."""
    scene = Scene(queues, partition=partition)
    scene.nodes("n1", capacity=HUNDRED)
    for number in range(10):
        scene.runs(f"v{number}")
        scene.advance(seconds=9, milliseconds=990)
    return scene


def test_an_allocation_is_a_victim_from_the_moment_on_that_it_has_run_for_the_minimum() -> None:
    """One nanosecond earlier it is none; the first to come of age goes, although it is the oldest."""
    scene = a_full_cluster()
    scene.asks("p1")
    scene.clock.advance_to(START_NS + 10 * MINUTE_NS - 1)
    scene.run_until_idle()
    assert [] == scene.preempted

    scene.clock.advance_to(START_NS + 10 * MINUTE_NS)
    scene.run_until_idle()
    assert ["v0"] == scene.preempted


def test_an_ask_rests_until_the_first_protection_ends_without_any_attempt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However often cycles run; what decides is counted. It is noted why."""
    times: list[int] = []
    scene = a_full_cluster()
    moments = attempt._Moment.decide

    def counted(moment: Any, *arguments: Any) -> Any:
        times.append(scene.clock.now_ns())
        return moments(moment, *arguments)

    monkeypatch.setattr(attempt._Moment, "decide", counted)
    scene.asks("p1", "p2")
    for _ in range(490):
        scene.wait(1)
    attempts = sorted({time_ns - START_NS for time_ns in times})

    assert [110_020_000_000] == attempts
    assert NoPreemption.PROTECTED.text in scene.waits_with("p1")
    assert START_NS + 10 * MINUTE_NS == scene.partition.next_retry_ns()


@pytest.mark.parametrize("seconds", [11, 120])
def test_a_change_lets_an_ask_try_again_before(seconds: int) -> None:
    """What is not protected takes the place of what was: that ends, 15 seconds after the failed attempt."""
    scene = a_full_cluster(f"{TEN_MINUTES}    - name: c\n")
    scene.asks("p1")
    scene.wait(seconds)
    scene.runs("w1", queue="root.c")
    scene.end("v9")
    scene.wait(16)

    assert ["w1"] == scene.preempted


@dataclass(frozen=True)
class Case:
    """Where the preemptor and the victim are, whose minimum run time counts, and how many minutes it is."""

    preemptor: str
    victim: str
    queue: str
    minutes: int


CASES = {
    "beside a sibling the victim's own queue protects": Case("root.dev.b", "root.dev.a", "root.dev.a", 120),
    "an outsider meets what is set for the team": Case("root.prod", "root.dev.a", "root.dev", 30),
    "a queue that sets nothing inherits": Case("root.dev.a", "root.dev.b", "root.dev.b", 30),
    "zero ends what is inherited": Case("root.dev.a", "root.dev.c", "root.dev.c", 0),
    "and binds siblings alone": Case("root.prod", "root.dev.c", "root.dev", 30),
    "a queue for which nothing is set protects nothing": Case("root.dev.a", "root.prod", "root.prod", 0),
    "within a leaf its own counts": Case("root.dev.a", "root.dev.a", "root.dev.a", 120),
    "a maximum of a team that was lowered meets its leaves": Case(
        "root.dev", "root.dev.a", "root.dev.a", 120
    ),
    "that of a leaf its own": Case("root.dev.a", "root.dev.a", "root.dev.a", 120),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_widest_queue_without_the_preemptor_says_how_long(case: Case) -> None:
    """What a team sets binds its own queues among each other."""
    scene = Scene(TEAMS)
    protection = Protection(scene.queue(case.preemptor), START_NS, for_guarantee=True)
    around = protection.queue_around(scene.queue(case.victim))

    assert (case.queue, case.minutes * MINUTE_NS) == (around.path, around.settings.min_runtime_ns)


def test_members_of_a_gang_are_protected_as_long_as_the_last_of_them() -> None:
    """A gang makes progress when it is complete; what runs beside it in the application counts alone."""
    scene = Scene(TEN_MINUTES)
    scene.nodes("n1", capacity=HUNDRED)
    scene.runs("g1", placeholder=True, task_group_name="g")
    scene.runs("alone")
    scene.advance(seconds=300)
    scene.runs("g2", placeholder=True, task_group_name="g")
    protection = Protection(scene.queue("root.a"), START_NS + 10 * MINUTE_NS + SECOND_NS, for_guarantee=True)
    victims = [scene.victim(key) for key in ("g1", "g2", "alone")]
    free, protected = protection.divide(scene.queue("root.b"), victims)

    last_ns = START_NS + 300 * SECOND_NS + 20_000_000 + 10 * MINUTE_NS
    assert ["alone"] == [victim.key for victim in free]
    assert [("g1", last_ns), ("g2", last_ns)] == [(each.victim.key, each.until_ns) for each in protected]


def test_a_member_that_restarts_is_protected_no_longer_than_its_gang() -> None:
    """Otherwise one that restarts more often than the minimum would protect all of them for ever."""
    scene = Scene(TEN_MINUTES)
    scene.nodes("n1", capacity=HUNDRED)
    scene.runs("g1", "g2", placeholder=True, task_group_name="g")
    scene.advance(seconds=300)
    scene.end("g2")
    scene.runs("again", placeholder=True, task_group_name="g")
    protection = Protection(scene.queue("root.a"), START_NS + 10 * MINUTE_NS + SECOND_NS, for_guarantee=True)
    free, protected = protection.divide(scene.queue("root.b"), [scene.victim("g1"), scene.victim("again")])

    assert (["g1", "again"], []) == ([victim.key for victim in free], protected)


def test_a_new_size_does_not_begin_the_time_again() -> None:
    """The work done so far is the same."""
    scene = a_full_cluster()
    scene.wait(100)
    scene.ask("v0", application_id="root.b", resource=memory(9))
    protection = Protection(scene.queue("root.a"), START_NS + 10 * MINUTE_NS, for_guarantee=True)
    free, _ = protection.divide(scene.queue("root.b"), [scene.victim("v0"), scene.victim("v1")])

    assert [("v0", 9)] == [(victim.key, victim.resource.get("memory")) for victim in free]


# ----------------------------------------------------------------------------- other kinds of preemption

SCOPES = {
    "by default it binds each kind": ("", []),
    "a queue may bind guarantees alone": (", preemption.min-runtime.scope: guarantee", ["v9"]),
}


@pytest.mark.parametrize("case", SCOPES.values(), ids=SCOPES)
def test_an_ask_that_needs_its_node_waits_as_well(case: tuple[str, list[str]]) -> None:
    """The one that comes of age first is the victim then, at that moment."""
    scope, at_once = case
    scene = a_full_cluster(TEN_MINUTES.replace("10m", f"10m{scope}"))
    scene.asks("d", required_node="n1", may_preempt=False)
    scene.wait(1)
    assert at_once == scene.preempted

    if not at_once:
        assert [PROTECTED] == scene.waits_with("d")
        assert START_NS + 10 * MINUTE_NS == scene.partition.next_retry_ns()
        scene.clock.advance_to(START_NS + 10 * MINUTE_NS)
        scene.run_until_idle()
        assert ["v0"] == scene.preempted


def test_a_lowered_maximum_is_enforced_as_allocations_come_of_age() -> None:
    """What the queue has to give back goes one by one, and no more than that."""
    queues = """
    - name: b
      properties: {preemption.min-runtime: 10m, quota.preemption.delay: 10s}
      resources: {max: {memory: 100}}
"""
    on = "preemption: {quotapreemptionenabled: true}"
    scene = a_full_cluster(queues, on)
    scene.reload(queues.replace("100", "80"), partition=on)
    scene.wait(30)
    scene.partition.preempt_over_quota()
    assert [] == scene.preempted
    assert START_NS + 10 * MINUTE_NS == scene.queue("root.b").quota_preemption_due_ns

    seen = []
    for _ in range(60):
        scene.wait(10)
        scene.partition.preempt_over_quota()
        scene.settle()
        seen.append(len(scene.preempted))
    assert (["v0", "v1"], [0, 1, 2]) == (scene.preempted, sorted(set(seen)))


# ------------------------------------------------------------------------------------- explanations


def test_an_explanation_says_who_is_protected_by_which_line_and_until_when() -> None:
    """The blocker comes after those that preemption would take away."""
    scene = a_full_cluster()
    scene.asks("p1")
    scene.wait(11)
    *others, blocker = ask_of(scene, "p1", "root.a").blockers
    assert blocker.position is not None

    assert [RefusalReason.QUEUE_QUOTA, RefusalReason.NO_NODE_FITS] == [each.reason for each in others]
    assert (RefusalReason.PROTECTED, "root.b") == (blocker.reason, blocker.subject)
    assert blocker.detail == (
        "10 of 10 possible victims are protected, the first, v0, by min-runtime 10m of root.b"
    )
    assert START_NS + 10 * MINUTE_NS == blocker.until_ns
    assert "properties.preemption.min-runtime" in blocker.position.path, place_in_file(blocker.position)


def test_an_ask_that_needs_its_node_is_explained_likewise() -> None:
    """Its node is full, and that time alone will change."""
    scene = a_full_cluster()
    scene.asks("d", required_node="n1", may_preempt=False)
    scene.wait(1)
    full, blocker = ask_of(scene, "d", "root.a").blockers

    assert RefusalReason.REQUIRED_NODE_FULL is full.reason
    assert (RefusalReason.PROTECTED, START_NS + 10 * MINUTE_NS) == (blocker.reason, blocker.until_ns)


def test_nobody_is_named_who_would_be_preempted_while_all_are_protected() -> None:
    """And without protection nothing is said of it."""
    scene = a_full_cluster()
    scene.asks("p1")
    (prospect,) = scene.partition.read(prospects, "root.a")
    assert prospect.record is None
    assert prospect.why_not.startswith(NoPreemption.PROTECTED.text)

    scene.reload(TEN_MINUTES.replace("10m", "0s"))
    (prospect,) = scene.partition.read(prospects, "root.a")
    assert prospect.record is not None
    assert RefusalReason.PROTECTED not in {
        blocker.reason for ask in explained(scene, "root.a").asks for blocker in ask.blockers
    }
