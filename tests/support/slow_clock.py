"""A plug-in of pytest that slows the clock of a run: all its processes are stopped at random, for up to 3 s.

What waits too briefly fails. Who stops them is this module again, as a program in a session of its own.
"""

from __future__ import annotations

import os
import random
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

RUN_SECONDS_MAX: Final = 2.0
STOP_SECONDS_MAX: Final = 3.0

_PROGRAM: Final = pytest.StashKey[subprocess.Popen[bytes]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let a run be repeated with the seed of another."""
    seed = int.from_bytes(os.urandom(2))
    parser.addoption("--slow-seed", type=int, default=seed, help="the seed of the slow clock")


def pytest_configure(config: pytest.Config) -> None:
    """Start the program, once for all workers of a run."""
    if hasattr(config, "workerinput"):
        return
    config.stash[_PROGRAM] = subprocess.Popen(  # noqa: S603 - our own module
        [sys.executable, __file__, str(os.getpid()), str(config.getoption("slow_seed"))],
        stdin=subprocess.PIPE,
        start_new_session=True,
    )


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the program; where a run is killed instead, the end of its input ends it."""
    if (program := config.stash.get(_PROGRAM, None)) is not None:
        program.terminate()  # What a test has forked may keep the input open.
        program.communicate()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say how a run is repeated."""
    terminalreporter.write_line(f"the clock was slow: --slow-seed {config.getoption('slow_seed')}")


def slow(run: int, seed: int) -> None:
    """Stop a process and all below it, again and again, until the standard input ends."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    while _passes(chance.uniform(0, RUN_SECONDS_MAX)):
        stopped: set[int] = set()
        try:
            while fresh := set(_running_below(run)) - stopped:
                stopped |= fresh
                _signal(fresh, signal.SIGSTOP)
            _passes(chance.uniform(0, STOP_SECONDS_MAX))
        finally:
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
            _signal(stopped, signal.SIGCONT)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


def _passes(seconds: float) -> bool:
    """Wait for some time; return whether it passed without an end of the input."""
    return not select.select([sys.stdin], [], [], seconds)[0]


def _signal(processes: set[int], which: signal.Signals) -> None:
    for each in processes:
        with suppress(ProcessLookupError):
            os.kill(each, which)


def _running_below(process: int) -> Iterator[int]:
    """Find a process and those that it started, but for this one, and for what a test has stopped itself."""
    with suppress(FileNotFoundError, ProcessLookupError):  # It has ended meanwhile.
        state = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
        if process != os.getpid() and state not in "TtZ":
            yield process
        for path in Path(f"/proc/{process}/task").glob("*/children"):
            for each in path.read_text(encoding="ascii").split():
                yield from _running_below(int(each))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())  # Nothing is left stopped.
    slow(int(sys.argv[1]), int(sys.argv[2]))
