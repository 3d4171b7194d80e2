"""Summaries as JSON documents, and back. `report.schema.json` is the schema; its version is here.

A document of another version is refused: its meaning is not known here.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from ..findings.findings import scenario, suggestion
from ..findings.json_files import open_document, read_text, value_of, values_of
from ..sessions.summaries import Summary

FORMAT: Final = "licorne.lockcheck.report"
VERSION: Final = 1


def to_json(summary: Summary) -> str:
    """Return a summary as a document; the same summary gives the same text."""
    return json.dumps(document_of(summary), indent=1, ensure_ascii=False) + "\n"


def from_json(text: str, where: str) -> Summary:
    """Return the summary of a document.

    Raises:
        LockUsageError: it is not such a document, or one of another version; the message begins with `where`.
    """
    summary: Summary = value_of(Summary, open_document(text, where, FORMAT, VERSION), where)
    return summary


def read_document(path: str) -> Summary:
    """Return the summary of a file.

    Raises:
        LockUsageError: the file cannot be read, or is not a document.
    """
    return from_json(read_text(Path(path)), path)


def document_of(summary: Summary) -> dict[str, Any]:
    """Return a summary as JSON values, with what people read of each finding."""
    document: dict[str, Any] = {"format": FORMAT, "version": VERSION, **values_of(summary)}
    for values, finding in zip(document["findings"], summary.findings, strict=True):
        values.update(scenario=list(scenario(finding)), suggestion=suggestion(finding, summary.sites))
    return document
