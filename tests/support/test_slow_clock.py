from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support import slow_clock
from support.programs import run_python, written
from support.proxy.processes import children
from support.waiting import wait_until

LONG_STOP_SEED = "165"
"""It stops everything after 0.03 s, for almost 3 s."""

PARENT = """
import subprocess, sys
subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True).wait()
"""

ENDS: dict[str, Callable[[subprocess.Popen[bytes]], object]] = {
    "with the run": lambda program: program.communicate(),
    "by SIGTERM": lambda program: program.terminate(),
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_it_stops_all_processes_and_leaves_none_stopped(
    end: Callable[[subprocess.Popen[bytes]], object],
) -> None:
    """All are stopped, in whatever session; each goes on as soon as the program ends."""
    with subprocess.Popen([sys.executable, "-c", PARENT]) as parent:  # noqa: S603 - our own program
        (child,) = wait_until(lambda: children(parent.pid))
        command = [sys.executable, slow_clock.__file__, str(parent.pid), LONG_STOP_SEED]
        with subprocess.Popen(command, stdin=subprocess.PIPE) as program:  # noqa: S603 - our own program
            wait_until(lambda: states(parent.pid, child) == "TT")
            end(program)

        left = states(parent.pid, child)
        os.kill(child, signal.SIGKILL)

    assert "T" not in left


def states(*processes: int) -> str:
    texts = [Path(f"/proc/{each}/stat").read_text(encoding="utf-8") for each in processes]
    return "".join(text.rpartition(")")[2].split()[0] for text in texts)


STOPPED_TEST = """
from time import monotonic

def test_stopped() -> None:
    before = now = monotonic()
    while now - before < 0.3:
        before, now = now, monotonic()
"""


def test_a_run_is_slow_and_says_its_seed(tmp_path: Path) -> None:
    program = written(tmp_path, STOPPED_TEST, "test_stopped.py")
    plugin = ["-p", "support.slow_clock", "--slow-seed", "31"]

    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
    ran = run_python("-m", "pytest", *plugin, program, folder=tmp_path, environment=environment)

    assert (0, True) == (ran.returncode, "--slow-seed 31" in ran.stdout), ran.stdout
