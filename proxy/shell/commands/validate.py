"""`licorne validate`: check queue configurations before they are used."""

from __future__ import annotations

import json
import re
import time
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from ....model.errors import LicorneError
from ...base.terminal.standard_output import BAD_INPUT, ends_on, write_error, write_line
from .options import PolicyOptions, with_settings

if TYPE_CHECKING:
    from ....model.configuration.problems import Problem
    from ....model.configuration.reader import Report
    from ....model.configuration.rules.queue_warnings import GivenPoints
    from ....model.values.documents import Document

_INVALID = 3
_ORDERS_OF_PODS: Final = ("pod-preferences", "pod-preferences-binpacking")
"""The policies of nodes that `licorne kubernetes` gives, which ConfigMaps may name."""
_CONFIG_MAP: Final = re.compile(r"^kind: *[\"']?ConfigMap[\"']?\s*$", re.MULTILINE)
_BLOCK: Final = re.compile(r"^(?P<indent> +)[\"']?queues\.yaml[\"']?: *\|[-+]?[ ]*(#.*)?\n", re.MULTILINE)


@with_settings("policies", PolicyOptions)
def validate(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE",
            help="Queue configurations, or ConfigMaps with queues.yaml (.yaml); - is standard input.",
        ),
    ],
    *,
    policies: PolicyOptions,
    as_json: Annotated[bool, typer.Option("--json", help="Write one JSON document.")] = False,
) -> None:
    """Check queue configurations, and list every error of each with its place.

    Ends with status 2 if one cannot be read, else with 3 if one is invalid. All others are checked then too.
    """
    from ....model.policies.policies import GivenPolicies

    with ends_on(LicorneError, "licorne validate"):
        points = GivenPolicies(policies.given()).points
    documents: list[Document] = []
    statuses: set[int] = set()
    for file in files:
        with ends_on(LicorneError, "licorne validate"):
            report, status = _inspected(file, points)
        statuses.add(status)
        notes = _notes(str(file), report)
        if not as_json and status != BAD_INPUT:
            _print(str(file), report.errors, report.warnings, notes)
        documents.append(_report_document(str(file), report, notes))
    if as_json:
        write_line(json.dumps(documents, indent=2, ensure_ascii=False))
    raise typer.Exit(min(filter(None, statuses), default=0))


def _inspected(file: Path, points: GivenPoints) -> tuple[Report, int]:
    """Return what is wrong with a file, and its status; print at once that it cannot be read."""
    from ....model.configuration.problems import Problem
    from ....model.configuration.reader import Report, inspect, past_window_problems, policy_problems
    from ....model.configuration.schema import SchedulerConfig
    from ....model.policies.policies import PolicyPoint
    from ...base.files.input_files import InputError, read_standard_input, read_text

    try:
        whole = read_standard_input() if str(file) == "-" else read_text(file)
        text = _queues_in(whole)
    except InputError as error:
        write_error(f"licorne validate: {error}")
        problem = Problem(str(file), error.line or 1, error.column or 1, "document", error.message)
        return Report(None, (problem,), ()), BAD_INPUT
    if _CONFIG_MAP.search(whole):
        points = {**dict.fromkeys(_ORDERS_OF_PODS, (PolicyPoint.NODE_ORDER,)), **points}
    report = inspect(text, str(file))
    if report.config is not None:
        unknown = policy_problems(report.config, points, source=str(file))
        over = past_window_problems(report.config, SchedulerConfig(), time.time_ns(), source=str(file))
        report = Report(None if unknown else report.config, unknown, (*report.warnings, *over))
    return report, 0 if report.config is not None else _INVALID


def _queues_in(text: str) -> str:
    """Return the queues of a ConfigMap in its lines, so that errors have their places; another text as it is.

    The lines of the ConfigMap itself are empty. Its text must be a literal block, as people write it.
    """
    block = _BLOCK.search(text) if _CONFIG_MAP.search(text) else None
    if block is None:
        return text
    lines = text[block.end() :].split("\n")
    indent = f"{block['indent']} "
    kept = list(takewhile(lambda line: not line.strip() or line.startswith(indent), lines))
    return "\n" * text.count("\n", 0, block.end()) + "\n".join(kept) + "\n"


def _notes(file: str, report: Report) -> list[Problem]:
    """Return what a valid configuration promises: the bounds on starvation."""
    from ....model.configuration.problems import Problem
    from ....model.configuration.queue_properties import starvation_bounds

    partitions = () if report.config is None else report.config.partitions
    return [Problem.of(note, file) for partition in partitions for note in starvation_bounds(partition.root)]


def _print(
    file: str, errors: tuple[Problem, ...], warnings: tuple[Problem, ...], notes: list[Problem]
) -> None:
    for problem in errors:
        write_line(str(problem))
    for kind, problems in (("warning", warnings), ("note", notes)):
        for problem in problems:
            write_line(f"{problem} ({kind})")
    if not errors:
        write_line(f"{file}: valid")


def _report_document(file: str, report: Report, notes: list[Problem]) -> Document:
    return {
        "file": file,
        "valid": report.config is not None,
        "errors": [_document(problem) for problem in report.errors],
        "warnings": [_document(problem) for problem in report.warnings],
        "notes": [_document(problem) for problem in notes],
    }


def _document(problem: Problem) -> Document:
    return {
        "line": problem.line,
        "column": problem.column,
        "path": problem.path,
        "text": problem.text,
    }
