from __future__ import annotations

from pathlib import Path

import pytest
from support.proxy.simulation_builders import SECOND, written

from licorne.proxy.files.input_errors import InputError
from licorne.proxy.simulation.workloads.swf_log import UNKNOWN, SwfLog, read_swf_log

_JOB = "7 10 3 60 4 59.5 -1 8 100 2048 1 12 5 -1 2 1 -1 -1"


def _read(folder: Path, text: str) -> SwfLog:
    return read_swf_log(written(folder / "log.swf", text))


def _refused(folder: Path, text: str) -> str:
    with pytest.raises(InputError) as caught:
        _read(folder, text)
    return str(caught.value).removeprefix(f"{folder}/")


def test_a_line_is_a_job(tmp_path: Path) -> None:
    """Columns may be apart by any number of blanks."""
    job = _read(tmp_path, f"; a comment\n\n   {_JOB.replace(' ', '   ')}\n").jobs[0]

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
    log = _read(tmp_path, f"; MaxNodes: 3\n; MaxProcs:  12 \n;Note: MaxProcs: 9x\n{_JOB}\n")

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
    job = _read(tmp_path, _JOB + extra).jobs[0]

    assert expected == (job.queue_name, job.request)


@pytest.mark.parametrize(("text", "run_ns"), [("1.500000001", 1_500_000_001), ("-1359980917", UNKNOWN)])
def test_times_of_broken_logs_are_read(tmp_path: Path, text: str, run_ns: int) -> None:
    """Fractions of seconds are exact; some run times are minus forty years, and count as unknown."""
    assert run_ns == _read(tmp_path, _JOB.replace(" 60 ", f" {text} ")).jobs[0].run_ns


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
