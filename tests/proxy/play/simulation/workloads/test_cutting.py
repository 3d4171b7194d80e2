from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from support.proxy.simulation_builders import SECOND, a_node, a_task, a_workload, an_application, written

from licorne.model.errors import LicorneError
from licorne.proxy.play.simulation.workloads.inputs import InputOptions, load_input
from licorne.proxy.play.simulation.workloads.workload import (
    GangStyle,
    NodeChange,
    NodeEvent,
    SimulatedWorkload,
    WorkloadCut,
    cut_workload,
)


def _day() -> SimulatedWorkload:
    """Return five applications, ten seconds apart, each with a second task four seconds later."""
    applications = (
        an_application(a_task(f"t{n}", at=10 * n), a_task(f"u{n}", at=10 * n + 4), name=f"a{n}", at=10 * n)
        for n in range(5)
    )
    return a_workload(*applications, nodes=(a_node("n1"), a_node("n2"), a_node("big", vcore=40)))


def _seconds(workload: SimulatedWorkload) -> list[tuple[str, float, float]]:
    """Return each application with its time and that of its second task."""
    return [
        (one.application_id, one.submit_at_ns / SECOND, one.tasks[1].submit_at_ns / SECOND)
        for one in workload.applications
    ]


PARTS: dict[str, tuple[WorkloadCut, list[tuple[str, float, float]]]] = {
    "from one time to before another": (
        WorkloadCut(from_ns=10 * SECOND, to_ns=30 * SECOND),
        [("a1", 0, 4), ("a2", 10, 14)],
    ),
    "from a time between two": (WorkloadCut(from_ns=35 * SECOND), [("a4", 5, 9)]),
    "the first": (WorkloadCut(first=2), [("a0", 0, 4), ("a1", 10, 14)]),
    "the first of a part": (WorkloadCut(from_ns=20 * SECOND, first=1), [("a2", 0, 4)]),
    "a faster part": (
        WorkloadCut(from_ns=20 * SECOND, rate=Fraction(4)),
        [("a2", 0, 4), ("a3", 2.5, 6.5), ("a4", 5, 9)],
    ),
    "a slower one": (WorkloadCut(first=2, rate=Fraction("0.5")), [("a0", 0, 4), ("a1", 20, 24)]),
}


@pytest.mark.parametrize("case", PARTS.values(), ids=PARTS)
def test_jobs_are_taken_by_time_and_number(
    case: tuple[WorkloadCut, list[tuple[str, float, float]]],
) -> None:
    """What comes after a job keeps its distance from it."""
    cut, expected = case

    assert expected == _seconds(cut_workload(_day(), cut))


def test_what_is_left_out_is_noted() -> None:
    """The report says how many."""
    assert [(3, "job that is left out by the cut")] == [
        (note.count, note.text) for note in cut_workload(_day(), WorkloadCut(first=2)).notes
    ]


NODES: dict[str, tuple[str, list[str]]] = {
    "as they are": ("1", ["n1", "n2", "big"]),
    "half": ("0.5", ["n1", "big"]),
    "one and a half": ("1.5", ["n1", "n2", "n1-copy1", "big", "big-copy1"]),
}


@pytest.mark.parametrize("case", NODES.values(), ids=NODES)
def test_nodes_of_each_kind_are_scaled(case: tuple[str, list[str]]) -> None:
    """None of a kind that was there is without any."""
    factor, expected = case

    scaled = cut_workload(_day(), WorkloadCut(nodes=Fraction(factor)))

    assert expected == [node.node_id for node in scaled.nodes]


def test_sizes_are_rounded_up() -> None:
    """No task asks for nothing."""
    task = a_task("t", cores=5, pieces=3)
    scaled = cut_workload(a_workload(an_application(task)), WorkloadCut(size=Fraction("0.3")))

    assert [({"vcore": 2}, 3)] == [(each.resources, each.count) for each in scaled.applications[0].tasks]


def test_a_whole_job_without_room_any_more_is_skipped() -> None:
    """It would hold a part of what is left for ever; one that gives up is not skipped."""
    patient = replace(
        an_application(a_task("t", cores=8, pieces=2), name="patient", gang=GangStyle.SOFT),
        placeholder_timeout_ns=10**18,
    )
    impatient = an_application(a_task("t", cores=8, pieces=2), name="impatient", gang=GangStyle.SOFT)
    workload = a_workload(patient, impatient, nodes=(a_node("n1"), a_node("n2")))

    scaled = cut_workload(workload, WorkloadCut(nodes=Fraction("0.5")))

    assert ["impatient"] == [one.application_id for one in scaled.applications]
    assert [1] == [note.count for note in scaled.notes]


def test_events_of_nodes_keep_their_places() -> None:
    """Those before the part happen as it begins, those of nodes that are left out do not."""

    def event(at: int, *names: str) -> NodeEvent:
        nodes = tuple(a_node(name) for name in names)
        return NodeEvent(at_ns=at * SECOND, change=NodeChange.DRAIN, nodes=nodes)

    workload = replace(_day(), node_events=(event(5, "n1"), event(22, "n2"), event(26, "n1", "n2")))

    cut = WorkloadCut(from_ns=20 * SECOND, rate=Fraction(2), nodes=Fraction("0.5"))

    assert [(0, ["n1"]), (3, ["n1"])] == [
        (event.at_ns // SECOND, [node.node_id for node in event.nodes])
        for event in cut_workload(workload, cut).node_events
    ]


def test_an_empty_part_is_refused(tmp_path: Path) -> None:
    """There is nothing to simulate."""
    text = """\
nodes: [{prefix: n, resources: {vcore: 1}}]
applications: [{name: a, queue: root.q, user: u, tasks: [{resources: {vcore: 1}}]}]
"""
    path = written(tmp_path / "day.yaml", text)

    with pytest.raises(LicorneError) as caught:
        load_input(InputOptions(path=path, cut=WorkloadCut(from_ns=1)))

    assert f"{path}: no job is left of 1 job by the cut" == str(caught.value)


def test_a_transcript_is_not_cut(tmp_path: Path) -> None:
    """What it says at a time follows from what was decided before."""
    path = written(tmp_path / "day.jsonl", '{"register": {"rmID": "rm"}}\n')

    with pytest.raises(LicorneError) as caught:
        load_input(InputOptions(path=path, cut=WorkloadCut(first=1)))

    expected = f"{path}: a transcript is neither cut nor scaled: its lines follow from those before them"
    assert expected == str(caught.value)
