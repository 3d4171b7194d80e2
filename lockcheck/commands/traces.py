"""The commands that deal with traces: `record` and `analyze`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ..checking.stops import stops_of_prediction, witness_of
from ..findings.findings import Edge, Finding, Kind, Rung, fingerprint_of
from ..findings.text import counted, finding_text
from ..findings.witness_file import write_witness
from ..prediction.collector import collector_paused
from ..prediction.prediction import predict
from ..sessions.running import execute
from ..traces.file import read_trace
from ..traces.trace import NOWHERE, EventKind

if TYPE_CHECKING:
    from ..prediction.prediction import Prediction, Stop
    from ..traces.trace import Event, Trace

__all__ = ["add_commands", "findings_of"]

CLEAN, FINDINGS, FAULT = 0, 1, 3
_NO_FILTER: Final = (
    "the events of the trace, in another order, lead to it: {} of them come first, and no lock, start, "
    "join or signal is in the way"
)


def add_commands(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the commands; each sets `work`, which returns the exit code."""
    record = subparsers.add_parser("record", help="run a program and write down what its locks do")
    record.add_argument("--trace", type=Path, default=Path("locks.lct"), help="the file that is written")
    record.add_argument("program", help="a Python file, run as `__main__`")
    record.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")
    record.set_defaults(work=_record)
    analyze = subparsers.add_parser("analyze", help="predict deadlocks from a trace")
    analyze.add_argument("trace", type=Path, help="what `record` wrote")
    analyze.add_argument("--witness", type=Path, metavar="DIR", help="write a witness of each deadlock there")
    analyze.set_defaults(work=_analyze)


def _record(given: argparse.Namespace) -> int:
    from ..sessions.recording import recording  # noqa: PLC0415 - the analysis needs none of it

    with recording(given.trace) as session:
        code = execute(given.program, given.arguments)
    sys.stdout.write(f"{given.trace} was written\n")
    if session.faults:
        sys.stdout.write(
            f"note: faults of the checker: {len(session.faults)}, the first: {session.faults[0]}\n"
        )
        return FAULT
    return code


def _analyze(given: argparse.Namespace) -> int:
    with collector_paused():
        trace = read_trace(given.trace)
        findings, given_up = findings_of(trace)
    for notice in trace.notices:
        sys.stdout.write(f"note: {given.trace}: {notice}\n")
    if given_up:
        sys.stdout.write("note: the search was cut off at its bound: there may be more\n")
    for finding in findings:
        sys.stdout.write(finding_text(finding, {}) + "\n")
        witness = witness_of(finding)
        if given.witness is not None and witness is not None:
            sys.stdout.write(f"  witness: {write_witness(given.witness, witness)}\n")
    sys.stdout.write(
        f"{counted(len(trace.events), 'event')}, {counted(len(findings), 'deadlock')} predicted\n"
    )
    return FINDINGS if findings else CLEAN


def findings_of(trace: Trace) -> tuple[tuple[Finding, ...], bool]:
    """Return what a trace predicts, at R3, and whether the search was cut off.

    Raises:
        TraceFileError: the trace contradicts itself.
    """
    predictions = predict(trace)
    return tuple(_finding(trace, one) for one in predictions.found), predictions.given_up


def _finding(trace: Trace, prediction: Prediction) -> Finding:
    edges: list[Edge] = []
    before = prediction.stops[-1]
    for stop in prediction.stops:
        edges.append(_edge(trace, stop, before))
        before = stop
    steps = [f"{edge.held or 'nothing'} -> {edge.wanted}" for edge in edges]
    first = steps.index(min(steps))
    return Finding(
        Rung.R3,
        Kind.DEADLOCK,
        f"{len(edges)} units can wait for each other: " + ", then ".join(steps),
        tuple(edges),
        (_NO_FILTER.format(len(prediction.witness)),),
        fingerprint=fingerprint_of("predicted", *steps[first:], *steps[:first]),
        stops=stops_of_prediction(trace, prediction),
    )


def _edge(trace: Trace, stop: Stop, before: Stop) -> Edge:
    """Return what a unit holds in the way of the one before, and what it wants itself."""
    joint = next((event for event in stop.held if event.object == before.wanted.object), None)
    return Edge(
        unit=trace.units[stop.wanted.unit].name,
        held=_said(trace, joint) if joint is not None else None,
        wanted=_said(trace, stop.wanted),
        all_held=tuple(_said(trace, event) for event in stop.held),
        hold_stack=(trace.sites.get(joint.site, NOWHERE),) if joint is not None else (),
        want_stack=(trace.sites.get(stop.wanted.site, NOWHERE),),
    )


def _said(trace: Trace, event: Event) -> str:
    if event.kind is EventKind.JOIN:
        other = trace.units.get(event.object)
        return f"the end of {other.name if other is not None else 'a thread'}"
    lock = trace.locks[event.object]
    return f"{lock} [{event.mode}]" if lock.policy is not None else str(lock)
