"""Runs of pytest of their own, for tests of the plugin."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

__all__ = ["PYTEST", "RUN_SECONDS_MAX", "run_module", "run_pytest", "without_other_plugins"]

RUN_SECONDS_MAX = 60

PYTEST: Final = (
    *(sys.executable, "-m", "pytest", "-q"),
    *("-p", "licorne.lockcheck.pytest_plugin", "-p", "no:cacheprovider"),
)
"""The command that runs pytest with our plugin, which it has to name: see `without_other_plugins`."""


def without_other_plugins() -> dict[str, str]:
    """Return an environment in which pytest loads the plugins that its command names and no other one.

    It would load every installed one: that takes more than a second, most of such a run.
    """
    return {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


def run_module(folder: Path, module: str, *options: str) -> tuple[int, str]:
    """Run the tests of a module in one process of its own; return the exit code and what pytest says."""
    ran = run_pytest(folder, module, *options)
    assert ran.stderr == ""
    return ran.returncode, ran.stdout


def run_pytest(folder: Path, module: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the tests of a module in one process of its own."""
    (folder / "test_locks.py").write_text(module, encoding="utf-8")
    return subprocess.run(  # noqa: S603 - our own interpreter
        [*PYTEST, "-rA", *options, "test_locks.py"],
        cwd=folder,
        env=without_other_plugins(),
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS_MAX,
        check=False,
    )
