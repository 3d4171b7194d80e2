"""`licorne top` as a process in a terminal of its own: what a user types at once, and where errors go."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
from pathlib import Path

from support.proxy.document_server import DocumentServer
from support.waiting import happens


def test_keys_that_are_typed_at_once_are_the_filter_and_errors_have_their_file(tmp_path: Path) -> None:
    """The first key opens the filter, so `q` is a letter of it; the picture is drawn in the terminal."""
    errors = tmp_path / "errors"
    ours, theirs = pty.openpty()
    with DocumentServer() as server, errors.open("wb") as file:
        command = (sys.executable, "-m", "licorne", "top", "--address", server.address)
        variables = {**os.environ, "TERM": "xterm", "LINES": "24"}
        program = subprocess.Popen(  # noqa: S603 - our own command
            command, stdin=theirs, stdout=theirs, stderr=file, env=variables
        )
        os.close(theirs)
        os.write(ours, b"/queue")  # Before there is a picture.
        try:
            drawn = _drawn_until(ours, b"filter 'queue'", program)
        finally:
            program.kill()
            program.wait()
            os.close(ours)

    assert b"filter 'queue'" in drawn
    assert b"" == errors.read_bytes()


def _drawn_until(terminal: int, wanted: bytes, program: subprocess.Popen[bytes]) -> bytes:
    drawn = bytearray()

    def is_drawn() -> bool:
        if select.select([terminal], [], [], 0)[0]:
            drawn.extend(os.read(terminal, 65_536))
        return wanted in drawn or program.poll() is not None

    happens(is_drawn)
    return bytes(drawn)
