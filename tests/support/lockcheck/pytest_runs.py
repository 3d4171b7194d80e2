"""Runs of pytest of their own, for tests of the plugin."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Final

from support.programs import run_python, written

PYTEST: Final = ("-m", "pytest", "-q", "-p", "licorne.lockcheck.pytest_plugin", "-p", "no:cacheprovider")
"""What the interpreter is to run: pytest with our plugin, which it has to name."""
WITHOUT_OTHER_PLUGINS: Final = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
"""Pytest would load every installed plugin: that takes more than a second, most of such a run."""


def run_module(folder: Path, module: str, *options: str, **environment: str) -> tuple[int, str]:
    """Run the tests of a module in one process of its own; return the exit code and what pytest says."""
    ran = run_pytest(folder, module, *options, **environment)
    assert ran.stderr == ""
    return ran.returncode, ran.stdout


def run_pytest(
    folder: Path, module: str, *options: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run the tests of a module in one process of its own."""
    written(folder, module, "test_locks.py")
    environment = {**os.environ, **WITHOUT_OTHER_PLUGINS, **environment}
    return run_python(*PYTEST, "-rA", *options, "test_locks.py", folder=folder, environment=environment)
