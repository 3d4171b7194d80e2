"""Workloads as rows of plain values, one for each job, for data frames: both directions of the conversion.

Times are in seconds, `resources_vcore` in cores, `resources_memory` in bytes; other amounts are unchanged.
Amounts are sums over all tasks of a job.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Annotated, Any, Final, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from .....model.errors import RequestError
from ....base.files.input_files import NANOSECONDS_IN_SECOND
from .scenario import nodes_of
from .scenario_documents import UNKNOWN_KEY, NodesDocument, QueuePath, Resources, error_text
from .swf import PLACEHOLDER_TIMEOUT_NS
from .workload import (
    GangStyle,
    InputNote,
    SimulatedApplication,
    SimulatedNode,
    SimulatedTask,
    SimulatedWorkload,
    configuration_for,
    without_what_never_starts,
)

Row: TypeAlias = "dict[str, Any]"
"""One row: texts, numbers, truth values, and `None` for unknown values."""
RESOURCES: Final = "resources_"
"""The prefix of the names of columns of amounts; the type of the resource follows."""
_MILLI: Final = 1000
_SECONDS_MAX: Final = 9e9
_OF_RUNS: Final = frozenset(
    {"run", "completed", "rejected", "withdrawn", "preempted", "started", "ended", "wait", "slowdown"}
)
"""Columns of the jobs of a run that do not describe a workload."""
_Seconds = Annotated[float, Field(ge=0, le=_SECONDS_MAX, allow_inf_nan=False)]


class _JobRow(BaseModel):
    """One row, without unknown values; amounts are gathered in one mapping."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    job: Annotated[str, Field(min_length=1)] = ""
    queue: QueuePath = "root.default"
    user: Annotated[str, Field(min_length=1)] = "unknown"
    groups: str = ""
    tasks: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    submitted: _Seconds = 0
    run_time: _Seconds | None = None
    walltime: _Seconds | None = None
    priority: Annotated[int, Field(ge=-(2**31), le=2**31 - 1)] = 0
    gang: bool = False
    resources: Resources


_NODES: Final = TypeAdapter(list[NodesDocument])


def seconds(value_ns: int | None) -> float | None:
    """Return nanoseconds as seconds."""
    return None if value_ns is None else value_ns / NANOSECONDS_IN_SECOND


def amount(name: str, value: int) -> float:
    """Return an amount of the scheduler interface in the unit of tables: cores, or unchanged."""
    return value / _MILLI if name == "vcore" else value


def amounts(resources: Mapping[str, int]) -> Row:
    """Return the columns of amounts."""
    return {f"{RESOURCES}{name}": amount(name, value) for name, value in resources.items()}


def rows_of_workload(work: SimulatedWorkload) -> list[Row]:
    """Return a row for each job, in the order of the workload.

    `run_time` is that of the longest task, `None` if it does not end; `walltime` is the requested one.
    """
    return [_row_of(application) for application in work.applications]


def _row_of(application: SimulatedApplication) -> Row:
    tasks = application.tasks
    durations = [task.duration_ns for task in tasks if task.duration_ns is not None]
    asked: dict[str, int] = {}
    for task in tasks:
        for name, value in task.resources.items():
            asked[name] = asked.get(name, 0) + value * task.count
    return {
        "job": application.application_id,
        "queue": application.queue,
        "user": application.user,
        "groups": ";".join(application.groups),
        "tasks": sum(task.count for task in tasks),
        "submitted": application.submit_at_ns / NANOSECONDS_IN_SECOND,
        "run_time": seconds(max(durations)) if len(durations) == len(tasks) else None,
        "walltime": seconds(application.walltime_ns),
        "priority": max(task.priority for task in tasks),
        "gang": application.gang is not None,
        **amounts(asked),
    }


