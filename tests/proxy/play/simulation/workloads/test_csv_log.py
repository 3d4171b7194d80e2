from __future__ import annotations

from pathlib import Path

import pytest
from support.proxy.simulation_builders import SECOND, written

from licorne.model.errors import LicorneError
from licorne.proxy.play.simulation.si_messages import new_application_message
from licorne.proxy.play.simulation.workloads.inputs import InputOptions, load_input
from licorne.proxy.play.simulation.workloads.swf import JobOptions
from licorne.proxy.play.simulation.workloads.workload import SimulatedApplication, SimulatedWorkload

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
        "jobs.csv:2:5: elapsed: '5x' is no duration; write a number, 1-02:03:04 or 1h30m",
    ),
    "no time": (
        "a,soon,5,,1,,u,,\n",
        "jobs.csv:2:3: submitted: 'soon' is neither a number nor a date with a time",
    ),
    "half a processor": ("a,1,5,,1.5,,u,,\n", "jobs.csv:2:8: cores: '1.5' is not a whole number"),
    "no memory": (
        "a,1,5,,1,4GB,u,,\n",
        "jobs.csv:2:10: mem: '4GB' is no amount of memory; write a number or 4Gi",
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
        "jobs.csv:2: cores: 'x' is not a whole number",
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
