"""Differences over windows have intervals that the same seed repeats."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from support.proxy.comparisons import compared
from support.proxy.simulation_builders import SECOND, a_node, a_task, an_application, written

from licorne.model.errors import RequestError
from licorne.proxy.play.comparison.windows import WindowComparison, WindowDifference, compared_windows
from licorne.proxy.play.simulation.runs import RunSettings, run_settings
from licorne.proxy.play.simulation.workloads.inputs import Transcript
from licorne.proxy.play.simulation.workloads.workload import SimulatedWorkload, configuration_for

DAY = 86_400
_LIMITED = """\
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues: [{name: q, resources: {max: {vcore: 1m}}}]
"""
"""One task at a time."""


def _days(*pairs: int) -> SimulatedWorkload:
    """Return a workload in which that many jobs of a minute are submitted together at noon of each day."""
    applications = [
        an_application(a_task(f"d{day}-{number}", at=at), name=f"d{day}-{number}", at=at)
        for day, count in enumerate(pairs)
        for number in range(count)
        for at in (day * DAY + DAY // 2,)
    ]
    return SimulatedWorkload(
        name="days",
        nodes=(a_node(vcore=10),),
        applications=tuple(applications),
        default_configuration=configuration_for(["root.q"]),
    )


def _settings(text: str | None = None) -> RunSettings:
    return run_settings(queues=text)


def _compared(work: SimulatedWorkload, count: int, seed: int = 1) -> WindowComparison:
    found = compared_windows(work, (_settings(), _settings(_LIMITED)), count, seed)
    assert found is not None
    return found


def _mean_wait(windows: WindowComparison) -> WindowDifference:
    (one,) = [one for one in windows.differences if (one.figure, one.queue) == ("mean wait", "")]
    return one


def test_each_window_is_a_block_of_days_from_an_empty_cluster() -> None:
    """Two jobs of a day wait for 0 and 60 s in B, so the mean differs by 30 s; of one job none waits."""
    windows = _compared(_days(2, 2, 1, 2, 2), 5)
    one = _mean_wait(windows)

    assert (1,) * 5 == windows.days
    assert (5, 0, 24 * SECOND, 24 * SECOND) == (one.windows, one.a, one.b, one.difference)
    assert (0, 4) == (one.lower_in_b, one.higher_in_b)
    assert 6 * SECOND <= one.low <= one.difference <= one.high <= 30 * SECOND
    assert "A is better" == one.verdict()


def test_differences_of_both_signs_decide_nothing() -> None:
    """The interval contains zero; exchanging A and B exchanges its ends."""
    work = _days(1, 2, 1, 1)
    a_b, b_a = (
        compared_windows(work, order, 4, 1)
        for order in ((_settings(), _settings(_LIMITED)), (_settings(_LIMITED), _settings()))
    )
    assert a_b is not None
    assert b_a is not None

    assert ("not decided", "not decided") == (_mean_wait(a_b).verdict(), _mean_wait(b_a).verdict())
    assert _mean_wait(a_b).difference == -_mean_wait(b_a).difference > 0


def test_the_same_seed_gives_the_same_intervals_and_more_windows_than_days_do_not_exist() -> None:
    """Days without jobs have no window."""
    work = _days(2, 0, 1, 3, 2)

    assert _compared(work, 20) == _compared(work, 20)
    assert (1,) * 4 == _compared(work, 20).days
    assert (2, 3) == _compared(work, 2).days


def test_what_has_no_days_has_no_windows() -> None:
    """Neither a transcript nor a single day."""
    both = (_settings(), _settings())
    with pytest.raises(RequestError, match="expected submissions within at least 2 days, got 1 day"):
        compared_windows(_days(3), both, 2, 1)
    with pytest.raises(RequestError, match="got a transcript"):
        compared_windows(Transcript("t", (), 0), both, 2, 1)


def test_an_interrupt_ends_the_windows() -> None:
    """There is no comparison of the first ones."""
    assert None is compared_windows(_days(1, 1), (_settings(), _settings()), 2, 1, lambda: True)


def test_a_figure_of_a_window_without_it_does_not_count() -> None:
    """In B no job of the second day starts: that window has no wait to compare."""
    work = _days(1, 1)
    second = replace(work.applications[1], tasks=(a_task("big", cores=2, at=DAY + DAY // 2),))
    windows = _compared(replace(work, applications=(work.applications[0], second)), 2)

    assert 1 == _mean_wait(windows).windows


def test_the_command_prints_the_windows(tmp_path: Path) -> None:
    """As a table, in the document, and as intervals on the page."""
    scenario = written(
        tmp_path / "s.yaml",
        "nodes: [{prefix: n, resources: {vcore: 10}}]\n"
        "applications: [{name: a, queue: root.q, user: u, count: 6, every: 12h,\n"
        "  tasks: [{count: 2, resources: {vcore: 1m}, duration: 1m}]}]\n",
    )
    now = written(tmp_path / "now.yaml", configuration_for(["root.q"]))
    then = written(tmp_path / "then.yaml", _LIMITED)
    arguments = (now, then, "--input", scenario, "--windows", "3")

    page = tmp_path / "page.html"
    lines = compared(*arguments, "--html", page).stdout.splitlines()
    document = json.loads(compared(*arguments, "--json").stdout)

    assert "B less A in 3 windows, with intervals of 95 %" in page.read_text(encoding="utf-8")
    assert 3 == page.read_text(encoding="utf-8").count('<svg class="interval"')
    assert "3 windows of 1 day, each from an empty cluster; B less A, 95 % interval:" in lines
    assert [
        "mean",
        "wait",
        "of",
        "all",
        "jobs",
        "0s",
        "1m",
        "1m",
        "1m",
        "1m",
        "0",
        "3",
        "A",
        "is",
        "better",
    ] in [line.split() for line in lines]
    assert [1, 1, 1] == document["windows"]["days"]
    assert "A is better" == document["windows"]["differences"][0]["verdict"]
