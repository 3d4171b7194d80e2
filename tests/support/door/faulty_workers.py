"""Workers, real processes, whose interpreter a test can hold, or that a request holds or ends."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Final

HANGS: Final = "hang-the-worker"
"""A message to a worker with this text holds its interpreter."""
KILLS: Final = "kill-the-worker"
"""A message to a worker with this text ends it, as the system does that has no memory left."""
HANG: Final = signal.SIGUSR1
"""This signal holds the interpreter of a worker."""
_PROGRAM: Final = f"""#!{sys.executable}
import ctypes, os, runpy, signal, sys
from licorne.proxy.wire.server import session_requests

known = session_requests.SessionRequests.carry_out

def hang(*_):
    ctypes.PyDLL(None).sleep(600)  # It keeps the lock of the interpreter.

def carry_out(session, message):
    text = message.SerializeToString()
    if b"{HANGS}" in text:
        hang()
    if b"{KILLS}" in text:
        os.kill(os.getpid(), signal.SIGKILL)
    return known(session, message)

session_requests.SessionRequests.carry_out = carry_out
signal.signal({HANG}, hang)
del sys.argv[1:3]  # -m licorne
runpy.run_module("licorne", run_name="__main__", alter_sys=True)
"""


def faulty_interpreter(folder: Path) -> str:
    """Return the path of what takes the place of `sys.executable` for workers; it is in the folder."""
    program = folder / "faulty"
    program.write_text(_PROGRAM, encoding="utf-8")
    program.chmod(0o700)
    return str(program)
