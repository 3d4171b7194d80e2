"""`licorne validate`: check queue configurations before they are used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .bad_input import ends_on

if TYPE_CHECKING:
    from ..model.configuration.problems import Problem
    from ..model.views import Document

__all__ = ["validate"]

_INVALID = 3


def validate(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Queue configurations (.yaml).")],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Write one JSON document.")] = False,
) -> None:
    """Check queue configurations, and say all that is wrong with each, and where.

    Ends with status 3 if one is invalid, and with 2 if one cannot be read.
    """
    from ..model.configuration.reader import inspect

    documents: list[Document] = []
    for file in files:
        with ends_on((OSError, UnicodeError), f"licorne validate: {file}"):
            report = inspect(file.read_text(encoding="utf-8"), str(file))
        if not as_json:
            _print(str(file), report.errors, report.warnings)
        documents.append(
            {
                "file": str(file),
                "valid": report.config is not None,
                "errors": [_document(problem) for problem in report.errors],
                "warnings": [_document(problem) for problem in report.warnings],
            },
        )
    if as_json:
        typer.echo(json.dumps(documents, indent=2, ensure_ascii=False))
    if not all(document["valid"] for document in documents):
        raise typer.Exit(_INVALID)


def _print(file: str, errors: tuple[Problem, ...], warnings: tuple[Problem, ...]) -> None:
    for problem in errors:
        typer.echo(str(problem))
    for problem in warnings:
        typer.echo(f"{problem} (warning)")
    if not errors:
        typer.echo(f"{file}: valid")


def _document(problem: Problem) -> Document:
    return {
        "line": problem.line,
        "column": problem.column,
        "path": problem.path,
        "text": problem.text,
    }
