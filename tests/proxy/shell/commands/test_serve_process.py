"""What `licorne serve` sets in its process."""

from __future__ import annotations

from typing import Final

from support.programs import run_python

PROGRAM: Final = """
import gc
from licorne.proxy.shell.command_line import application
from licorne.proxy.shell.commands import serve

serve.run_server = lambda *_, **__: print(gc.get_threshold()[0])
application(["serve", "--address", "127.0.0.1:0", "--no-rest"])
"""


def test_garbage_is_looked_for_less_often() -> None:
    """A program that embeds the scheduler decides that by itself."""
    ran = run_python("-c", PROGRAM)

    assert ("50000\n", 0) == (ran.stdout, ran.returncode), ran.stderr
