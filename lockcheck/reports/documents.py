"""Summaries as JSON documents, and back. `report.schema.json` is the schema; its version is here.

A document of another version is refused: its meaning is not known here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Final

from ..findings.findings import Edge, Finding, scenario, suggestion
from ..findings.json_files import Fields, JsonValue, json_of_point, open_document, read_point, read_text
from ..findings.terms import MODES, Frame, Kind, Rung
from ..order.order import OrderStep
from ..sessions.summaries import Contract, Declaration, ObservedEdge, Summary

FORMAT: Final = "licorne.lockcheck.report"
VERSION: Final = 1

_RUNGS: Final = {rung.name: rung for rung in Rung}
_KINDS: Final = {kind.value: kind for kind in Kind}


def to_json(summary: Summary) -> str:
    """Return a summary as a document; the same summary gives the same text."""
    return json.dumps(document_of(summary), indent=1, ensure_ascii=False) + "\n"


def from_json(text: str, where: str) -> Summary:
    """Return the summary of a document.

    Raises:
        LockUsageError: it is not such a document, or one of another version; the message begins with `where`.
    """
    fields = open_document(text, where, FORMAT, VERSION)
    return Summary(
        level=fields.text("level"),
        findings=fields.each("findings", _read_finding),
        class_edges=fields.each("nestings", _read_class_edge),
        orders=fields.each("orders", _read_declaration),
        contracts=fields.each(
            "contracts", lambda contract: Contract(contract.text("name"), contract.number("checked"))
        ),
        dependencies=fields.number("dependencies"),
        acquisitions=fields.number_or_none("acquisitions") if fields.has("acquisitions") else None,
        skipped=fields.number("skipped"),
        unexamined=fields.number("unexamined"),
        searches_given_up=fields.number("searches_given_up"),
        faults=fields.texts("faults"),
        unwatched=fields.texts("unwatched") if fields.has("unwatched") else (),
        greenlets=fields.has("greenlets"),
    )


def read_document(path: str) -> Summary:
    """Return the summary of a file.

    Raises:
        LockUsageError: the file cannot be read, or is not a document.
    """
    return from_json(read_text(Path(path)), path)


def document_of(summary: Summary) -> dict[str, JsonValue]:
    """Return a summary as JSON values."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "level": summary.level,
        "findings": [_finding(finding, summary.sites) for finding in summary.findings],
        "nestings": [_class_edge(class_edge) for class_edge in summary.class_edges],
        "orders": [_declaration(order) for order in summary.orders],
        "contracts": [asdict(contract) for contract in summary.contracts],
        "dependencies": summary.dependencies,
        "acquisitions": summary.acquisitions,
        "skipped": summary.skipped,
        "unexamined": summary.unexamined,
        "searches_given_up": summary.searches_given_up,
        "faults": list(summary.faults),
        "unwatched": list(summary.unwatched),
        **({"greenlets": True} if summary.greenlets else {}),
    }


def _finding(finding: Finding, sites: Mapping[str, int]) -> dict[str, JsonValue]:
    return {
        "rung": finding.rung.name,
        "kind": finding.kind.value,
        "text": finding.text,
        "fingerprint": finding.fingerprint,
        "count": finding.count,
        "test": finding.test,
        "clause": finding.clause,
        "why": list(finding.why),
        "edges": [_edge(edge) for edge in finding.edges],
        "stops": [json_of_point(point) for point in finding.points],
        "replay": finding.replay,
        "scenario": list(scenario(finding)),
        "suggestion": suggestion(finding, sites),
    }


def _read_finding(fields: Fields) -> Finding:
    """Return a finding; `scenario` and `suggestion` are computed from the rest, so they are not read."""
    return Finding(
        rung=fields.choice("rung", _RUNGS),
        kind=fields.choice("kind", _KINDS),
        text=fields.text("text"),
        edges=fields.each("edges", _read_edge),
        why=fields.texts("why"),
        clause=fields.text_or_none("clause"),
        fingerprint=fields.text("fingerprint"),
        count=fields.number("count"),
        test=fields.text_or_none("test"),
        points=fields.each("stops", read_point),
        replay=fields.text_or_none("replay"),
    )


def _edge(edge: Edge) -> dict[str, JsonValue]:
    return {
        "unit": edge.execution,
        "held": edge.held,
        "wanted": edge.wanted,
        "nesting": edge.class_edge,
        "all_held": list(edge.all_held),
        "hold_stack": [asdict(frame) for frame in edge.hold_stack],
        "want_stack": [asdict(frame) for frame in edge.want_stack],
    }


def _read_edge(fields: Fields) -> Edge:
    return Edge(
        execution=fields.text("unit"),
        held=fields.text_or_none("held"),
        wanted=fields.text("wanted"),
        all_held=fields.texts("all_held"),
        hold_stack=fields.each("hold_stack", _read_frame),
        want_stack=fields.each("want_stack", _read_frame),
        class_edge=fields.text_or_none("nesting"),
    )


def _read_frame(fields: Fields) -> Frame:
    return Frame(fields.text("file"), fields.number("line"), fields.text("function"), fields.text("source"))


def _class_edge(class_edge: ObservedEdge) -> dict[str, JsonValue]:
    return {
        "held": class_edge.held,
        "held_mode": class_edge.held_mode,
        "wanted": class_edge.wanted,
        "wanted_mode": class_edge.wanted_mode,
        "count": class_edge.count,
        "waits": class_edge.waits,
        "endless": class_edge.endless,
        "sites": list(class_edge.sites),
        "test": class_edge.test,
        "example": _edge(class_edge.example),
    }


def _read_class_edge(fields: Fields) -> ObservedEdge:
    return ObservedEdge(
        held=fields.text("held"),
        held_mode=fields.choice("held_mode", MODES),
        wanted=fields.text("wanted"),
        wanted_mode=fields.choice("wanted_mode", MODES),
        count=fields.number("count"),
        waits=fields.flag("waits"),
        endless=fields.flag("endless"),
        sites=fields.texts("sites"),
        test=fields.text_or_none("test"),
        example=_read_edge(fields.one("example")),
    )


def _declaration(order: Declaration) -> dict[str, JsonValue]:
    steps = [asdict(step) for step in order.steps]
    return {"text": order.text, "steps": steps, "readers_first": list(order.readers_first)}


def _read_declaration(fields: Fields) -> Declaration:
    return Declaration(fields.text("text"), fields.each("steps", _read_step), fields.texts("readers_first"))


def _read_step(fields: Fields) -> OrderStep:
    return OrderStep(
        fields.text("held"),
        fields.choice("held_mode", MODES),
        fields.text("wanted"),
        fields.choice("wanted_mode", MODES),
        fields.text("clause"),
    )
