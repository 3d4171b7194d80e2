"""The bound on starvation: later comers pass a promise for the sake of shares so often and no more."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from support.model.builders import FakePredicates, a_resource
from support.model.harness import Harness
from support.model.planned_days import is_placed, planned_start_of, send

TWO_LEAVES = "- name: a\n- name: b"
HOUR = 3600


@dataclass(frozen=True)
class Stream:
    """Small jobs, one an hour and each two hours long, and a job of eight of ten that waits for room.

    The first of them with a number may start before it; 2 runs beside it for ever.
    """

    passing: int = 3
    promises: str = "1"
    leaves: str = TWO_LEAVES
    root: str = ""
    other_leaf: str = "root.b"
    gang: bool = False
    waits_in: str = "root.a"
    predicates: bool = False
    priority: int = 0
    """Of the small jobs."""

    def harness(self) -> Harness:
        """Return the partition, with the first small job and the one that waits."""
        properties = f'properties: {{backfill.reservations: "{self.promises}", {self.root}}}'
        predicates = FakePredicates() if self.predicates else None
        harness = Harness(self.leaves, root=properties, predicates=predicates)
        harness.nodes("n1", capacity=a_resource(vcore=10_000))
        send(harness, "r", "root.a", "ann", size=2, walltime="100d")
        self.send_small(harness, 0)
        tags = {"gangSize": "2"} if self.gang else {}
        harness.submit("big", self.waits_in, user="ann", tags=tags)
        for number in range(2 if self.gang else 1):
            size = a_resource(vcore=4_000 if self.gang else 8_000)
            harness.ask(f"big-{number}", application_id="big", resource=size, tags={"walltime": "1h"})
        harness.run_until_idle()
        return harness

    def send_small(self, harness: Harness, number: int) -> None:
        """Submit one of the small jobs, and run cycles."""
        name, queue = f"s{number}", self.other_leaf
        send(harness, name, queue, "bob", size=1, walltime="2h", priority=self.priority)

    def placed(self) -> list[str]:
        """Return which of eight small jobs have started until the one that waits has."""
        harness = self.harness()
        for number in range(1, 8):
            harness.advance(HOUR)
            self.send_small(harness, number)
            if number > 1 and f"s{number - 2}" in harness.placements:
                harness.release(f"s{number - 2}", application_id=f"s{number - 2}")
            harness.run_until_idle()
        return [key for key in harness.placements if key.startswith(("s", "big"))]


USERS = "- name: a\n  properties: {application.sort.policy: users}"
FAIR = USERS.replace("users", "fair")
CASES = {
    "of a queue with a smaller share": Stream(),
    "of one, where all have promises": Stream(promises="all"),
    "of a user with a smaller share": Stream(leaves=USERS, other_leaf="root.a"),
    "of one, where all jobs have promises": Stream(leaves=USERS, other_leaf="root.a", promises="all"),
    "of an application that uses less": Stream(leaves=FAIR, other_leaf="root.a", passing=0),
    "before a whole gang": Stream(gang=True),
    "before a whole gang, where all have promises": Stream(gang=True, promises="all"),
    "with predicates": Stream(predicates=True),
    "with predicates, where all have promises": Stream(predicates=True, promises="all"),
    "once": Stream(root="backfill.passes: 1", passing=1),
    "once, where all have promises": Stream(root="backfill.passes: 1", promises="all", passing=1),
    "never": Stream(root="backfill.passes: 0", passing=0),
    "never, where all have promises": Stream(root="backfill.passes: 0", promises="all", passing=0),
    "for one half-life": Stream(root="backfill.passes: 9, fair.half-life: 2h", passing=2),
    "for one half-life, where all have promises": Stream(
        root="backfill.passes: 9, fair.half-life: 2h", promises="all", passing=2
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_small_jobs_pass_a_promise(case: Stream) -> None:
    """Then it stands: the next ones wait until its job has started, since they would delay it."""
    placed = case.placed()

    assert case.passing + 1 == placed.index("big-0")


def test_a_higher_priority_passes_a_promise_as_often_as_it_comes() -> None:
    """Priorities bind; the bound is on shares alone."""
    case = Stream(priority=5)

    assert "big-0" not in case.placed()


def test_a_promise_that_stands_is_before_a_fenced_priority() -> None:
    """What counts is the priority that the queue around both sees."""
    fenced = "- name: a\n- name: b\n  properties: {priority.policy: fence}"

    assert 4 == Stream(leaves=fenced, priority=5).placed().index("big-0")


def test_a_large_job_that_is_never_first_has_the_bound_too() -> None:
    """The one promise goes to the queue with the smaller share; who waits longest is counted as well."""
    harness = Harness(TWO_LEAVES, root='properties: {backfill.reservations: "1"}')
    harness.nodes("n1", capacity=a_resource(vcore=20_000))
    send(harness, "r", "root.a", "ann", size=10, walltime="100d")
    send(harness, "b0", "root.b", "bob", size=8, walltime="1h")
    send(harness, "b1", "root.b", "bob", size=8, walltime="1h")
    send(harness, "big", "root.a", "ann", size=8, walltime="1h")
    for number in range(6):
        send(harness, f"b{number + 2}", "root.b", "bob", size=8, walltime="1h")
        harness.advance(HOUR)
        harness.release([*harness.placements][-1], application_id=[*harness.placements][-1])
        harness.run_until_idle()

    assert ["r", "b0", "b1", "b2", "b3", "b4", "big"] == [*harness.placements][:7]


def test_who_has_passed_a_promise_is_explained() -> None:
    """How many have, and how many may; and it is counted on over a reload."""
    harness = Stream().harness()
    harness.advance(HOUR)
    Stream().send_small(harness, 1)
    found = planned_start_of(harness, "big")
    assert found is not None
    harness.reload(TWO_LEAVES, root='properties: {backfill.reservations: "1"}')
    harness.run_until_idle()

    assert (1, 2, True) == (found.passed, found.passes_left, found.is_promised)
    assert found == planned_start_of(harness, "big")


@pytest.mark.parametrize("promises", ["1", "all"])
@pytest.mark.parametrize(
    "held",
    [
        "- {name: a, maxapplications: 1}\n- name: b",
        "- {name: a, limits: [{limit: one, users: [ann], maxapplications: 1}]}\n- name: b",
        "- {name: a, limits: [{limit: one, groups: [dev], maxapplications: 1}]}\n- name: b",
    ],
    ids=["queue", "user", "group"],
)
def test_who_may_not_start_is_promised_nothing(held: str, promises: str) -> None:
    """Nothing waits for him, and no start is expected."""
    case = Stream(leaves=held, promises=promises)
    harness = case.harness()
    send(harness, "long", "root.b", "bob", size=7, walltime="9h")
    found = planned_start_of(harness, "big")

    assert is_placed(harness, "long")
    assert found is not None
    assert (None, "its application may not start yet") == (found.start_ns, found.reason)
