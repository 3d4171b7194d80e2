"""What `sacct -P` and `scontrol show node` print is read without a mapping."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest
from support.proxy.simulation_builders import SECOND, written

from licorne.model.errors import LicorneError
from licorne.proxy.play.simulation.workloads.inputs import InputKind, InputOptions, kind_of_input, load_input
from licorne.proxy.play.simulation.workloads.machines import nodes_of, read_machines
from licorne.proxy.play.simulation.workloads.sacct import read_sacct
from licorne.proxy.play.simulation.workloads.swf_log import UNKNOWN, SwfJob
from licorne.proxy.play.simulation.workloads.workload import SimulatedTask, SimulatedWorkload

GIB = 1 << 30
COLUMNS = (
    "JobID|User|Account|Partition|Submit|Start|Elapsed|Timelimit|State|NNodes|AllocCPUS|ReqMem|QOS|AllocTRES"
)
USUAL = {
    "JobID": "101",
    "User": "ana",
    "Account": "bio",
    "Partition": "short",
    "Submit": "2026-03-01T08:00:00",
    "Start": "2026-03-01T08:05:00",
    "Elapsed": "00:10:00",
    "Timelimit": "1-02:00:00",
    "State": "COMPLETED",
    "NNodes": "2",
    "AllocCPUS": "8",
    "ReqMem": "16G",
    "QOS": "high",
    "AllocTRES": "billing=8,cpu=8,gres/gpu:a100=2,gres/gpu=2,mem=16G,node=2",
}


def _row(**changes: str) -> str:
    return "|".join((USUAL | changes)[name] for name in COLUMNS.split("|"))


def _file(folder: Path, *rows: str) -> Path:
    return written(folder / "jobs.csv", "\n".join([COLUMNS, *rows, ""]))


def _read(folder: Path, *rows: str) -> tuple[list[SwfJob], dict[str, int]]:
    log = read_sacct(_file(folder, *rows))
    return list(log.jobs), dict(log.notes)


def test_a_job_has_the_values_of_its_row(tmp_path: Path) -> None:
    """Times, names, and the amounts of the whole job."""
    (job,), notes = _read(tmp_path, _row())

    assert {} == notes
    assert ("101", "ana", "bio", "short", {"account": "bio", "qos": "high"}) == (
        job.name,
        job.user_name,
        job.group_name,
        job.queue_name,
        job.tags,
    )
    assert (300, 600, 26 * 3600) == (
        (job.start_ns - job.submit_ns) // SECOND,
        job.run_ns // SECOND,
        job.requested_ns // SECOND,
    )
    assert (2, {"vcore": 8000, "memory": 16 * GIB, "gpu": 2}) == (job.tasks, job.resources)


@dataclass(frozen=True, slots=True)
class Left:
    """A row that is no job that has run, and its note."""

    changes: dict[str, str]
    note: str = "job skipped: it never started"


LEFT: dict[str, Left] = {
    "a step": Left({"JobID": "101.batch"}, "row of a step: part of its job"),
    "a numbered step": Left({"JobID": "103_1.0"}, "row of a step: part of its job"),
    "a pending job": Left({"State": "PENDING", "Start": "Unknown"}, "job skipped: it waits"),
    "the rest of an array": Left({"JobID": "103_[3-10%2]"}, "job skipped: it waits"),
    "a running job": Left({"State": "RUNNING"}, "job skipped: it still runs, and its run time is unknown"),
    "cancelled before its start": Left({"State": "CANCELLED by 7", "Start": "None", "Elapsed": "00:00:00"}),
    "cancelled at once": Left({"State": "CANCELLED by 7", "Elapsed": "00:00:00"}),
    "a lost job without a start": Left({"State": "NODE_FAIL", "Start": "Unknown"}),
}


@pytest.mark.parametrize("case", LEFT.values(), ids=LEFT)
def test_a_row_of_no_job_that_has_run_is_left_out(case: Left, tmp_path: Path) -> None:
    """It is counted with its reason, and its elapsed time is not taken as a run time."""
    jobs, notes = _read(tmp_path, _row(JobID="1"), _row(**case.changes))

    assert (["1"], {case.note: 1}) == ([job.name for job in jobs], notes)


@pytest.mark.parametrize("name", ["103_1", "105+0"])
def test_elements_and_components_are_jobs(name: str, tmp_path: Path) -> None:
    """Of an array, and of a heterogeneous job."""
    assert [name] == [job.name for job in _read(tmp_path, _row(JobID=name))[0]]


@pytest.mark.parametrize(
    ("memory", "expected"),
    [
        ("16G", 16 * GIB),
        ("7.50G", 15 * GIB // 2),
        ("4000Mc", 8 * 4000 << 20),
        ("64Gn", 2 * 64 * GIB),
        ("512", 512 << 20),
        ("0n", 16 * GIB),
        ("0", 16 * GIB),
        ("", 16 * GIB),
    ],
)
def test_memory_is_that_of_the_job(memory: str, expected: int, tmp_path: Path) -> None:
    """Of each processor or node in older versions; without a number it is that of AllocTRES."""
    (job,), _ = _read(tmp_path, _row(ReqMem=memory))

    assert expected == job.resources["memory"]


@pytest.mark.parametrize("limit", ["UNLIMITED", "Partition_Limit", ""])
def test_words_are_no_time_limit(limit: str, tmp_path: Path) -> None:
    """It is unknown."""
    assert UNKNOWN == _read(tmp_path, _row(Timelimit=limit))[0][0].requested_ns


def test_of_several_partitions_the_first_counts_and_of_a_requeued_job_the_last_row(tmp_path: Path) -> None:
    """Both are in the notes."""
    rows = (_row(Elapsed="00:01:00", State="NODE_FAIL"), _row(Partition="long,short"))
    (job,), notes = _read(tmp_path, *rows)

    assert ("long", 600 * SECOND) == (job.queue_name, job.run_ns)
    assert {
        "row of an earlier run of a requeued job: left out": 1,
        "job of several partitions: the first counts": 1,
    } == notes


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("JobID|Submit|State\n1|2026-03-01T08:00:00|COMPLETED\n", ":1: expected one of the columns Elapsed"),
        (f"{COLUMNS}\n{_row(AllocCPUS='x')}\n", ":2:91: AllocCPUS: 'x' is not a whole number"),
        (f"{COLUMNS}\n{_row(ReqMem='x')}\n", ":2:93: ReqMem: 'x' is not an amount of memory"),
        (f"{COLUMNS}\n{_row(Submit='x')}\n", ":2:19: Submit: 'x' is neither"),
        (f"{COLUMNS}\n{_row(State='PENDING')}\n", "no job that has ended"),
    ],
)
def test_a_wrong_value_is_an_error_with_its_place(text: str, place: str, tmp_path: Path) -> None:
    """With the column of the file."""
    with pytest.raises(LicorneError) as caught:
        read_sacct(written(tmp_path / "jobs.txt", text))

    assert place in str(caught.value)


def test_the_header_tells_what_a_file_is_whatever_its_name(tmp_path: Path) -> None:
    """A mapping has no use then."""
    path, mapping = _file(tmp_path, _row()), tmp_path / "mapping.yaml"

    assert InputKind.SACCT is kind_of_input(path)
    with pytest.raises(LicorneError, match="needs no mapping: leave out"):
        kind_of_input(path, mapping)


NODES = """\
NodeName=n1 Arch=x86_64 CoresPerSocket=16
   CPUAlloc=0 CPUEfctv=16 CPUTot=16 CPULoad=0.01
   Gres=gpu:a100:2(S:0-1),gpu:v100:1
   RealMemory=65536 AllocMem=0 FreeMem=1000 Sockets=2 Boards=1
   Partitions=short,gpu

