from __future__ import annotations

from pathlib import Path

import pytest
from support.proxy.simulation_builders import SECOND, written

from licorne.model.errors import LicorneError
from licorne.proxy.play.simulation.si_messages import new_application_message
from licorne.proxy.play.simulation.workloads.inputs import InputOptions, load_input
from licorne.proxy.play.simulation.workloads.swf import JobOptions
from licorne.proxy.play.simulation.workloads.workload import (
    InputNote,
    SimulatedApplication,
    SimulatedWorkload,
)

_MAPPING = """\
submit: submitted
run: elapsed
walltime: {column: limit, unit: m}
cpus: cores
memory: {column: mem, unit: Mi}
user: user
group: account
queue: partition
job: id
tags: {namespace: account}
unknown: [UNLIMITED]
"""
_HEADER = "id,submitted,elapsed,limit,cores,mem,user,account,partition\n"
_MACHINES = "0 pool 2 4 1 8388608\n"


def _options(folder: Path, rows: str, mapping: str = _MAPPING, header: str = _HEADER) -> InputOptions:
    written(folder / "jobs.csv.machines", _MACHINES)
    return InputOptions(
        path=written(folder / "jobs.csv", header + rows),
        csv_mapping_path=written(folder / "mapping.yaml", mapping),
    )


def _read(folder: Path, rows: str, mapping: str = _MAPPING, header: str = _HEADER) -> SimulatedWorkload:
    work = load_input(_options(folder, rows, mapping, header))
    assert isinstance(work, SimulatedWorkload)
    return work


def _one(folder: Path, rows: str) -> SimulatedApplication:
    (application,) = _read(folder, rows).applications
    return application


def test_a_row_is_an_application(tmp_path: Path) -> None:
    """Names are those of the file; a job with more processors than a node becomes several tasks."""
    one = _one(tmp_path, "a7,100,60,5,8,2048,ann,chem,Long\n")

    assert ("a7", "root.long", "ann", ("chem",), 0, 300 * SECOND, {"namespace": "chem"}) == (
        one.application_id,
        one.queue,
        one.user,
        one.groups,
        one.submit_at_ns,
        one.walltime_ns,
        one.tags,
    )
    assert [({"vcore": 4000, "memory": 2**30}, 2, 60 * SECOND)] == [
        (task.resources, task.count, task.duration_ns) for task in one.tasks
    ]


def test_tags_are_sent_with_the_application(tmp_path: Path) -> None:
    """Placement rules and limits may ask for them."""
    message = new_application_message(_one(tmp_path, "a7,100,60,5,8,2048,ann,chem,Long\n"))

    assert {"namespace": "chem", "walltime": "5m0s"} == dict(message.tags)


def test_a_fraction_of_a_processor_is_kept(tmp_path: Path) -> None:
    """In thousandths, with the memory of the whole job."""
    (task,) = _one(tmp_path, "a7,100,60,5,1.5,1,ann,chem,Long\n").tasks

    assert (1, {"vcore": 1500, "memory": 1 << 20}) == (task.count, task.resources)


TIMES: dict[str, tuple[str, str, int, int]] = {
    "numbers of seconds": ("40", "2.5", 30, 2_500_000_000),
    "a date and a clock": ("1970-01-01T00:01:00", "1-00:00:01", 50, 86_401 * SECOND),
    "a date of another zone": ("1970-01-01T01:01:00+01:00", "00:00:10", 50, 10 * SECOND),
    "a duration": ("40", "1h30m", 30, 5400 * SECOND),
}


@pytest.mark.parametrize("case", TIMES.values(), ids=TIMES)
def test_times_have_many_forms(case: tuple[str, str, int, int], tmp_path: Path) -> None:
    """They count from the first submission, here ten seconds after 1970 began."""
    submitted, elapsed, expected_s, expected_run_ns = case
    rows = f"first,10,1,,1,,u,,\nother,{submitted},{elapsed},,1,,u,,\n"

    other = _read(tmp_path, rows).applications[1]

    assert (expected_s * SECOND, expected_run_ns) == (other.submit_at_ns, other.tasks[0].duration_ns)


