"""The starts of a log are compared with those of a simulation."""

from __future__ import annotations

import io
from dataclasses import replace
from fractions import Fraction

from rich.console import Console
from support.proxy.comparisons import a_row
from support.proxy.simulation_builders import SECOND, a_task, a_workload, an_application, simulated

from licorne.proxy.play.simulation.recorded_starts import StartAgreement, recorded_starts
from licorne.proxy.play.simulation.report_table import print_report
from licorne.proxy.play.simulation.workloads.workload import (
    SimulatedWorkload,
    WorkloadCut,
    configuration_for,
    cut_workload,
)

MINUTE = 60 * SECOND


def test_starts_are_counted_by_how_far_they_are_apart() -> None:
    """By queue; a job that never started, or has no recorded start, is not compared."""
    rows = [
        a_row("a", started=0),
        a_row("b", started=10 * MINUTE),
        a_row("c", started=0, queue="root.r"),
        a_row("d", started=None),
        a_row("e", started=5),
    ]
    found = recorded_starts(rows, {"a": MINUTE, "b": 0, "c": 61 * MINUTE, "d": 0})

    assert found is not None
    assert StartAgreement(jobs=3, within_1m=1, within_10m=2, within_60m=2, mean_later_ns=-1040 * SECOND) == (
        found.total
    )
    assert {"root.q": 2, "root.r": 1} == {name: one.jobs for name, one in found.queues.items()}
    assert None is recorded_starts(rows, {})


def _recorded() -> SimulatedWorkload:
    """Return two jobs of ten minutes on one core: the second one waits, and began at once in its log."""
    jobs = [
        replace(
            an_application(a_task(name, cores=10, at=at, duration=600), name=name, at=at),
            recorded_start_ns=at * SECOND,
        )
        for name, at in (("a", 0), ("b", 60))
    ]
    return replace(a_workload(*jobs), default_configuration=configuration_for(["root.q"]))


def test_a_report_compares_the_starts_and_prints_the_shares() -> None:
    """Of two jobs one starts as in its log, the other nine minutes later."""
    report = simulated(_recorded(), with_jobs=True)
    stream = io.StringIO()
    print_report(report, Console(file=stream, width=200), plain=True)

    assert report.recorded_starts is not None
    assert (2, 1, 2, 270 * SECOND) == (
        report.recorded_starts.total.jobs,
        report.recorded_starts.total.within_1m,
        report.recorded_starts.total.within_10m,
        report.recorded_starts.total.mean_later_ns,
    )
    assert ["root.q", "2", "50.0%", "100.0%", "100.0%", "4m30s"] in [
        line.split() for line in stream.getvalue().splitlines()
    ]


def test_recorded_starts_follow_a_cut_and_not_a_scale() -> None:
    """Time begins at the cut; twice the load never ran on the machine."""
    cut = cut_workload(_recorded(), WorkloadCut(from_ns=30 * SECOND))
    scaled = cut_workload(_recorded(), WorkloadCut(rate=Fraction(2)))

    assert [30 * SECOND] == [each.recorded_start_ns for each in cut.applications]
    assert [None, None] == [each.recorded_start_ns for each in scaled.applications]