NodeName=n2 CPUTot=16 RealMemory=65536 Gres=gpu:a100:3(S:0-1) Partitions=short,gpu
NodeName=n3 CPUTot=4 RealMemory=8192 Gres=(null) Partitions=short
"""


def test_nodes_are_those_of_scontrol(tmp_path: Path) -> None:
    """Under their names, in one form or the other; the partitions are an attribute."""
    path = written(tmp_path / "nodes.txt", NODES)
    nodes = nodes_of(path, read_machines(path))
    large = {"vcore": 16_000, "memory": 64 * GIB, "gpu": 3}

    assert [("n1", large), ("n2", large), ("n3", {"vcore": 4000, "memory": 8 * GIB})] == [
        (node.node_id, node.resources) for node in nodes
    ]
    assert ["short,gpu", "short,gpu", "short"] == [node.attributes["partitions"] for node in nodes]


def test_a_node_without_processors_is_refused_with_its_line(tmp_path: Path) -> None:
    """The line of its name."""
    with pytest.raises(LicorneError, match=r"nodes.txt:9: processors: '' is not a whole number"):
        read_machines(written(tmp_path / "nodes.txt", NODES + "NodeName=n4\n"))


@dataclass(frozen=True, slots=True)
class Divided:
    """The amounts of a job, and its tasks on machines of 16 processors with 3 devices, and of 4 without."""

    changes: dict[str, str]
    tasks: list[tuple[int, dict[str, int]]] = field(default_factory=list)


DIVIDED: dict[str, Divided] = {
    "over its nodes": Divided({}, [(2, {"vcore": 4000, "memory": 8 * GIB, "gpu": 1})]),
    "with remainders": Divided(
        {"AllocTRES": "gres/gpu=3", "AllocCPUS": "5", "ReqMem": "2G"},
        [(1, {"vcore": 2500, "memory": GIB, "gpu": 1}), (1, {"vcore": 2500, "memory": GIB, "gpu": 2})],
    ),
    "into as few as fit where the devices are": Divided(
        {"NNodes": "", "AllocTRES": "gres/gpu=6", "ReqMem": ""}, [(2, {"vcore": 4000, "gpu": 3})]
    ),
    "into as few as fit on the smallest": Divided(
        {"NNodes": "", "AllocTRES": "", "ReqMem": ""}, [(2, {"vcore": 4000})]
    ),
    "without what no machine has": Divided(
        {"NNodes": "", "AllocTRES": "gres/fpga=6", "ReqMem": "", "AllocCPUS": "3"}, [(1, {"vcore": 3000})]
    ),
}


def _tasks(folder: Path, changes: dict[str, str]) -> tuple[SimulatedTask, ...]:
    machines = written(folder / "nodes.txt", NODES)
    work = load_input(InputOptions(path=_file(folder, _row(**changes)), nodes_path=machines))
    assert isinstance(work, SimulatedWorkload)
    return work.applications[0].tasks


@pytest.mark.parametrize("case", DIVIDED.values(), ids=DIVIDED)
def test_a_job_is_divided_and_its_amounts_are_kept(case: Divided, tmp_path: Path) -> None:
    """Equally, except for remainders."""
    tasks = _tasks(tmp_path, case.changes)

    assert case.tasks == [(task.count, task.resources) for task in tasks]
