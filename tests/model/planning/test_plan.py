"""Plans of starts: pure values in, promises out."""

from __future__ import annotations

import pytest
from support.model.builders import a_resource

from licorne.model.planning.plan import JobInPlan, LimitKey, NoPlan, Promise, StartPlan
from licorne.model.resources.resource import total_of
from licorne.model.state.expected_ends import RunningWork, corrected_end_ns

MINUTE_NS = 60 * 10**9


def work(node_id: str, vcore: int, end: int | None, key: str = "") -> RunningWork:
    """Return work on a node that has begun at 0 and is expected to end at a moment."""
    levels = ("root.leaf", "root")
    return RunningWork(
        key or f"{node_id}-{end}", a_resource(vcore=vcore), node_id, levels, "eve", None, 0, end
    )


def job(*vcores: int, walltime: int | None = 10, maximum: int | None = None) -> JobInPlan:
    """Return a job of some sizes, with the room that is left in its queue."""
    limits = {} if maximum is None else {LimitKey("queue", "", "root.leaf"): a_resource(vcore=maximum)}
    sizes = tuple(a_resource(vcore=vcore) for vcore in vcores)
    levels = ("root.leaf", "root")
    return JobInPlan("job", "app", sizes, walltime, levels, "eve", None, limits, total_of(sizes))


def a_plan(free: dict[str, int], *running: RunningWork) -> StartPlan:
    """Return a plan at moment 1 with what nodes have free."""
    return StartPlan(1, {name: a_resource(vcore=vcore) for name, vcore in free.items()}, running)


CASES = {
    "it fits now": (a_plan({"n1": 4}), job(4), (1, ("n1",))),
    "it waits for the last end that it needs": (
        a_plan({"n1": 0}, work("n1", 2, 20), work("n1", 2, 30), work("n1", 2, 40)),
        job(4),
        (30, ("n1",)),
    ),
    "of two nodes at one moment it gets the one with fewer others then": (
        a_plan({"n1": 0, "n2": 0}, work("n1", 4, 20), work("n1", 1, 90), work("n2", 4, 20)),
        job(4),
        (20, ("n2",)),
    ),
    "a maximum is waited for as a node is": (
        a_plan({"n1": 9}, work("n1", 2, 20), work("n2", 3, 50)),
        job(4, maximum=0),
        (50, ("n1",)),
    ),
    "all sizes of a job start together": (
        a_plan({"n1": 3, "n2": 1}, work("n2", 2, 20), work("n1", 1, 30)),
        job(1, 2, 3),
        (20, ("n1", "n1", "n2")),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_job_is_promised_the_first_moment(
    case: tuple[StartPlan, JobInPlan, tuple[int, tuple[str, ...]]],
) -> None:
    """At which it fits nodes and limits, and stays within them."""
    plan, asked, expected = case
    found = plan.earliest(asked)
    assert isinstance(found, Promise)
    assert expected == (found.start_ns, found.node_ids)


def test_a_later_job_is_planned_around_a_promise() -> None:
    """A long job starts after what was promised, a short one before it; a copy is a plan of its own."""
    plan = a_plan({"n1": 4}, work("n1", 6, 20))
    bare = plan.copy()
    promised = plan.earliest(job(8))
    assert isinstance(promised, Promise)
    plan.take(promised)
    starts = [each.earliest(job(4, walltime=wall)) for each in (plan, bare) for wall in (19, 20)]
    assert [1, 30, 1, 1] == [start.start_ns for start in starts if isinstance(start, Promise)]


REASONS = {
    "work without a walltime is on its nodes": (
        a_plan({"n1": 0}, work("n1", 4, None)),
        job(4),
        "1 allocation on its nodes has no walltime",
    ),
    "work without a walltime fills its queue": (
        a_plan({"n1": 9}, work("n1", 4, None), work("n1", 4, None, "other")),
        job(4, maximum=0),
        "2 allocations under the limit of root.leaf have no walltime",
    ),
    "it is larger than each node": (
        a_plan({"n1": 3}),
        job(4),
        "no node has room for it after all that runs there",
    ),
}


@pytest.mark.parametrize("case", REASONS.values(), ids=REASONS)
def test_no_plan_has_a_reason(case: tuple[StartPlan, JobInPlan, str]) -> None:
    """It says what never ends, or that nothing has room."""
    plan, asked, reason = case
    assert NoPlan(reason) == plan.earliest(asked)


def test_overrun_work_is_expected_to_end_by_growing_steps() -> None:
    """The first step after now counts, from the walltime on; behind the last one it repeats."""
    walltime_ns = 10 * MINUTE_NS
    moments = (9, 10, 11, 15, 110, 6010, 12011)
    found = [corrected_end_ns(0, walltime_ns, moment * MINUTE_NS) for moment in moments]
    assert [10, 11, 15, 25, 130, 12010, 18010] == [end_ns // MINUTE_NS for end_ns in found if end_ns]
