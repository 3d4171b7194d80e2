"""Logs in the standard workload format, published ones among them, and their machines."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from support.proxy.simulation_builders import SECOND, shared_data, written

from licorne.proxy.base.files.input_files import InputError
from licorne.proxy.play.simulation.workloads.machines import machines_of_header, nodes_of, read_machines
from licorne.proxy.play.simulation.workloads.swf import JobOptions, read_swf
from licorne.proxy.play.simulation.workloads.swf_log import UNKNOWN, SwfLog, read_swf_log
from licorne.proxy.play.simulation.workloads.workload import (
    GangStyle,
    InputNote,
    SimulatedTask,
    SimulatedWorkload,
    count_tasks_larger_than_every_node,
)

_MACHINES = "0 big 2 8 1 8192\n1 small 4 2 1 2048\n"


def _job(
    number: int = 1,
    *,
    submit: int = 100,
    run: int = 60,
    processors: int = 1,
    requested: int = 1,
    memory: int = -1,
    status: int = 1,
    queue: int = -1,
    time: int = 99,
    extra: str = "",
) -> str:
    return (
        f"{number} {submit} 0 {run} {processors} -1 -1 {requested} {time} {memory} {status} "
        f"12 5 -1 {queue} -1 -1 -1 {extra}\n"
    )


def _read(
    folder: Path, *lines: str, machines: str = _MACHINES, options: JobOptions | None = None
) -> SimulatedWorkload:
    written(folder / "log.swf.machines", machines)
    return read_swf(written(folder / "log.swf", "".join(lines)), options=options or JobOptions())


def _parts(tasks: tuple[SimulatedTask, ...]) -> list[tuple[int, int]]:
    return [(task.count, task.resources["vcore"] // 1000) for task in tasks]


def test_times_start_with_the_first_job(tmp_path: Path) -> None:
    """Jobs are submitted in the order of their times, not of the file."""
    workload = _read(tmp_path, _job(1, submit=1000), _job(2, submit=970))

    expected = [("job-2", 0), ("job-1", 30 * SECOND)]
    assert expected == [(one.application_id, one.submit_at_ns) for one in workload.applications]


def test_a_job_has_the_user_group_and_run_time_of_the_log(tmp_path: Path) -> None:
    """Numbers become names."""
    application = _read(tmp_path, _job()).applications[0]

    assert ("u12", ("g5",)) == (application.user, application.groups)
    assert 60 * SECOND == application.tasks[0].duration_ns


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        (_job(), "root.default"),
        (_job(queue=3), "root.queue3"),
        (_job(queue=3, extra="{1} Q_2h 1:ppn=1"), "root.q_2h"),
    ],
)
def test_the_queue_is_the_named_one_else_the_numbered_one(tmp_path: Path, job: str, expected: str) -> None:
    """And it stands in the configuration that comes with the workload."""
    workload = _read(tmp_path, job)

    assert expected == workload.applications[0].queue
    assert f"name: {expected.removeprefix('root.')}" in workload.default_configuration


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        (_job(processors=5), [(2, 2), (1, 1)]),
        (_job(processors=4), [(2, 2)]),
        (_job(processors=1), [(1, 1)]),
        (_job(processors=4, memory=1500), [(4, 1)]),
        (_job(processors=3, memory=99_999), [(3, 1)]),
        (_job(processors=12, extra="q 1:ppn=8+2:ppn=2:fast"), [(1, 8), (2, 2)]),
        (_job(processors=6, extra="q big-1.example:ppn=6"), [(1, 6)]),
        (_job(processors=3, extra="q 3"), [(3, 1)]),
        (_job(processors=3, extra="q 1:ppn=8"), [(1, 2), (1, 1)]),
        (_job(processors=3, extra="q all"), [(1, 2), (1, 1)]),
    ],
)
def test_a_job_becomes_parts_that_a_node_can_hold(
    tmp_path: Path, job: str, expected: list[tuple[int, int]]
) -> None:
    """As the request says, if it adds up; else grouped up to the smallest node and its memory."""
    assert expected == _parts(_read(tmp_path, job).applications[0].tasks)


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        (_job(processors=2, memory=100), 2 * 100 * 1024),
        (_job(processors=2, memory=4096, extra="q 1:ppn=2"), 4096),
    ],
)
def test_memory_is_kilobytes_a_processor_or_bytes_a_node(tmp_path: Path, job: str, expected: int) -> None:
    """The former by the standard; the latter beside a request text, as the logs of MetaCentrum have it."""
    assert expected == _read(tmp_path, job).applications[0].tasks[0].resources["memory"]


@pytest.mark.parametrize(
    ("job", "taken", "note"),
    [
        (_job(2, run=-1), 0, "job skipped: run time unknown"),
        (_job(2, submit=-1), 0, "job skipped: submit time unknown"),
        (_job(2, processors=-1, requested=-1), 0, "job skipped: number of processors unknown"),
        (_job(2, run=0, status=5), 0, "job skipped: cancelled before it ran"),
        (_job(2, run=0), 1, "job with a run time of 0: taken as 1 s"),
        (_job(2, processors=-1), 1, "job of unknown processors: taken from what it requested"),
        (_job(2, extra="q 1:ppn=1:fast"), 1, "job that asks for properties of nodes: ignored"),
        (_job(2, extra="q 1:ppn=1#excl"), 1, "job that asks for properties of nodes: ignored"),
        (
            _job(2, extra="q 9:ppn=9"),
            1,
            "job whose request does not add up to its processors: grouped instead",
        ),
    ],
)
def test_a_job_that_is_skipped_or_taken_otherwise_is_counted(
    tmp_path: Path, job: str, taken: int, note: str
) -> None:
    """The notes have the rules of this reader that were used; nothing is left out without a word."""
    workload = _read(tmp_path, _job(1), job)

    assert ["job-1", "job-2"][: 1 + taken] == [one.application_id for one in workload.applications]
    assert (InputNote(1, note),) == workload.notes


def test_memory_is_left_out_where_machines_have_none(tmp_path: Path) -> None:
    """Otherwise no task would ever fit."""
    workload = _read(tmp_path, _job(memory=5), machines="0 node 1 4\n")

    assert {"vcore": 1000} == workload.applications[0].tasks[0].resources
    text = "task that requests memory on machines of unknown memory: ignored"
    assert (InputNote(1, text),) == workload.notes


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("", r"no machines: .* there is no 'log.swf.machines' beside it"),
        ("; MaxNodes: unknown\n", r"no machines: .*MaxNodes nor MaxProcs.*'log.swf.machines'.*--nodes"),
    ],
)
def test_a_log_without_machines_is_refused(tmp_path: Path, header: str, expected: str) -> None:
    """Neither in a header nor in a file beside it; the text says where they could stand."""
    with pytest.raises(InputError, match=expected):
        read_swf(written(tmp_path / "log.swf", header + _job()))


def test_machines_may_be_named(tmp_path: Path) -> None:
    """They take precedence over those beside the log."""
    _read(tmp_path, _job())
    named = written(tmp_path / "other", "0 other 1 1\n")

    assert ["other-1"] == [node.node_id for node in read_swf(tmp_path / "log.swf", named).nodes]


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        (_job(processors=2_000_000), "processors: 2000000 are more than 1000000"),
        (_job(memory=10**16), "requested memory: 10000000000000000 is too large"),
    ],
)
def test_a_job_beyond_all_bounds_is_refused(tmp_path: Path, job: str, expected: str) -> None:
    """With its line."""
    with pytest.raises(InputError) as caught:
        _read(tmp_path, job)

    assert f"{tmp_path}/log.swf:1: {expected}" == str(caught.value)


def test_a_queue_has_the_name_that_the_header_gives_its_number(tmp_path: Path) -> None:
    """The name in the line of a job counts before that."""
    workload = _read(
        tmp_path,
        "; Queues: two\n; Queue: 3 Batch (nights only)\n;Queue: 4  short\n",
        _job(1, queue=3),
        _job(2, queue=4),
        _job(3, queue=5),
        _job(4, queue=3, extra="{1} Q_2h 1:ppn=1"),
    )

    assert ["root.batch", "root.short", "root.queue5", "root.q_2h"] == [
        application.queue for application in workload.applications
    ]


@pytest.mark.parametrize(
    ("header", "notes"),
    [
        ("; MaxNodes: 3 (of a kind)\n", ()),
        (
            "; MaxNodes: 3\n; MaxProcs: 8\n",
            (InputNote(2, "processor of the header that is left out: they do not divide by the nodes"),),
        ),
    ],
)
def test_a_header_with_nodes_is_enough(tmp_path: Path, header: str, notes: tuple[InputNote, ...]) -> None:
    """Words behind the number do not matter; processors that no node has are reported."""
    workload = read_swf(written(tmp_path / "log.swf", header + _job()))

    assert (["node-1", "node-2", "node-3"], notes) == (
        [node.node_id for node in workload.nodes],
        workload.notes,
    )


def test_a_job_larger_than_the_machine_is_reported(tmp_path: Path) -> None:
    """It is submitted all the same, and its tasks run as there is room."""
    workload = _read(tmp_path, _job(1, processors=24), _job(2, processors=25), _job(3, processors=99))
    text = "job larger than the machine, which has 24 processors: its tasks never run all at once"

    assert (InputNote(2, text),) == workload.notes
    assert 3 == len(workload.applications)


def test_the_log_of_hpc2n_is_read() -> None:
    """3,170 jobs on 120 nodes with two processors; 25 have no run time."""
    workload = read_swf(shared_data("swf/hpc2n.swf"))

    assert (120, 3145) == (len(workload.nodes), len(workload.applications))
    assert (InputNote(25, "job skipped: run time unknown"),) == workload.notes
    assert 0 == count_tasks_larger_than_every_node(workload)


def test_the_log_of_wagap_is_read_with_its_queues_and_users() -> None:
    """17,900 jobs of 75 users in eleven queues; one wants more memory than there is in a node."""
    workload = read_swf(shared_data("swf/wagap-2013.swf"))

    assert (68, 17898) == (len(workload.nodes), len(workload.applications))
    assert (11, 75) == (
        len({application.queue for application in workload.applications}),
        len({application.user for application in workload.applications}),
    )
    assert 1 == count_tasks_larger_than_every_node(workload)


def test_the_requested_time_is_the_walltime(tmp_path: Path) -> None:
    """A job without one has none, unless a factor says how it follows from the run time."""
    lines = (_job(1), _job(2, time=-1), _job(3, time=0, run=0))
    known = _read(tmp_path, *lines)
    estimated = _read(tmp_path, *lines, options=JobOptions(estimate_factor=3))

    assert [99 * SECOND, None, None] == [one.walltime_ns for one in known.applications]
    assert [99 * SECOND, 180 * SECOND, 3 * SECOND] == [one.walltime_ns for one in estimated.applications]
    text = "job without a requested time: its walltime comes from its run time"
    assert InputNote(2, text) in estimated.notes


def test_a_whole_job_is_a_gang_that_never_times_out(tmp_path: Path) -> None:
    """It has what it requested, and its number has leading zeros: names decide about jobs of one second."""
    whole = _read(tmp_path, _job(9, processors=3, requested=2), _job(10), options=JobOptions(whole=True))

    first = whole.applications[0]
    assert ["job-09", "job-10"] == [one.application_id for one in whole.applications]
    assert (GangStyle.SOFT, 100 * 365 * 86_400 * SECOND) == (first.gang, first.placeholder_timeout_ns)
    assert [(1, 2)] == _parts(first.tasks)


def test_a_whole_job_without_room_on_the_empty_machine_is_skipped(tmp_path: Path) -> None:
    """There are 24 processors, of them four times four on one node each, and 8 MiB in the largest node."""
    lines = (
        _job(1, requested=25),
        _job(2, requested=24),
        _job(3, requested=1, memory=9000),
        _job(4, requested=8, extra="q 2:ppn=4"),
        _job(5, requested=12, extra="q 3:ppn=4"),
        _job(6, requested=20, extra="q 5:ppn=4"),
    )
    workload = _read(tmp_path, *lines, options=JobOptions(whole=True))

    assert ["job-2", "job-4", "job-5"] == [one.application_id for one in workload.applications]
    text = "job skipped: there is no room for the whole of it on the empty machine"
    assert (InputNote(3, text),) == workload.notes


def test_tasks_have_at_most_as_many_processors_as_is_said(tmp_path: Path) -> None:
    """Parts of a request are split, with their share of the memory; a smaller part stays."""
    job = _job(processors=11, requested=11, memory=4096 * 8, extra="q 2:ppn=5+1")
    tasks = _read(tmp_path, job, options=JobOptions(task_processors=3)).applications[0].tasks

    assert [(2, 3), (2, 2), (1, 1)] == _parts(tasks)
    assert [19660, 13107, 32768] == [task.resources["memory"] for task in tasks]
    assert ["job-1-part1", "job-1-part2", "job-1-part3"] == [task.key for task in tasks]


# ------------------------------------------------------------------------------------------------- logs


_JOB = "7 10 3 60 4 59.5 -1 8 100 2048 1 12 5 -1 2 1 -1 -1"


def _read_log(folder: Path, text: str) -> SwfLog:
    return read_swf_log(written(folder / "log.swf", text))


def _refused(folder: Path, text: str) -> str:
    with pytest.raises(InputError) as caught:
        _read_log(folder, text)
    return str(caught.value).removeprefix(f"{folder}/")


def test_a_line_is_a_job(tmp_path: Path) -> None:
    """Columns may be apart by any number of blanks."""
    job = _read_log(tmp_path, f"; a comment\n\n   {_JOB.replace(' ', '   ')}\n").jobs[0]

    assert (3, 7, 10 * SECOND, 60 * SECOND) == (job.line, job.number, job.submit_ns, job.run_ns)
    assert (4, 8, 2048, 1, 12, 5, 2) == (
        job.processors,
        job.requested_processors,
        job.requested_memory,
        job.status,
        job.user,
        job.group,
        job.queue,
    )


def test_the_header_tells_the_size_of_the_machine(tmp_path: Path) -> None:
    """Other comments are passed over."""
    log = _read_log(tmp_path, f"; MaxNodes: 3\n; MaxProcs:  12 \n;Note: MaxProcs: 9x\n{_JOB}\n")

    assert (3, 12) == (log.nodes_max, log.processors_max)


@pytest.mark.parametrize(
    ("extra", "expected"),
    [
        ("", ("", "")),
        (" short", ("short", "")),
        (" {1,2} short", ("short", "")),
        (" {1,2} short 1:ppn=4", ("short", "1:ppn=4")),
    ],
)
def test_extra_columns_are_understood(tmp_path: Path, extra: str, expected: tuple[str, str]) -> None:
    """The list of nodes is the one in braces."""
    job = _read_log(tmp_path, _JOB + extra).jobs[0]

    assert expected == (job.queue_name, job.request)


@pytest.mark.parametrize(("text", "run_ns"), [("1.500000001", 1_500_000_001), ("-1359980917", UNKNOWN)])
def test_times_of_broken_logs_are_read(tmp_path: Path, text: str, run_ns: int) -> None:
    """Fractions of seconds are exact; some run times are minus forty years, and count as unknown."""
    assert run_ns == _read_log(tmp_path, _JOB.replace(" 60 ", f" {text} ")).jobs[0].run_ns


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (_JOB.replace(" 60 ", " 6O "), "log.swf:1:8: run time: '6O' is not a number"),
        (_JOB.replace(" 4 ", " 4.5 "), "log.swf:1:11: processors: '4.5' is not a whole number"),
        (_JOB[:-3], f"log.swf:1:1: 17 columns where a job has 18, and at most 3 more: '{_JOB[:-3]}'"),
        (_JOB + " a b c d", "log.swf:1:1: 22 columns where a job has 18, and at most 3 more"),
        (f"{_JOB}\n{_JOB}", "log.swf:2:1: job number: 7 stands already in line 1"),
        (_JOB.replace(" 10 ", f" {10**12} "), f"log.swf:1:3: submit time: '{10**12}' is too large"),
        ("; only this\n", "log.swf: there is no job in the file"),
    ],
)
def test_a_wrong_line_is_named_with_its_place(tmp_path: Path, text: str, expected: str) -> None:
    """Line, column and value."""
    assert _refused(tmp_path, text).startswith(expected)


# --------------------------------------------------------------------------------------------- machines


LOG: Final = Path("log.swf")


def test_each_kind_of_machine_becomes_its_nodes(tmp_path: Path) -> None:
    """Processors are milli-cores, memory is kB in the file."""
    path = written(tmp_path / "m", "0\tbig\t2\t80\t1\t2048\n\n1 small 10 2 1\n")

    nodes = nodes_of(path, read_machines(path))

    assert ["big-1", "big-2", "small-01"] == [node.node_id for node in nodes[:3]]
    assert {"vcore": 80_000, "memory": 2048 * 1024} == nodes[0].resources
    assert {"vcore": 2_000} == nodes[-1].resources


def _of_header(nodes: int, processors: int) -> list[int]:
    """Return the cores of each node that a header tells of."""
    log = SwfLog(LOG, (), nodes, processors)
    return [node.resources["vcore"] // 1000 for node in nodes_of(LOG, machines_of_header(log))]


@pytest.mark.parametrize(
    ("nodes", "processors", "cores"),
    [(3, 12, [4, 4, 4]), (3, 0, [1, 1, 1]), (0, 3, [1, 1, 1]), (2, 5, [2, 2]), (0, 0, [])],
)
def test_the_header_of_a_log_may_tell_the_machines(nodes: int, processors: int, cores: list[int]) -> None:
    """Processors are shared out evenly; one of the two numbers is enough; nothing is known of memory."""
    assert cores == _of_header(nodes, processors)


def test_a_header_with_fewer_processors_than_nodes_is_refused() -> None:
    """A node without a processor is none."""
    with pytest.raises(InputError, match=r"^log\.swf: the header has fewer processors \(MaxProcs 2\)"):
        _of_header(4, 2)


def test_there_is_a_limit_to_the_nodes_of_all_machines_together(tmp_path: Path) -> None:
    """It holds before any of them is made."""
    path = written(tmp_path / "m", "0 a 600000 2\n1 b 400001 2\n")

    with pytest.raises(InputError, match=r"m: there are 1,000,001 nodes, more than 1,000,000$"):
        nodes_of(path, read_machines(path))
    with pytest.raises(InputError, match=r"^log\.swf: there are 999,999,999 nodes, more than"):
        _of_header(999_999_999, 0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "there is no machine in the file"),
        ("0 a 2", "1: 3 columns where a machine has id, name, nodes"),
        ("0 a x 2", "1: nodes: 'x' is not a whole number"),
        ("0 a 0 2", "1: expected nodes with processors, not '0' nodes with '2' processors"),
        ("0 a 2 2\n1 a 2 2", "2: the machine 'a' is listed twice"),
    ],
)
def test_wrong_machines_are_named_with_their_line(tmp_path: Path, text: str, expected: str) -> None:
    """Nothing is guessed."""
    path = written(tmp_path / "m", text)

    with pytest.raises(InputError) as caught:
        read_machines(path)

    assert str(caught.value).removeprefix(f"{path}:").strip().startswith(expected)


def test_a_size_of_the_header_may_have_separators(tmp_path: Path) -> None:
    """It is not read as its first digits; what is no number is an error with its place."""
    log = written(tmp_path / "log.swf", f"; MaxProcs: 1,152 (all)\n{_job()}")
    assert 1152 == read_swf_log(log).processors_max

    with pytest.raises(InputError, match=r"log.swf:1:13: MaxProcs: expected a whole number, got '1.152'"):
        read_swf_log(written(log, f"; MaxProcs: 1.152\n{_job()}"))


def test_a_comment_may_have_bytes_of_another_encoding(tmp_path: Path) -> None:
    """A job may not: its line is named."""
    log = tmp_path / "log.swf"
    log.write_bytes("; Installation: Universität\n".encode("latin-1") + _job().encode())
    assert 1 == len(read_swf_log(log).jobs)

    log.write_bytes("; x\n".encode("latin-1") + _job().encode().rstrip() + b" {} \xe4\n")
    with pytest.raises(InputError, match=r"log.swf:2:\d+: byte 0xe4 is not UTF-8 text"):
        read_swf_log(log)