def workload_of_rows(
    rows: Iterable[Mapping[str, object]], nodes: Iterable[SimulatedNode], name: str
) -> SimulatedWorkload:
    """Return the workload of rows, in the order of submission.

    Args:
        rows: A row for each job with equal tasks: amounts are divided by `tasks`, and rounded up. Values that
            are missing, `None` or NaN are unknown.
        nodes: The cluster.
        name: The name of the workload.

    Raises:
        RequestError: A row has an unknown column, or an invalid value; or there are no rows.
    """
    applications: dict[str, SimulatedApplication] = {}
    for number, row in enumerate(rows):
        application = _application(_read(row, number), number)
        if application.application_id in applications:
            raise RequestError(f"rows[{number}].job: {application.application_id!r} is listed twice")
        applications[application.application_id] = application
    if not applications:
        raise RequestError("rows: expected at least one job, got none")
    ordered = sorted(applications.values(), key=lambda each: each.submit_at_ns)
    work = SimulatedWorkload(
        name=name,
        nodes=tuple(nodes),
        applications=tuple(ordered),
        default_configuration=configuration_for(
            (each.queue for each in ordered), has_whole_gangs=any(each.gang for each in ordered)
        ),
    )
    work, left_out = without_what_never_starts(work)
    note = InputNote(left_out, "job skipped: there is no room for the whole of it on the empty cluster")
    return replace(work, notes=(note,)) if left_out else work


def nodes_of_rows(nodes: Iterable[Mapping[str, object]]) -> list[SimulatedNode]:
    """Return the nodes of a list of equal nodes, as in a scenario: `prefix`, `count`, `resources`, ...

    Raises:
        RequestError: An entry does not have that form, or the list is empty.
    """
    try:
        found = list(nodes_of(_NODES.validate_python([dict(each) for each in nodes])))
    except ValidationError as error:
        raise RequestError(
            _error_text("nodes", error.errors(include_url=False)[-1], tuple(NodesDocument.model_fields))
        ) from None
    if not found:
        raise RequestError("nodes: expected at least one, got none")
    return found


def _read(row: Mapping[str, object], number: int) -> _JobRow:
    """Return one parsed row."""
    known = {key: value for key, value in row.items() if not _is_missing(value) and key not in _OF_RUNS}
    asked = {key: value for key, value in known.items() if str(key).startswith(RESOURCES)}
    values: dict[str, Any] = {str(key): value for key, value in known.items() if key not in asked}
    place = f"rows[{number}]"
    values["resources"] = {
        key.removeprefix(RESOURCES): _quantity_text(f"{place}.{key}", key, value)
        for key, value in asked.items()
    }
    try:
        return _JobRow.model_validate(values)
    except ValidationError as error:
        columns = (*_JobRow.model_fields, *_OF_RUNS)
        raise RequestError(_error_text(place, error.errors(include_url=False)[0], columns)) from None


def _is_missing(value: object) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _quantity_text(place: str, key: str, value: object) -> str:
    """Return an amount in the form of a scenario."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise RequestError(f"{place}: expected an amount from 0 on, got {value!r:.60}")
    if key == f"{RESOURCES}vcore":
        return f"{math.ceil(round(value * _MILLI, 6))}m"
    return str(math.ceil(value))


def _error_text(place: str, detail: ErrorDetails, columns: Iterable[str]) -> str:
    """Return one error of a row or of nodes, with its place."""
    names_key = detail["type"] in {UNKNOWN_KEY, "missing"}  # Then the text has the end of the way.
    steps = detail["loc"][:-1] if names_key else detail["loc"]
    way = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    return f"{place}{way}: {error_text(detail, lambda: tuple(columns))}"


def _application(row: _JobRow, number: int) -> SimulatedApplication:
    """Return the application of a row."""
    submit_at_ns = _nanoseconds(row.submitted)
    name = row.job or f"job-{number + 1}"
    task = SimulatedTask(
        key=name,
        resources={kind: -(-value // row.tasks) for kind, value in row.resources.items()},
        submit_at_ns=submit_at_ns,
        duration_ns=None if row.run_time is None else _nanoseconds(row.run_time),
        priority=row.priority,
        count=row.tasks,
    )
    return SimulatedApplication(
        application_id=name,
        queue=row.queue.lower(),
        user=row.user,
        groups=tuple(filter(None, row.groups.split(";"))),
        submit_at_ns=submit_at_ns,
        tasks=(task,),
        gang=GangStyle.SOFT if row.gang else None,
        placeholder_timeout_ns=PLACEHOLDER_TIMEOUT_NS if row.gang else None,
        walltime_ns=None if row.walltime is None else _nanoseconds(row.walltime) or None,
    )


def _nanoseconds(value: float) -> int:
    return round(value * NANOSECONDS_IN_SECOND)
