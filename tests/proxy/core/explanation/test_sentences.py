"""Blockers in words: every kind says what stands in the way, and what would have to change."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest
from support.model.explained import place_in_file

from licorne.model.configuration.problems import Position
from licorne.model.explanation import (
    Blocker,
    Lack,
    NearMiss,
    NodeObstacle,
    NodeSummary,
    NodeTally,
    Place,
    SubjectKind,
)
from licorne.model.resources.resource import Resource, quantity_text, resource_text
from licorne.model.values.allocation import RefusalReason
from licorne.proxy.core.explanation.text import (
    changes_of,
    lack_line,
    miss_line,
    place_line,
    tally_line,
    what_blocks,
)

NOW_NS: Final = 100 * 10**9
HERE: Final = Position(12, 5, "somewhere")
MEMORY: Final = Lack(name="memory", asked=8, available=2, limit=10, position=HERE)
TOO_LARGE: Final = Lack(name="memory", asked=12, available=10, limit=10, position=HERE)
ONE_APPLICATION: Final = Lack(name="applications", asked=1, available=-1, limit=2)
REASON: Final = RefusalReason
AGREEING: Final = "the resource manager, or the policy, must agree"
KIND: Final = SubjectKind


def a_blocker(
    reason: RefusalReason,
    kind: SubjectKind,
    subject: str,
    *lacks: Lack,
    queue_path: str = "",
    detail: str = "",
    since_ns: int | None = None,
    until_ns: int | None = None,
) -> Blocker:
    return Blocker(
        reason=reason,
        kind=kind,
        subject=subject,
        queue_path=queue_path,
        lacks=lacks,
        detail=detail,
        since_ns=since_ns,
        until_ns=until_ns,
    )


@pytest.mark.parametrize(
    ("blocker", "what", "changes"),
    [
        (
            a_blocker(REASON.QUEUE_QUOTA, KIND.QUEUE, "root.a", MEMORY),
            "queue root.a has no room",
            ["memory 6 must end in root.a, or max.memory of root.a must rise from 10 to 16"],
        ),
        (
            a_blocker(REASON.QUEUE_QUOTA, KIND.QUEUE, "root.a", TOO_LARGE),
            "queue root.a has no room",
            ["max.memory of root.a must rise from 10 to 12: the ask alone is larger"],
        ),
        (
            a_blocker(
                REASON.QUEUE_QUOTA, KIND.QUEUE, "root", Lack(name="gpu", asked=1, available=0, limit=0)
            ),
            "queue root has no room",
            ["nodes with gpu 1 more must come, or as much must end anywhere"],
        ),
        (
            a_blocker(REASON.USER_QUOTA, KIND.GROUP, "dev", MEMORY, queue_path="root.a"),
            "group dev has no room left in root.a",
            [
                (
                    "memory 6 of group dev must end in root.a, "
                    "or maxresources.memory of root.a must rise from 10 to 16"
                )
            ],
        ),
        (
            replace(
                a_blocker(REASON.USER_QUOTA, KIND.USER, "bob", TOO_LARGE, queue_path="root.a"),
                setting="maxasks",
            ),
            "user bob has no room left in root.a",
            ["maxasks.memory of root.a must rise from 10 to 12: the ask alone is larger"],
        ),
        (
            a_blocker(REASON.QUEUE_APPLICATIONS, KIND.QUEUE, "root.a", ONE_APPLICATION),
            "queue root.a runs its maximum of applications",
            ["2 applications must end there, or maxapplications of root.a must rise from 2 to 4"],
        ),
        (
            a_blocker(REASON.USER_APPLICATIONS, KIND.USER, "bob", ONE_APPLICATION, queue_path="root.b"),
            "user bob runs the maximum of applications in root.b",
            ["2 applications must end there, or maxapplications of root.b must rise from 2 to 4"],
        ),
        (
            a_blocker(REASON.NO_NODE_FITS, KIND.NODES, ""),
            "no node has room",
            ["a node must gain room, or one with enough must come"],
        ),
        (
            a_blocker(REASON.PREDICATES, KIND.NODES, "", detail="n1 has a taint", until_ns=NOW_NS + 10**9),
            "every node with room is refused: n1 has a taint (until in 1s)",
            [f"{AGREEING}: asked again in every cycle"],
        ),
        (
            a_blocker(
                REASON.PROTECTED,
                KIND.QUEUE,
                "root.dev",
                detail="1 of 1 possible victims are protected, the first, v1, by min-runtime 30m of root.dev",
                until_ns=NOW_NS + 60 * 10**9,
            ),
            (
                "queue root.dev: what could be preempted is protected for now: "
                "1 of 1 possible victims are protected, the first, v1, by min-runtime 30m of root.dev "
                "(until in 1m)"
            ),
            ["nothing: preemption is tried again in 1m"],
        ),
        (
            a_blocker(REASON.PREDICATES, KIND.NODES, "", detail="n1 has a taint"),
            "every node with room is refused: n1 has a taint",
            [f"{AGREEING}: asked again when the resource manager says that its answers change"],
        ),
        (
            a_blocker(REASON.PREDICATES, KIND.NODE, "n1", detail="no"),
            "node n1 is refused: no",
            [f"{AGREEING}: asked again in every cycle"],
        ),
        (
            a_blocker(REASON.REQUIRED_NODE_UNKNOWN, KIND.NODE, "n9"),
            "the required node n9 is unknown",
            ["node n9 must come"],
        ),
        (
            a_blocker(REASON.REQUIRED_NODE_FULL, KIND.NODE, "n1", MEMORY),
            "the required node n1 has no room",
            ["memory 6 more must be free on n1"],
        ),
        (
            a_blocker(REASON.REQUIRED_NODE_FULL, KIND.NODE, "n1", detail="reserved for k1"),
            "the required node n1 has no room: reserved for k1",
            ["the reservation of n1 must go"],
        ),
        (
            a_blocker(
                REASON.WAITS_FOR_PLACEHOLDER, KIND.TASK_GROUP, "g", detail="2 of 2 placeholders waiting"
            ),
            "it waits to replace a placeholder of task group g: 2 of 2 placeholders waiting",
            ["a placeholder must be placed, or all of them must end"],
        ),
        (
            a_blocker(REASON.BACKOFF, KIND.APPLICATION, "app", until_ns=NOW_NS + 30 * 10**9),
            "application app: too many asks could not be placed (until in 30s)",
            ["nothing: its asks are tried again in 30s"],
        ),
        (
            a_blocker(REASON.QUEUE_STOPPED, KIND.QUEUE, "root.a"),
            "queue root.a: the queue is stopped",
            ["queue root.a must be started"],
        ),
        (
            a_blocker(REASON.QUEUE_KIND, KIND.QUEUE, "root.a", detail="it is a parent of queues"),
            "queue root.a: the configuration has made the queue another kind: it is a parent of queues",
            ["the configuration must make queue root.a what it was"],
        ),
        (
            a_blocker(REASON.NO_CAPACITY, KIND.PARTITION, "[rm]default"),
            "partition [rm]default: no node brings any resources",
            ["a node must come"],
        ),
        (
            a_blocker(REASON.CONGESTED, KIND.PARTITION, "[rm]default"),
            "partition [rm]default: the resource manager is far behind with its callbacks",
            ["the resource manager must take what it is told"],
        ),
        (
            a_blocker(
                REASON.MANAGER_PAUSED, KIND.PARTITION, "[rm]default", detail="reset", since_ns=90 * 10**9
            ),
            "partition [rm]default: the resource manager lost its connection 10s ago: reset",
            ["the resource manager must register again, and begins anew: until then nothing is placed"],
        ),
        (
            a_blocker(REASON.MANAGER_STOPPED, KIND.PARTITION, "[rm]default", since_ns=NOW_NS),
            "partition [rm]default: the resource manager has stopped 0s ago",
            ["the resource manager must register again, and begins anew: until then nothing is placed"],
        ),
        (
            a_blocker(REASON.PARTITION_STOPPED, KIND.PARTITION, "[rm]default"),
            "partition [rm]default: the partition is stopped",
            ["nothing can: it ends"],
        ),
    ],
    ids=lambda value: value.reason.name if isinstance(value, Blocker) else "",
)
def test_a_blocker_is_put_in_words(blocker: Blocker, what: str, changes: list[str]) -> None:
    """What stands in the way, and what would have to change."""
    assert (what, changes) == (what_blocks(blocker, NOW_NS), [*changes_of(blocker, NOW_NS)])


def test_a_time_that_has_come_is_now() -> None:
    """The next cycle tries again."""
    blocker = a_blocker(REASON.BACKOFF, KIND.APPLICATION, "app", until_ns=NOW_NS)

    assert ("nothing: its asks are tried again now",) == changes_of(blocker, NOW_NS)


def test_a_lack_is_written_with_its_place() -> None:
    """As messages about a configuration name places; without one where there is none."""
    assert "memory: asked 8, left 2 of 10 (queues.yaml:12:5)" == lack_line(MEMORY, place_in_file)
    assert "memory: asked 8, left 2 of 10" == lack_line(MEMORY, lambda _: "")


@pytest.mark.parametrize(
    ("name", "quantity", "text"),
    [
        ("vcore", 2000, "2"),
        ("vcore", 500, "500m"),
        ("vcore", -1500, "-1500m"),
        ("memory", 4 << 30, "4Gi"),
        ("memory", 1536 << 20, "1536Mi"),
        ("memory", -(2 << 10), "-2Ki"),
        ("memory", 1000, "1000"),
        ("memory", 0, "0"),
        ("pods", 3, "3"),
    ],
)
def test_quantities_are_written_as_in_a_configuration(name: str, quantity: int, text: str) -> None:
    """Whole units only, so that nothing is rounded."""
    assert text == quantity_text(name, quantity)


def test_a_resource_is_written_in_order_of_its_types() -> None:
    """One without types is nothing."""
    assert "memory 1Ki, vcore 1" == resource_text(Resource({"vcore": 1000, "memory": 1024}))
    assert "nothing" == resource_text(Resource({}))


def test_nodes_are_counted_by_their_reason_with_examples() -> None:
    """And with the asks that hold them."""
    tally = NodeTally(
        obstacle=NodeObstacle.RESERVED, nodes=4, examples=("n1", "n2", "n3"), reserved_for=("k1", "k2", "k3")
    )
    summary = NodeSummary(total=9, with_room=0, first="", tallies=(tally,), nearest=None)

    text = "4 of 9 with room, but reserved for another ask (n1, n2, n3, ...), held for k1, k2, k3"
    assert text == tally_line(tally, summary)


def test_the_nearest_miss_is_written_with_what_it_lacks() -> None:
    """Every type."""
    assert "nearest: n1 lacks memory 6" == miss_line(NearMiss(node_id="n1", lacks=(MEMORY,)))


def test_a_place_is_written_with_those_ahead_and_the_rule() -> None:
    """Those that are not named are counted."""
    place = Place(
        subject="app",
        among="root.a",
        number=9,
        of=9,
        ahead=("a", "b"),
        order="the older first",
        position=HERE,
    )

    text = "app: place 9 of 9 in root.a, behind a, b and 6 more: the older first (queues.yaml:12:5)"
    assert text == place_line(place, place_in_file)
