"""Backfilling with maxima of queues and limits of users: what a promise waits for, and what may start."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from support.model.builders import a_resource
from support.model.harness import Harness
from support.model.planned_days import is_placed, planned_start_of, send

from licorne.model.explanation.explain import explain
from licorne.model.explanation.planned_starts import PlannedStart
from licorne.model.values.allocation import RefusalReason
from licorne.proxy.core.explanation.text import lines_of

QUEUES = """
- name: q
  resources: {max: {vcore: 6}}
- name: o
"""
ROOT = """
properties: {backfill.reservations: "1"}
limits: [{limit: one user, users: [ada], maxresources: {vcore: 6}}]
"""


def a_partition(promises: str = "1") -> Harness:
    """Return a node of ten, of which `q` has its six until second 100, and ada waits for six of it."""
    harness = Harness(QUEUES, root=ROOT.replace("1", promises, 1))
    harness.nodes("n1", capacity=a_resource(vcore=10_000))
    send(harness, "r1", "root.q", "eve", size=6, walltime="100s")
    harness.advance(1)
    send(harness, "h", "root.q", "ada", size=6, walltime="100s", priority=1)
    return harness


@dataclass(frozen=True)
class Behind:
    """A job behind the one of ada, and whether it starts."""

    queue: str
    user: str
    size: int
    walltime: str
    starts: bool


CASES = {
    "it leaves room on the node": Behind("root.o", "eve", 4, "500s", starts=True),
    "the maximum of its queue is full": Behind("root.q", "eve", 1, "50s", starts=False),
    "ada would use more than she may": Behind("root.o", "ada", 2, "500s", starts=False),
    "it gives back in time what ada may use": Behind("root.o", "ada", 2, "99s", starts=True),
    "it never ends and leaves room": Behind("root.o", "eve", 2, "", starts=True),
}


@pytest.mark.parametrize("promises", ["1", "all"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_promise_keeps_room_under_each_limit(case: Behind, promises: str) -> None:
    """A job starts before one with a promise if neither a node nor a limit that both have is short then."""
    harness = a_partition(promises)
    send(harness, "b", case.queue, case.user, size=case.size, walltime=case.walltime)
    assert (False, case.starts) == (is_placed(harness, "h"), is_placed(harness, "b"))


def test_an_explanation_has_the_planned_starts() -> None:
    """What is held by its own queue is expected to start when the job with the promise ends."""
    harness = a_partition()
    send(harness, "c", "root.q", "eve", size=1, walltime="50s")
    began_ns = harness.clock.now_ns() - 1_000_000_000
    expected = (
        PlannedStart(start_ns=began_ns + 100_000_000_000, node_id="n1", is_promised=True, passes_left=3),
        PlannedStart(start_ns=began_ns + 200_000_000_000, node_id="n1"),
    )
    assert expected == (planned_start_of(harness, "h"), planned_start_of(harness, "c"))


def test_an_explanation_says_what_would_be_delayed() -> None:
    """The blocker names the promise, the limit that does not hold both, and a walltime that is fine."""
    harness = a_partition()
    send(harness, "d", "root.o", "ada", size=2, walltime="500s")
    explanation = explain(harness.state, "d")
    assert explanation is not None
    both = "the limit of user ada in root does not hold both"
    (blocker,) = explanation.waiting[0].blockers
    expected = (
        RefusalReason.WOULD_DELAY,
        "h",
        "it would end in 8m20s, 6m41s after h is to get n1 in 1m39s; " + both,
        "a walltime of at most 1m39s instead of 8m20s",
    )
    assert expected == (blocker.reason, blocker.subject, blocker.detail, blocker.change)


def test_a_plan_that_waits_for_endless_work_has_no_time() -> None:
    """Work without a walltime never ends in a plan: what waits for it has no expected start, and says so."""
    harness = Harness(root='properties: {backfill.reservations: "1"}')
    harness.nodes("n1", capacity=a_resource(vcore=10_000))
    send(harness, "r", "root.leaf", "eve", size=6, walltime="")
    send(harness, "h", "root.leaf", "eve", size=6, walltime="10s")
    send(harness, "b", "root.leaf", "eve", size=4, walltime="10s")
    expected = (PlannedStart(reason="1 allocation on its nodes has no walltime"), True)
    assert expected == (planned_start_of(harness, "h"), is_placed(harness, "b"))


def test_overrun_work_is_expected_to_end_later() -> None:
    """What runs longer than its walltime moves the promise, and what was refused for it is tried then."""
    harness = Harness(root='properties: {backfill.reservations: "1"}')
    harness.nodes("n1", capacity=a_resource(vcore=10_000))
    send(harness, "a", "root.leaf", "eve", size=6, walltime="10s")
    send(harness, "b", "root.leaf", "eve", size=7, walltime="10s")
    send(harness, "c", "root.leaf", "eve", size=4, walltime="60s")
    send(harness, "d", "root.leaf", "eve", size=4, walltime="61s")
    harness.partition.schedule_wakeups()
    placed = []
    for seconds in (9, 1):
        harness.wait(seconds)
        placed.append((is_placed(harness, "c"), is_placed(harness, "d")))
    assert [(False, False), (True, False)] == placed


def test_a_reload_begins_and_ends_backfilling() -> None:
    """What waits is decided by the new configuration at once, also with what ran before it."""
    harness = Harness()
    harness.nodes("n1", capacity=a_resource(vcore=10_000))
    send(harness, "a", "root.leaf", "eve", size=6, walltime="100s")
    harness.reload("- name: leaf", root='properties: {backfill.reservations: "1"}')
    send(harness, "b", "root.leaf", "eve", size=8, walltime="100s")
    send(harness, "c", "root.leaf", "eve", size=4, walltime="101s")
    before = is_placed(harness, "c")
    harness.reload("- name: leaf")
    harness.run_until_idle()
    assert (False, True) == (before, is_placed(harness, "c"))


def test_an_explanation_says_it_in_words() -> None:
    """What it would delay, what would have to change, and when it is expected to start."""
    harness = Harness(root='properties: {backfill.reservations: "1"}')
    harness.nodes("n1", capacity=a_resource(vcore=10_000))
    send(harness, "a", "root.leaf", "eve", size=6, walltime="100s")
    send(harness, "b", "root.leaf", "eve", size=8, walltime="100s")
    send(harness, "c", "root.leaf", "eve", size=4, walltime="150s")
    explanation = explain(harness.state, "c")
    assert explanation is not None
    lines = [line.text for line in lines_of(explanation, lambda _: "queues.yaml:5")]
    delay = (
        "it would delay application b, which is promised a start: it would end in 2m30s, 50s after b is to "
        "get n1 in 1m40s (queues.yaml:5)"
    )
    expected = [
        delay,
        "to change: a walltime of at most 1m40s instead of 2m30s, or at most vcore 2",
        "nodes: 1 of 1 with room, first n1",
        "expected to start on n1 in 3m20s",
    ]
    assert expected == [line for line in lines if line in expected]
