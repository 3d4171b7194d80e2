"""Reports in every form, written where somebody asks for them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ..findings.errors import LockUsageError
from ..findings.evidence import Rung
from .annotations import to_annotations
from .documents import to_json
from .junit import to_junit
from .page import to_html
from .sarif import to_sarif

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable, Collection, Mapping

    from ..sessions.summaries import Summary

__all__ = ["FORMS", "add_report_options", "report_paths", "write_reports"]

FORMS: Final = {
    "html": "one HTML page",
    "sarif": "SARIF 2.1.0",
    "json": "JSON",
    "junit": "JUnit XML",
    "github": "annotations of GitHub's workflows",
}
"""The names of the forms, and what each is."""


def add_report_options(parser: ArgumentParser) -> None:
    """Add to a command where its reports go, by form, and the rung from which on it fails."""
    parser.add_argument(
        "--fail-on", choices=[rung.name for rung in Rung], default=Rung.R2.name, metavar="RUNG",
        help="the rung from which on a finding fails (R2); R0 always does",
    )  # fmt: skip
    add_form_options(parser.add_argument)


def add_form_options(add: Callable[..., object], prefix: str = "") -> None:
    """Add an option for the file of each form; `prefix` stands before its name."""
    for form, described in FORMS.items():
        add(f"--{prefix}{form}", metavar="FILE", help=f"write a report as {described}; - for the output")


def report_paths(options: Namespace, prefix: str = "") -> dict[str, str | None]:
    """Return where each form goes, if anywhere; asked before what takes long, since a wrong path loses that.

    Args:
        options: what was given.
        prefix: what stands before the form in the name of its option, as an attribute.

    Raises:
        LockUsageError: the folder of a file is missing.
    """
    paths: dict[str, str | None] = {form: getattr(options, prefix + form) for form in FORMS}
    for form, path in paths.items():
        if path and path != "-" and not Path(path).parent.is_dir():
            option = f"--{prefix}{form}".replace("_", "-")
            raise LockUsageError(f"{option} {path}: there is no folder {Path(path).parent}")
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
        paths: where each form goes, if anywhere; `-` is the standard output.
        summary: what was found.
        root: the folder that places in the code are told relative to.
        fail_on: the rungs that fail.
        accepted: the reasons of what a baseline accepts, by fingerprint.
        show: what stands for the standard output, where it is captured.

    Raises:
        LockUsageError: a file cannot be written.
    """
    texts: dict[str, Callable[[], str]] = {
        "html": lambda: to_html(summary),
        "sarif": lambda: to_sarif(summary, root, suppressed=accepted),
        "json": lambda: to_json(summary),
        "junit": lambda: to_junit(summary, fail_on, accepted=accepted),
        "github": lambda: to_annotations(summary, root, fail_on, accepted=accepted),
    }
    for form in FORMS:
        path = paths.get(form)
        if not path:
            continue
        # Names of locks may be no text, such as those of some files.
        text = texts[form]().encode("utf-8", "backslashreplace").decode("utf-8")
        if path == "-":
            (show or sys.stdout.write)(text)
        else:
            try:
                Path(path).write_text(text, encoding="utf-8")
            except OSError as error:
                raise LockUsageError(f"--{form} {path}: cannot be written: {error.strerror}") from None
