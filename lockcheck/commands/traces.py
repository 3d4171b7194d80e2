"""The commands that deal with traces: `record` and `analyze`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ..checking.scheduling_points import witness_of
from ..findings.exit_codes import CLEAN, FAULT, FOUND
from ..findings.text import counted, finding_text
from ..findings.witness_file import write_witness
from ..prediction.gc_pause import gc_paused
from ..prediction.predicted_findings import findings_of
from ..sessions.running import execute
from ..traces.file import read_trace
from .adopting import add_adopt_option, adopting

__all__ = ["add_commands"]


def add_commands(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the commands; each sets `work`, which returns the exit code."""
    record = subparsers.add_parser("record", help="run a program and write down what its locks do")
    record.add_argument("--trace", type=Path, default=Path("locks.lct"), help="the file that is written")
    add_adopt_option(record)
    record.add_argument("-m", dest="as_module", action="store_true", help="the program is a module")
    record.add_argument("program", help="a Python file, run as `__main__`")
    record.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")
    record.set_defaults(work=_record)
    analyze = subparsers.add_parser("analyze", help="predict deadlocks from a trace")
    analyze.add_argument("trace", type=Path, help="what `record` wrote")
    analyze.add_argument("--witness", type=Path, metavar="DIR", help="write a witness of each deadlock there")
    analyze.set_defaults(work=_analyze)


def _record(given: argparse.Namespace) -> int:
    from ..sessions.recording import recording  # noqa: PLC0415 - the analysis needs none of it

    with adopting(given), recording(given.trace) as session:
        code = execute(given.program, given.arguments, as_module=given.as_module)
    sys.stdout.write(f"{given.trace} was written\n")
    if session.faults:
        sys.stdout.write(
            f"note: faults of the checker: {len(session.faults)}, the first: {session.faults[0]}\n"
        )
        return FAULT
    return code


def _analyze(given: argparse.Namespace) -> int:
    with gc_paused():
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
    return FOUND if findings else CLEAN
