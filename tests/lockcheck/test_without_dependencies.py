"""Lockcheck needs the standard library only."""

from __future__ import annotations

import re
from importlib.metadata import requires

from support.programs import run_python

PROGRAM = """
import sys
for name in {blocked!r}:
    sys.modules[name] = None
import licorne.lockcheck.commands.command
import licorne.lockcheck.pytest_plugin
"""
IMPORTED_AS = {"pyyaml": "yaml", "protobuf": "google.protobuf"}


def test_lockcheck_runs_where_no_dependency_of_licorne_is_installed() -> None:
    """`pip install --no-deps licorne` is enough, also for pytest, which loads the plugin by itself."""
    named = {re.split(r"[^\w-]", line)[0].lower() for line in requires("licorne") or ()}
    named.discard("licorne")  # one extra names another one
    program = PROGRAM.format(blocked=[IMPORTED_AS.get(name, name.replace("-", "_")) for name in named])
    done = run_python("-c", program)

    assert (0, "") == (done.returncode, done.stderr)
