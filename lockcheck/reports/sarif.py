"""Findings as SARIF 2.1.0, for tools that show them beside the code: one result a finding, one rule a kind.

The place of a result is where the second lock is requested. Each step of a cycle is a flow of a thread, with
the place that took the first lock, the one that wants the second one, and both stacks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import quote

from ..findings.findings import Edge, Finding, suggestion
from ..findings.json_files import JsonValue
from ..findings.terms import DEFAULT_FAIL_ON, Frame, Kind
from ..sessions.summaries import Summary

SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_RULES: Final = tuple(kind.value.replace(" ", "-") for kind in Kind)


def to_sarif(summary: Summary, root: Path, *, suppressed: Mapping[str, str] | None = None) -> str:
    """Return the findings as a SARIF log.

    Args:
        summary: what was found.
        root: the folder to which places in the code are relative.
        suppressed: the reasons of findings that a baseline accepts, by fingerprint.
    """
    driver: dict[str, JsonValue] = {
        "name": "licorne.lockcheck",
        "rules": [
            {"id": f"lockcheck/{name}", "shortDescription": {"text": kind.value}}
            for kind, name in zip(Kind, _RULES, strict=True)
        ],
    }
    results: list[JsonValue] = [
        _result(finding, summary.sites, root, (suppressed or {}).get(finding.fingerprint))
        for finding in summary.findings
    ]
    run: dict[str, JsonValue] = {
        "tool": {"driver": driver},
        "originalUriBaseIds": {"ROOT": {"uri": root.resolve().as_uri() + "/"}},
        "columnKind": "unicodeCodePoints",
        "invocations": [
            {
                "executionSuccessful": not summary.faults,
                "toolExecutionNotifications": [
                    {"level": "error", "message": {"text": fault}} for fault in summary.faults
                ],
            }
        ],
        "results": results,
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def _result(
    finding: Finding, sites: Mapping[str, int], root: Path, reason: str | None
) -> dict[str, JsonValue]:
    advice = suggestion(finding, sites)
    lines = [f"{finding}.", *finding.why, *([f"Suggestion: {advice}."] if advice else [])]
    places = [place for edge in finding.edges if (place := _place(edge, root))]
    stacks = [stack for edge in finding.edges for stack in _stacks(edge, root)]
    flows: list[JsonValue] = [
        {"id": edge.execution, "locations": steps}
        for edge in finding.edges
        if (steps := list(_steps(edge, root)))
    ]
    kind = list(Kind).index(finding.kind)
    result: dict[str, JsonValue] = {
        "ruleId": f"lockcheck/{_RULES[kind]}",
        "ruleIndex": kind,
        "level": "error" if finding.rung in DEFAULT_FAIL_ON else "note",
        "message": {"text": "\n".join(lines)},
        "locations": [_location(frame, root) for frame in places[:1]],
        "relatedLocations": [
            {"id": at, **_location(frame, root)} for at, frame in enumerate(places[1:], start=1)
        ],
        "partialFingerprints": {"lockcheck/v1": finding.fingerprint},
        "occurrenceCount": finding.count,
        "stacks": stacks,
        "properties": {
            "rung": finding.rung.name,
            "test": finding.test,
            "clause": finding.clause,
            "replay": finding.replay,
        },
    }
    if flows:
        result["codeFlows"] = [{"threadFlows": flows}]
    if reason is not None:
        result["suppressions"] = [{"kind": "external", "justification": reason}]
    return result


def _place(edge: Edge, root: Path) -> Frame | None:
    """Return the innermost place of a step that is inside of the root; else that of a library."""
    inside = (
        frame for frame in edge.want_stack or edge.hold_stack if "uriBaseId" in _artifact(frame.file, root)
    )
    return next(inside, edge.place)


def _stacks(edge: Edge, root: Path) -> Iterator[JsonValue]:
    for text, stack in (
        (f"{edge.execution} held {edge.held}", edge.hold_stack),
        (f"{edge.execution} wanted {edge.wanted}", edge.want_stack),
    ):
        if stack:
            yield {
                "message": {"text": text},
                "frames": [{"location": _location(frame, root)} for frame in stack],
            }


def _steps(edge: Edge, root: Path) -> Iterator[JsonValue]:
    for text, stack in ((f"takes {edge.held}", edge.hold_stack), (f"wants {edge.wanted}", edge.want_stack)):
        if stack:
            yield {"location": {**_location(stack[0], root), "message": {"text": text}}}


def _location(frame: Frame, root: Path) -> dict[str, JsonValue]:
    snippet: dict[str, JsonValue] = {"snippet": {"text": frame.source}} if frame.source else {}
    region: dict[str, JsonValue] = {"startLine": max(1, frame.line), **snippet}
    return {
        "physicalLocation": {"artifactLocation": _artifact(frame.file, root), "region": region},
        "logicalLocations": [{"fullyQualifiedName": frame.function, "kind": "function"}],
    }


def _artifact(file: str, root: Path) -> dict[str, JsonValue]:
    path = Path(file)
    if not path.is_absolute():
        return {"uri": quote(Path(file.replace("<", "").replace(">", "")).as_posix())}
    if path.is_relative_to(root.resolve()):
        return {"uri": quote(path.relative_to(root.resolve()).as_posix()), "uriBaseId": "ROOT"}
    return {"uri": path.as_uri()}
