"""Real processes for tests: `licorne serve`, with the address that it prints."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.waiting import WAIT_SECONDS


class ServerProcess:
    """A running `licorne serve` or `licorne door`."""

    def __init__(self, process: subprocess.Popen[str], address: str, rest: str | None) -> None:
        self.process = process
        self.address = address
        self.rest = rest
        """The address of its REST interface, `None` if it has none."""

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self.address.rpartition(":")[2])


def start_server(*arguments: str, name: str = "serve", errors: Path | None = None) -> ServerProcess:
    """Start a server or a door, and wait until it listens; without an address it gets a free port.

    Raises:
        AssertionError: It ended before it listened.
    """
    command = [sys.executable, "-m", "licorne", name, "--json", *arguments]
    if "--address" not in arguments:
        command += ["--address", "127.0.0.1:0"]
    if "--rest-address" not in arguments and "--no-rest" not in arguments:
        command += ["--rest-address", "127.0.0.1:0"]
    sink = None if errors is None else errors.open("w", encoding="utf-8")
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=sink, text=True)  # noqa: S603 - our own command
    if sink is not None:
        sink.close()
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, f"the server ended with status {process.wait()}"
    said = json.loads(line)
    return ServerProcess(process, said["address"], said["rest"])


@contextmanager
def serving(*arguments: str, errors: Path | None = None) -> Iterator[ServerProcess]:
    """Run a server in a process of its own; it is asked to end behind the block."""
    server = start_server(*arguments, errors=errors)
    try:
        yield server
    finally:
        server.process.terminate()
        server.process.wait(WAIT_SECONDS)
        assert server.process.stdout is not None
        server.process.stdout.close()


def children(pid: int) -> list[int]:
    """Return the processes that a process has started, without its watchdog."""
    texts = [path.read_text(encoding="ascii") for path in Path(f"/proc/{pid}/task").glob("*/children")]
    found = [int(each) for text in texts for each in text.split()]
    return [each for each in found if not is_watchdog(each)]


def is_watchdog(pid: int) -> bool:
    """Return whether a process is the watchdog of another one."""
    return b"watchdog_process.py" in Path(f"/proc/{pid}/cmdline").read_bytes()
