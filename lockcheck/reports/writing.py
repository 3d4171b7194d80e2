"""Writing reports in the forms that options ask for."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

from ..findings.statistics import Spread, Usage, usages_together
from ..findings.terms import LockUsageError, Rung
from ..sessions.summaries import Summary
from .annotations import to_annotations
from .documents import to_json
from .junit import to_junit
from .page import to_html
from .sarif import to_sarif

Group: TypeAlias = Literal["class", "site", "key"]
GROUPS: Final[tuple[Group, ...]] = ("class", "site", "key")
_SPREAD_HEADS: Final = ("total", "p50", "p99", "max")


class ReportInput(NamedTuple):
    """The contents of a report."""

    summary: Summary
    root: Path
    """The folder that places in the code are relative to."""
    fail_on: Collection[Rung]
    accepted: Mapping[str, str]
    """The reasons of what a baseline accepts, by fingerprint."""


class ReportForm(NamedTuple):
    """The description of a report for `--help`, and how it is made."""

    described: str
    text: Callable[[ReportInput], str]


FORMS: Final[Mapping[str, ReportForm]] = {
    "html": ReportForm("one HTML page", lambda it: to_html(it.summary)),
    "sarif": ReportForm("SARIF 2.1.0", lambda it: to_sarif(it.summary, it.root, suppressed=it.accepted)),
    "json": ReportForm("JSON", lambda it: to_json(it.summary)),
    "junit": ReportForm("JUnit XML", lambda it: to_junit(it.summary, it.fail_on, accepted=it.accepted)),
    "github": ReportForm(
        "annotations of GitHub's workflows",
        lambda it: to_annotations(it.summary, it.root, it.fail_on, accepted=it.accepted),
    ),
}
"""The forms by the names of their options: `--json`, under pytest `--lockcheck-json`."""


def add_report_options(parser: ArgumentParser) -> None:
    """Add to a command the options for the files of its reports, and for the rung from which on it fails."""
    parser.add_argument(
        "--fail-on", metavar="RUNGS",
        help="the rung from which on a finding fails (R2), and R0; R2,RB for blocking calls too",
    )  # fmt: skip
    add_form_options(parser.add_argument)


def add_form_options(add: Callable[..., object], prefix: str = "") -> None:
    """Add an option for the file of each form; `prefix` stands before its name."""
    for name, form in FORMS.items():
        add(f"--{prefix}{name}", metavar="FILE", help=f"write a report as {form.described}; - for the output")


def report_paths(options: Namespace, prefix: str = "") -> dict[str, str | None]:
    """Return the file of each form in use; called before a long run, which a wrong path would waste.

    Args:
        options: the parsed options.
        prefix: the text before the form in the name of its option, as an attribute.

    Raises:
        LockUsageError: the folder of a file is missing.
    """
    paths: dict[str, str | None] = {form: getattr(options, prefix + form) for form in FORMS}
    for form, path in paths.items():
        if path and path != "-" and not Path(path).parent.is_dir():
            option = f"--{prefix}{form}".replace("_", "-")
            raise LockUsageError(f"{option} {path}: the folder {Path(path).parent} does not exist")
    return paths


def write_reports(
    paths: Mapping[str, str | None],
    summary: Summary,
    *,
    root: Path,
    fail_on: Collection[Rung],
    accepted: Mapping[str, str],
    show: Callable[[str], object] | None = None,
) -> None:
    """Write a summary in some forms.

    Args:
        paths: the file of each form that is asked for; `-` is the standard output.
        summary: what was found.
        root: the folder to which places in the code are relative.
        fail_on: the rungs that fail.
        accepted: the reasons of the findings that a baseline accepts, by fingerprint.
        show: replaces the standard output, where it is captured.

    Raises:
        LockUsageError: a file cannot be written.
    """
    given = ReportInput(summary, root, fail_on, accepted)
    for name, form in FORMS.items():
        path = paths.get(name)
        if not path:
            continue
        # Names of locks may be no valid text, such as those of some files.
        text = form.text(given).encode("utf-8", "backslashreplace").decode("utf-8")
        if path == "-":
            (show or sys.stdout.write)(text)
        else:
            try:
                Path(path).write_text(text, encoding="utf-8")
            except OSError as error:
                raise LockUsageError(f"--{name} {path}: cannot be written: {error.strerror}") from None


def usage_table(usages: Iterable[Usage], by: Group = "site") -> str:
    """Return usages as a table, in microseconds, the longest waits first.

    Args:
        usages: the usages.
        by: what a line stands for: a class, a place in the code, or a key, each by mode.

    Raises:
        LockUsageError: nothing was noted by key.
    """
    usages = list(usages)
    if by == "key" and usages and all(usage.key is None for usage in usages):
        raise LockUsageError("no times were noted by key: `run --by-key` does, and `session(by_key=True)`")
    groups = usages_together(_of(usage, by) for usage in usages)
    heads = (*(f"wait {head}" for head in _SPREAD_HEADS), *(f"hold {head}" for head in _SPREAD_HEADS))
    where = {"class": "", "site": "at", "key": "key"}[by]
    rows: list[tuple[str, ...]] = [("lock", "taken", "contended", *heads, where)]
    for usage in sorted(groups, key=lambda one: (-one.wait.total, -one.hold.total, one.lock, one.site)):
        times = (f"{time / 1000:.1f}" for spread in (usage.wait, usage.hold) for time in _times(spread))
        counts = (str(usage.hold.count), str(usage.wait.count))
        last = {"class": "", "site": usage.site, "key": usage.key or "(none)"}[by]
        rows.append((f"{usage.lock}[{usage.mode}]", *counts, *times, last))
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def _of(usage: Usage, by: Group) -> Usage:
    """Return a usage without what its group does not distinguish."""
    return replace(usage, site=usage.site if by == "site" else "", key=usage.key if by == "key" else None)


def _times(spread: Spread) -> tuple[int, int, int, int]:
    return spread.total, spread.percentile(50), spread.percentile(99), spread.max
