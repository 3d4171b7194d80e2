"""The resource manager in the examples does what the README says."""

from __future__ import annotations

import queue
import signal
import subprocess
import sys
import threading
from pathlib import Path

from support.proxy.processes import serving, start_server
from support.waiting import WAIT_SECONDS

ROOT = Path(__file__).parents[4]


class Program:
    """The example, with the lines that it has printed."""

    def __init__(self, address: str) -> None:
        self.process = subprocess.Popen(  # noqa: S603 - our own example
            [sys.executable, "examples/resource_manager.py", address],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line.rstrip("\n"))

    def end(self) -> int:
        """Press Ctrl-C, and return the exit status."""
        self.process.send_signal(signal.SIGINT)
        status = self.process.wait(WAIT_SECONDS)
        self._reader.join()
        assert self.process.stdout is not None
        self.process.stdout.close()
        return status

    def next(self, count: int) -> list[str]:
        return [self._lines.get(timeout=WAIT_SECONDS) for _ in range(count)]


def test_it_places_its_tasks_and_recovers_them_on_a_new_server() -> None:
    """What ran still runs, and nothing is placed twice."""
    configuration = ("--config", str(ROOT / "examples" / "queues.yaml"))
    first = start_server(*configuration)
    program = Program(first.address)
    begin = program.next(11)
    assert begin[0] == "registering, with 0 tasks that run"
    assert sorted(begin[1:3]) == ["n1 is known", "n2 is known"]
    assert sorted(line.split()[0] for line in begin[3:]) == [f"task-{number}" for number in range(1, 9)]

    first.process.kill()
    first.process.communicate()
    with serving(*configuration, "--address", first.address):
        again = program.next(3)
        assert again[0] == "registering, with 8 tasks that run"
        assert sorted(again[1:]) == ["n1 is known", "n2 is known"]
        assert program.end() == 0
        assert program.next(1) == ["shutting down"]
