"""Processes that are killed while they are recorded."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from support.proxy.recorded_traffic import callbacks_in, replayed

TESTS: Final = Path(__file__).parents[3]
PROGRAM: Final = TESTS / "support" / "proxy" / "recorded_process.py"
CALLBACKS: Final = [50, *[pytest.param(number, marks=pytest.mark.soak) for number in range(60, 1_000, 20)]]


@pytest.mark.parametrize("callbacks", CALLBACKS)
def test_what_a_manager_heard_before_a_kill_is_what_the_replay_says_first(
    callbacks: int, tmp_path: Path
) -> None:
    """SIGKILL comes in the middle of a load; no callback is missing, and none is another one."""
    with subprocess.Popen(  # noqa: S603 - our own words only
        [sys.executable, str(PROGRAM), str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        stdout=subprocess.PIPE,
        text=True,
    ) as program:
        assert program.stdout is not None
        heard = [program.stdout.readline().rstrip() for _ in range(callbacks)]
        program.kill()
        heard += program.stdout.read().splitlines()
    said = callbacks_in(replayed(tmp_path, may_be_cut=True))

    assert callbacks <= len(heard) <= len(said)
    assert heard == said[: len(heard)]
