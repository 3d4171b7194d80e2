"""The session that the environment asks for: it is active while no other one is, and stays open.

To open it imports modules, may start a thread, and prints a line: all of that is done without the latch.
"""

from __future__ import annotations

import sys

from ..findings.terms import Environment, Rung
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
