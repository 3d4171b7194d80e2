"""Reads what `sacct -P` prints, which is recognised by its header, into the form of a workload log.

Columns may be in any order, and only those below are read:

| value | columns, the first one with a value |
|---|---|
| job | `JobID` |
| submission, start | `Submit`, `Start` |
| run time | `Elapsed`, `ElapsedRaw` (seconds) |
| requested time | `Timelimit`, `TimelimitRaw` (minutes) |
| processors | `AllocCPUS`, `NCPUS`, `ReqCPUS`, `cpu` of `AllocTRES` or `ReqTRES` |
| nodes, each one task | `NNodes`, `AllocNodes`, `ReqNodes`, `node` of `AllocTRES` or `ReqTRES` |
| memory | `ReqMem`, or else `mem` of `AllocTRES` or `ReqTRES` |
| devices, each kind a resource | `gres/...` of `AllocTRES` or `ReqTRES` |
| user, group, queue | `User`, `Account`, the first name of `Partition` |
| tags `account` and `qos` | `Account`, `QOS` |
| what it waits for | `Dependency`, or `--dependency` in `SubmitLine` |
| limit of its array | `JobID` of elements that wait (`123_[5-9%2]`), or `--array` in `SubmitLine` |

Of dependencies `afterany`, `afterok`, `afternotok` and `aftercorr` count, where all must be met; others are
ignored and noted. An array is named by its number.

Rows of steps belong to their job. Jobs that have not started or still run are left out and counted: their
elapsed time is not a run time.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from math import ceil
from pathlib import Path
from typing import Final

from .....model.values.dependencies import (
    AFTER_FAILED_TAG,
    AFTER_OK_TAG,
    AFTER_TAG,
    ARRAY_LIMIT_TAG,
    ARRAY_TAG,
)
from ....base.files.input_files import NANOSECONDS_IN_SECOND, InputError
from .csv_log import ColumnDocument, JobRecord, MappingDocument, TimeColumnDocument, records_of
from .swf_log import COMPLETED, FAILED, UNKNOWN, SwfJob, SwfLog

_MILLI: Final = 1000
_MINUTE_NS: Final = 60 * NANOSECONDS_IN_SECOND
_JOB: Final = "JobID"
_SUBMIT: Final = "Submit"
_RUN: Final = ("Elapsed", "ElapsedRaw")
_CPUS: Final = ("AllocCPUS", "NCPUS", "ReqCPUS")
_NODES: Final = ("NNodes", "AllocNodes", "ReqNodes")
_TRES: Final = ("AllocTRES", "ReqTRES")
_REQUIRED: Final = ((_RUN, "how long jobs ran"), ((*_CPUS, *_TRES), "their processors"))
_EMPTY: Final = ["Unknown", "None", "N/A", "UNLIMITED", "Partition_Limit", "INVALID"]
_WAITS: Final = frozenset(
    {"PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD"}
)
_RUNS: Final = frozenset(
    {"RUNNING", "SUSPENDED", "CONFIGURING", "COMPLETING", "RESIZING", "STAGE_OUT", "SIGNALING", "STOPPED"}
)
_MEMORY: Final = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,9})?)([KMGTP]?)B?([cn]?)")
_DEVICES: Final = "gres/"
_COUNT: Final = re.compile(r"[0-9]{1,9}")
_AT_ONCE: Final = re.compile(r"%([1-9][0-9]{0,6})")
_ARRAY: Final = re.compile(r"(?:--array[= ]|(?<!\S)-a ?)(\S+)")
_DEPENDENCY: Final = re.compile(r"(?:--dependency[= ]|(?<!\S)-d ?)(\S+)")
_AFTER: Final = {
    "afterany": AFTER_TAG,
    "afterok": AFTER_OK_TAG,
    "aftercorr": AFTER_OK_TAG,
    "afternotok": AFTER_FAILED_TAG,
}


def is_sacct(text: str) -> bool:
    """Return whether the first line of a text is the header of `sacct -P`."""
    return {_JOB, _SUBMIT} <= set(text.partition("\n")[0].split("|"))


def read_sacct(path: Path) -> SwfLog:
    """Read the jobs of a file.

    Raises:
        InputError: The file cannot be read, a column is missing, or a value is not of its kind.
    """
    document = MappingDocument(
        submit=TimeColumnDocument(column=_SUBMIT),
        delimiter="|",
        unknown=_EMPTY,
        job=ColumnDocument(column=_JOB),
    )
    jobs: dict[str, SwfJob] = {}
    notes: Counter[str] = Counter()
    limits: dict[str, str] = {}
    waits: dict[str, dict[str, str]] = {}
    for number, row in enumerate(records_of(path, document, _check_header), start=1):
        _note_links(row, limits, waits, notes)
        reason = _reason_to_leave_out(row)
        if reason:
            notes[reason] += 1
            continue
        job = _job(number, row)
        if jobs.pop(job.name, None) is not None:
            notes["row of an earlier run of a requeued job: left out"] += 1
        jobs[job.name] = job
        if "," in row.first_text("Partition"):
            notes["job of several partitions: the first counts"] += 1
    if not jobs:
        raise InputError(path, f"there is no job that has ended below the header: {dict(notes)}")
    return SwfLog(path, tuple(_linked(jobs, limits, waits)), notes=notes)


def _note_links(
    row: JobRecord, limits: dict[str, str], waits: dict[str, dict[str, str]], notes: Counter[str]
) -> None:
    """Note the limit of the array of a row, and the tags by which its job waits for others."""
    name, line = row.first_text(_JOB), row.first_text("SubmitLine")
    if "." in name:
        return
    array, _, element = name.partition("_")
    found = _AT_ONCE.search(element) or (
        (array_option := _ARRAY.search(line)) and _AT_ONCE.search(array_option[1])
    )
    if element and found:
        limits[array] = found[1]
    option = _DEPENDENCY.search(line)
    text = row.first_text("Dependency") or (option[1] if option else "")
    if text:
        waits[name] = _after_tags(text, element, notes)


def _after_tags(text: str, element: str, notes: Counter[str]) -> dict[str, str]:
    """Return a dependency such as `afterok:12:13,afterany:14` as tags."""
    names: dict[str, list[str]] = {}
    for part in () if "?" in text else text.split(","):
        kind, *jobs = re.sub(r"\([^)]*\)|_\*", "", part).split(":")
        tag = _AFTER.get(kind)
        if tag is None or not jobs:
            notes[f"dependency {kind!r}: ignored"] += 1
        else:
            names.setdefault(tag, []).extend(
                f"{job}_{element}" if kind == "aftercorr" and element else job for job in jobs
            )
    if "?" in text:
        notes["dependency of which one of several parts is enough ('?'): ignored"] += 1
    return {tag: ",".join(found) for tag, found in names.items()}


def _linked(
    jobs: Mapping[str, SwfJob], limits: Mapping[str, str], waits: Mapping[str, Mapping[str, str]]
) -> Iterator[SwfJob]:
    """Yield the jobs with tags of what they wait for, and of arrays with a limit or that are waited for."""
    named = {name for tags in waits.values() for names in tags.values() for name in names.split(",")}
    for name, job in jobs.items():
        array, _, element = name.partition("_")
        tags = dict(waits.get(name, {}))
        if element and (array in limits or array in named):
            tags[ARRAY_TAG] = array
        if element and array in limits:
            tags[ARRAY_LIMIT_TAG] = limits[array]
        yield replace(job, tags={**job.tags, **tags}) if tags else job


def _check_header(header: list[str], path: Path) -> None:
    """Refuse a header without the columns that every job needs."""
    for names, meaning in _REQUIRED:
        if not set(names) & set(header):
            message = f"expected one of the columns {', '.join(names)} ({meaning}), got {'|'.join(header)}"
            raise InputError(path, message, line=1)


def _reason_to_leave_out(row: JobRecord) -> str:
    """Return why a row is left out, the empty text for a job that has run."""
    name, state = row.first_text(_JOB), row.first_text("State").partition(" ")[0]
    if "." in name:
        return "row of a step: part of its job"
    if state in _WAITS or "[" in name:
        return "job skipped: it waits"
    if state in _RUNS:
        return "job skipped: it still runs, and its run time is unknown"
    has_no_start = row.has("Start") and not row.first_text("Start")
    has_not_run = not _run_ns(row) and (not state or state.startswith("CANCELLED"))
    return "job skipped: it never started" if has_no_start or has_not_run else ""


def _job(number: int, row: JobRecord) -> SwfJob:
    """Return the job of one row."""
    tres = _tres(row)
    cpus = _count(row, _CPUS) or tres.get("cpu", 0)
    nodes = _count(row, _NODES) or tres.get("node", 0)
    resources = {"vcore": cpus * _MILLI, "memory": _memory(row, cpus, nodes) or tres.get("mem", 0)}
    resources |= {name.removeprefix(_DEVICES): count for name, count in tres.items() if _DEVICES in name}
    tags = {"account": row.first_text("Account"), "qos": row.first_text("QOS")}
    return SwfJob(
        line=row.line,
        number=number,
        submit_ns=_time_ns(row, _SUBMIT),
        run_ns=_run_ns(row),
        processors=cpus,
        requested_ns=_duration_ns(row, "Timelimit", "TimelimitRaw", _MINUTE_NS),
        queue_name=row.first_text("Partition").partition(",")[0],
        name=row.first_text(_JOB),
        user_name=row.first_text("User"),
        group_name=row.first_text("Account"),
        tags={tag: text for tag, text in tags.items() if text},
        tasks=nodes,
        resources={name: amount for name, amount in resources.items() if amount} if cpus else {},
        start_ns=_time_ns(row, "Start"),
        status=COMPLETED if row.first_text("State") in {"", "COMPLETED"} else FAILED,
    )


def _time_ns(row: JobRecord, name: str) -> int:
    """Return the time in a column, `UNKNOWN` without one."""
    return row.moment_ns(TimeColumnDocument(column=name)) if row.has(name) else UNKNOWN


def _run_ns(row: JobRecord) -> int:
    return _duration_ns(row, *_RUN, NANOSECONDS_IN_SECOND)


def _duration_ns(row: JobRecord, name: str, raw_name: str, raw_unit_ns: int) -> int:
    """Return the duration in a column, or else in its raw twin; `UNKNOWN` without one."""
    if row.has(name):
        return row.duration_ns(TimeColumnDocument(column=name))
    number = _count(row, (raw_name,))
    return UNKNOWN if number is None else number * raw_unit_ns


def _count(row: JobRecord, names: tuple[str, ...]) -> int | None:
    """Return the first count above zero in some columns; 0 if all are zero, `None` without a count."""
    found = None
    for name in names:
        text = row.first_text(name)
        if text and _COUNT.fullmatch(text) is None:
            raise row.error(ColumnDocument(column=name), f"{text!r} is not a whole number")
        found = (int(text) or found or 0) if text else found
        if found:
            return found
    return found


def _memory(row: JobRecord, cpus: int, nodes: int) -> int:
    """Return the bytes in `ReqMem`: of the job, of older versions of each processor (`c`) or node (`n`)."""
    text = row.first_text("ReqMem")
    if not text:
        return 0
    match = _MEMORY.fullmatch(text)
    if match is None:
        raise row.error(
            ColumnDocument(column="ReqMem"), f"{text!r} is not an amount of memory such as 4G or 4000Mc"
        )
    return _bytes(match) * {"c": cpus, "n": nodes or 1}.get(match[3], 1)


def _bytes(match: re.Match[str]) -> int:
    """Return an amount of memory, rounded up; its unit is MB unless it has another one."""
    return ceil(Fraction(match[1]) * (1024 << 10 * "KMGTP".index(match[2] or "M")))


def _tres(row: JobRecord) -> Mapping[str, int]:
    """Return what a job got, or else requested: `cpu=4,mem=16G,node=1,gres/gpu=2`; devices without types."""
    text = row.first_text(*_TRES)
    amounts: dict[str, int] = {}
    typed: Counter[str] = Counter()
    for name, _, value in (part.partition("=") for part in text.split(",")):
        if name == "mem" and (match := _MEMORY.fullmatch(value)):
            amounts[name] = _bytes(match)
        elif _COUNT.fullmatch(value):
            device, _, kind = name.partition(":")
            if kind:
                typed[device] += int(value)
            else:
                amounts[device] = int(value)
    return {**typed, **amounts}