def test_a_run_may_be_the_time_between_two_columns(tmp_path: Path) -> None:
    """Every other column may be missing: one processor each, numbered names."""
    mapping = "submit: at\nstart: began\nend: ended\ndelimiter: ;\n"

    work = _read(tmp_path, '5;"7";9\n6;8;9\n', mapping, "at;began;ended\n")

    assert [("job-1", 2, {"vcore": 1000}), ("job-2", 1, {"vcore": 1000})] == [
        (one.application_id, (one.tasks[0].duration_ns or 0) // SECOND, one.tasks[0].resources)
        for one in work.applications
    ]
    assert ("root.default", "unknown") == (work.applications[0].queue, work.applications[0].user)


def test_what_is_not_known_is_noted(tmp_path: Path) -> None:
    """Rows without a time or size are skipped, a walltime that is said to be unknown is none."""
    work = _read(tmp_path, "a,1,,,1,,u,,\nb,1,5,,,,u,,\nc,1,5,UNLIMITED,1,,u,,\nd,,5,,1,,u,,\n")

    assert [("c", None)] == [(one.application_id, one.walltime_ns) for one in work.applications]
    assert [
        "job skipped: number of processors unknown",
        "job skipped: run time unknown",
        "job skipped: submit time unknown",
    ] == sorted(note.text for note in work.notes)


def test_jobs_may_start_as_a_whole(tmp_path: Path) -> None:
    """The options of logs are for these too."""
    options = _options(tmp_path, "a,1,5,,16,,u,,\nb,1,5,,8,,u,,\n")
    whole = InputOptions(
        path=options.path, csv_mapping_path=options.csv_mapping_path, jobs=JobOptions(whole=True)
    )

    work = load_input(whole)

    assert isinstance(work, SimulatedWorkload)
    assert ["b"] == [one.application_id for one in work.applications]


BAD_ROWS: dict[str, tuple[str, str]] = {
    "no duration": (
        "a,1,5x,,1,,u,,\n",
        "jobs.csv:2:5: elapsed: '5x' is not a duration; write a number, 1-02:03:04 or 1h30m",
    ),
    "no time": (
        "a,soon,5,,1,,u,,\n",
        "jobs.csv:2:3: submitted: 'soon' is neither a number nor a date with a time",
    ),
    "no memory": (
        "a,1,5,,1,4GB,u,,\n",
        "jobs.csv:2:10: mem: '4GB' is not an amount of memory; write a number or 4Gi",
    ),
    "too large": ("a,1,99999999999,,1,,u,,\n", "jobs.csv:2:5: elapsed: '99999999999' is too large"),
    "a name twice": (
        "a,1,5,,1,,u,,\na,1,5,,1,,u,,\n",
        "jobs.csv:3:1: id: 'a' stands already in line 2",
    ),
    "a field too few": ("a,1\n", "jobs.csv:2: 2 fields where the header has 9: 'a' ..."),
    "no rows": ("", "jobs.csv: there is no job below the header"),
    "a wrong field after one in quotes": (
        '"a",1,5,,x,,u,,\n',
        "jobs.csv:2: cores: 'x' is not a number",
    ),
}


@pytest.mark.parametrize("case", BAD_ROWS.values(), ids=BAD_ROWS)
def test_a_wrong_row_is_named_with_its_place(case: tuple[str, str], tmp_path: Path) -> None:
    """Line and column are those of the file, where they can be counted."""
    rows, error = case

    with pytest.raises(LicorneError) as caught:
        _read(tmp_path, rows)

    assert f"{tmp_path}/{error}" == str(caught.value)


BAD_MAPPINGS: dict[str, tuple[str, str]] = {
    "no run time": (
        "submit: submitted\nstart: elapsed\n",
        "1:1: document: how long jobs ran is in one column (run), or is the time between two (start and end)",
    ),
    "a column that is not there": (
        "submit: submitted\nrun: elapse\n",
        "2:6: run: the header of {folder}/jobs.csv has no column 'elapse'; did you mean 'elapsed'?",
    ),
    "an unknown key": (
        "submit: submitted\nrun: elapsed\ncpu: cores\n",
        "3:1: cpu: unknown key 'cpu'; did you mean 'cpus'?",
    ),
    "an unknown unit": (
        "submit: submitted\nrun: {column: elapsed, unit: w}\n",
        "2:30: run.unit: expected 'ns', 'us', 'ms', 's', 'm', 'h' or 'd', not 'w'",
    ),
    "no submission": ("run: elapsed\n", "1:1: submit: the key 'submit' is missing"),
}


@pytest.mark.parametrize("case", BAD_MAPPINGS.values(), ids=BAD_MAPPINGS)
def test_a_wrong_mapping_is_named_with_its_place(case: tuple[str, str], tmp_path: Path) -> None:
    """Nothing of the jobs is used then."""
    mapping, error = case

    with pytest.raises(LicorneError) as caught:
        _read(tmp_path, "a,1,5,,1,,u,,\n", mapping)

    assert f"{tmp_path}/mapping.yaml:{error.format(folder=tmp_path)}" == str(caught.value)


def test_an_input_of_another_kind_has_no_mapping(tmp_path: Path) -> None:
    """The suffix says so."""
    path = written(tmp_path / "day.yaml", "nodes: []\n")

    with pytest.raises(LicorneError) as caught:
        load_input(InputOptions(path=path, csv_mapping_path=tmp_path / "mapping.yaml"))

    assert f"{path}: this is a scenario: it has no columns for {tmp_path}/mapping.yaml" == str(caught.value)


_ACME = """\
submit: submit_time
start: start_time
run: duration
cpus: cpu_num
resources: {gpu: gpu_num}
tasks: node_num
user: user
job: job_id
where: {state: [COMPLETED, FAILED]}
"""
_ACME_ROWS = """\
job_id,user,node_num,gpu_num,cpu_num,state,submit_time,start_time,duration
9000001,u1,1,8,128,FAILED,2023-03-01 00:18:22+08:00,2023-03-01 00:18:54+08:00,117
9000002,u2,8,64,1024,COMPLETED,2023-03-01 00:23:58+08:00,2023-03-01 00:24:11+08:00,2693
9000003,u2,0,0,4,CANCELLED,2023-03-01 00:24:58+08:00,,0
"""
_PAI = """\
submit: start_time
start: start_time
end: end_time
cpus: {column: plan_cpu, times: 0.01, per: task}
memory: {column: plan_mem, unit: Gi, per: task}
resources: {gpu: {column: plan_gpu, times: 10, per: task}}
tasks: inst_num
job: job_name
part: task_name
"""
_PAI_ROWS = """\
job_name,task_name,inst_num,start_time,end_time,plan_cpu,plan_mem,plan_gpu
a1,worker,4.0,494319.0,495239.0,600.0,0.5,50.0
a1,ps,1.0,494320.0,495240.0,50.0,1,
a2,tensorflow,1.0,494320.0,,,,100.0
"""


def _tasks_of(work: SimulatedWorkload) -> list[tuple[str, int, dict[str, int]]]:
    return [
        (task.key, task.count, dict(task.resources))
        for application in work.applications
        for task in application.tasks
    ]


def _read_with(folder: Path, mapping: str, text: str, machines: str) -> SimulatedWorkload:
    work = load_input(
        InputOptions(
            path=written(folder / "jobs.csv", text),
            csv_mapping_path=written(folder / "mapping.yaml", mapping),
            nodes_path=written(folder / "pool.machines", machines),
        )
    )
    assert isinstance(work, SimulatedWorkload)
    return work


def test_a_row_has_devices_and_tasks_and_a_filter_leaves_rows_out(tmp_path: Path) -> None:
    """A job of eight nodes is eight tasks; a cancelled one is none of a second."""
    work = _read_with(tmp_path, _ACME, _ACME_ROWS, "0 pool 8 128 1 8388608 gpu=8\n")
    each = {"vcore": 128_000, "gpu": 8}

    assert [("9000001", 1, each), ("9000002", 8, each)] == _tasks_of(work)
    assert [InputNote(1, "row left out by `where` of the mapping")] == list(work.notes)
    assert [32 * SECOND, 349 * SECOND] == [each.recorded_start_ns for each in work.applications]


def test_a_job_without_a_start_is_left_out(tmp_path: Path) -> None:
    """Its elapsed time of 0 is no run time."""
    mapping = _ACME.replace("where: {state: [COMPLETED, FAILED]}\n", "")
    work = _read_with(tmp_path, mapping, _ACME_ROWS, "0 pool 8 128 1 8388608 gpu=8\n")

    assert ["9000001", "9000002"] == [each.application_id for each in work.applications]
    assert [InputNote(1, "job skipped: run time unknown")] == list(work.notes)


def test_rows_of_one_job_are_its_parts(tmp_path: Path) -> None:
    """Each with its own times and amounts, of each task: fractions of processors and of devices too."""
    work = _read_with(tmp_path, _PAI, _PAI_ROWS, "0 pool 2 96 1 8388608 gpu=2000\n")

    assert [
        ("a1-worker", 4, {"vcore": 6000, "memory": 1 << 29, "gpu": 500}),
        ("a1-ps", 1, {"vcore": 500, "memory": 1 << 30}),
    ] == _tasks_of(work)
    assert [0, SECOND] == [task.submit_at_ns for task in work.applications[0].tasks]


@pytest.mark.parametrize(
    ("mapping", "text", "error"),
    [
        (_PAI, _PAI_ROWS.replace("4.0", "4.5"), "jobs.csv:2:11: inst_num: '4.5' is not a whole number"),
        (_PAI, _PAI_ROWS.replace(",50.0", ",half"), "jobs.csv:2:43: plan_gpu: 'half' is not a number"),
        (_PAI, _PAI_ROWS + "a1,ps,1,1,2,3,4,5\n", "jobs.csv:5:1: job_name: 'a1' stands already in line 3"),
        (_PAI.replace("plan_gpu", "gpus"), _PAI_ROWS, "mapping.yaml:6:"),
        (_ACME.replace("{state", "{State"), _ACME_ROWS, "has no column 'State'; did you mean 'state'"),
        (_PAI.replace("0.01", "0"), _PAI_ROWS, "mapping.yaml:4:33: cpus.times: "),
        (_ACME + "end: submit_time\n", _ACME_ROWS, "how long jobs ran is in one column"),
    ],
)
def test_a_wrong_amount_or_column_is_an_error(mapping: str, text: str, error: str, tmp_path: Path) -> None:
    """With its place."""
    with pytest.raises(LicorneError) as caught:
        _read_with(tmp_path, mapping, text, "0 pool 2 96 1 8388608 gpu=2000\n")

    assert error in str(caught.value)
