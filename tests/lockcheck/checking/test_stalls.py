"""A program that hangs in what no lock of the checker is part of is described once, by itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from support.programs import written

WATCHED: Final = """
import asyncio, queue, sys, threading, time
from licorne.lockcheck import adopt, session
from licorne.lockcheck.checking.stalls import StallWatch
sys.path.insert(0, {folder!r})
with adopt("program"), session(), StallWatch(0.5):
    {program}
"""
OWN_LOOP: Final = """
    done = threading.Event()
    async def wait(): done.wait()
    asyncio.run(wait())
"""
FOREIGN_LOOP: Final = """
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="loop", daemon=True).start()
    async def wait(): await asyncio.Event().wait()
    asyncio.run_coroutine_threadsafe(wait(), loop).result()
"""
IMPORTED: Final = """
    import hanging
"""
QUEUE: Final = """
    thread = threading.Thread(target=queue.Queue().get, name="reader")
    thread.start()
    thread.join()
"""
MOVES: Final = """
    def tick():
        while True: time.sleep(0.01)
    threading.Thread(target=tick, daemon=True).start()
    threading.Timer(3, print, ["over"]).start()
    timer = threading.Event()
    threading.Timer(3, timer.set).start()
    timer.wait()
"""
HANGING: Final = """
import threading
def load(): import hanging
thread = threading.Thread(target=load, name="importer")
thread.start()
thread.join()
"""


def started(folder: Path, program: str) -> subprocess.Popen[str]:
    """Start a program that is watched for a stall of half a second."""
    written(folder, HANGING, "hanging.py")
    path = written(folder, WATCHED.format(folder=str(folder), program=program.strip()))
    return subprocess.Popen([sys.executable, path], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # noqa: S603 - our own interpreter


@pytest.mark.parametrize(
    ("program", "waits"),
    [
        (OWN_LOOP, {"MainThread": "an event"}),
        (FOREIGN_LOOP, {"MainThread": "the result of wait", "loop": "a call that another thread leaves"}),
        (IMPORTED, {"MainThread": "the end of importer", "importer": "the import of hanging"}),
        (QUEUE, {"MainThread": "the end of reader", "reader": "an item of a queue"}),
    ],
    ids=["event of the own loop", "coroutine of another loop", "import", "queue"],
)
def test_a_stall_is_written_with_what_each_thread_waits_for(
    tmp_path: Path, program: str, waits: dict[str, str]
) -> None:
    with started(tmp_path, program) as process:
        assert process.stderr is not None
        lines: list[str] = []
        try:
            while sum(" has waited " in line for line in lines) < len(waits):
                lines.append(process.stderr.readline())
                assert lines[-1], f"it ended: {lines}"
        finally:
            process.kill()

    assert "lockcheck: no thread has moved for 0.5 s, and all wait without a limit:\n" in lines
    for name, text in waits.items():
        assert any(line.startswith(f"  {name} has waited ") and text in line for line in lines), lines


def test_a_program_of_which_a_thread_waits_for_a_limited_time_does_not_stall(tmp_path: Path) -> None:
    with started(tmp_path, MOVES) as process:
        _, errors = process.communicate()

    assert (0, "") == (process.returncode, errors)
