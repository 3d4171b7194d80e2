"""The session that the environment asks for: it is active while no other one is, and stays open.

To open it imports modules, may start a thread, and prints a line: all of that is done without the latch.

`LOCKCHECK=confirm` steers the process to the witness that `LOCKCHECK_WITNESS` names. If that is not a file,
it is the folder to which the witnesses of findings are written when the process ends.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path

from ..checking.acquisition_checks import witness_of
from ..checking.watch import Watch, current
from ..confirming.confirmation import outcome_of, steering_to
from ..confirming.steering import Steering
from ..findings.json_files import FOLDER, read_witness, write_witness
from ..findings.terms import Environment, Rung, fault_said
from ..holding.runtime import LATCH, runtime
from ..sessions.session import Session


def open_ambient_session(environment: Environment) -> Session | None:
    """Open the session that the environment asks for, and return it; `None` if one is open already."""
    with LATCH:
        if runtime.watch is not None or runtime.opens:
            return None
        runtime.opens = True
    try:
        opened = Session(
            level=environment.level,
            on={rung: "log" for rung in Rung if rung is not Rung.R5},
            timeout_seconds=environment.timeout_seconds,
            order_disabled=environment.order_disabled,
            exits=environment.exits,
            name="environment",
        )
        opened.__enter__()
    finally:
        runtime.opens = False
    if environment.timeout_seconds is not None:
        sys.stderr.write(
            f"=== Deadlock detection enabled (timeout: {environment.timeout_seconds:g} seconds, "
            f"exit on deadlock: {environment.exits}, "
            f"locking order disabled: {environment.order_disabled}) ===\n"
        )
    return opened


def begin(variables: Mapping[str, str] = os.environ) -> None:
    """Begin to steer this process, until it ends; called once, when its session was opened.

    Raises:
        LockUsageError: the file that the environment names is not a witness.
    """
    watch = current()
    if watch is None or runtime.steering is not None:
        return
    path = Path(variables.get("LOCKCHECK_WITNESS", FOLDER))
    if path.is_file():
        _steer(path)
    else:
        _at_end(lambda: _write_witnesses(watch, path))


def _steer(path: Path) -> None:
    stack = ExitStack()
    steering = stack.enter_context(steering_to(read_witness(path), folder=path.parent))
    stack.callback(_say_outcome, steering)
    _say(f"this process is steered to {path}")
    _at_end(stack.close)


def _say_outcome(steering: Steering) -> None:
    """Print the outcome of steering, unless it was confirmed: then it was logged with its replay file."""
    outcome = outcome_of(steering)
    if outcome.finding is None:
        _say(f"not confirmed: {steering.witness.text}", *outcome.reasons)


def _write_witnesses(watch: Watch, folder: Path) -> None:
    witnesses = [witness for finding in watch.findings if (witness := witness_of(finding)) is not None]
    for witness in witnesses:
        _say(f"a witness was written to {write_witness(folder, witness)}")


def _at_end(work: Callable[[], None]) -> None:
    """Register work for the end of this process, but not for that of its forks."""
    me = os.getpid()

    def end() -> None:
        if os.getpid() != me:
            return
        try:
            work()
        except Exception as error:  # noqa: BLE001 - a bug of the checker must not change the program
            _say(fault_said(error))

    atexit.register(end)


def _say(text: str, *more: str) -> None:
    sys.stderr.write("\n  - ".join([f"lockcheck: {text}", *more]) + "\n")
