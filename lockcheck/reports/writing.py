"""Writing reports in the forms that options ask for."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from ..findings.terms import REPORT_FORMS, LockUsageError
from ..sessions.summaries import Summary
from .documents import to_json
from .sarif import to_sarif


class ReportInput(NamedTuple):
    """The contents of a report."""

    summary: Summary
    root: Path
    """The folder that places in the code are relative to."""
    accepted: Mapping[str, str]
    """The reasons of what a baseline accepts, by fingerprint."""


FORMS: Final[Mapping[str, Callable[[ReportInput], str]]] = {
    "sarif": lambda it: to_sarif(it.summary, it.root, suppressed=it.accepted),
    "json": lambda it: to_json(it.summary),
}
"""How each form is made; `REPORT_FORMS` describes them."""


def add_report_options(parser: ArgumentParser) -> None:
    """Add to a command the options for the files of its reports, and for the rung from which on it fails."""
    parser.add_argument(
        "--fail-on", metavar="RUNGS",
        help="the rung from which on a finding fails (R2), and R0; R2,RB for blocking calls too",
    )  # fmt: skip
    for name, described in REPORT_FORMS.items():
        parser.add_argument(
            f"--{name}", metavar="FILE", help=f"write a report as {described}; - for the output"
        )


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
    accepted: Mapping[str, str],
    show: Callable[[str], object] | None = None,
) -> None:
    """Write a summary in some forms.

    Args:
        paths: the file of each form that is asked for; `-` is the standard output.
        summary: what was found.
        root: the folder to which places in the code are relative.
        accepted: the reasons of the findings that a baseline accepts, by fingerprint.
        show: replaces the standard output, where it is captured.

    Raises:
        LockUsageError: a file cannot be written.
    """
    given = ReportInput(summary, root, accepted)
    for name, form in FORMS.items():
        path = paths.get(name)
        if not path:
            continue
        # Names of locks may be no valid text, such as those of some files.
        text = form(given).encode("utf-8", "backslashreplace").decode("utf-8")
        if path == "-":
            (show or sys.stdout.write)(text)
        else:
            try:
                Path(path).write_text(text, encoding="utf-8")
            except OSError as error:
                raise LockUsageError(f"--{name} {path}: cannot be written: {error.strerror}") from None
