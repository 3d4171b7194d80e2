"""Runs of pytest of their own, for tests of the plugin."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["RUN_SECONDS_MAX", "run_module", "run_pytest"]

RUN_SECONDS_MAX = 60


def run_module(folder: Path, module: str, *options: str) -> tuple[int, str]:
    """Run the tests of a module in one process of its own; return the exit code and what pytest says."""
    ran = run_pytest(folder, module, *options)
    assert ran.stderr == ""
    return ran.returncode, ran.stdout


def run_pytest(folder: Path, module: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the tests of a module in one process of its own."""
    (folder / "test_locks.py").write_text(module, encoding="utf-8")
    plugins = ("-p", "no:cacheprovider", "-p", "no:xdist")
    return subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-m", "pytest", *plugins, "-q", "-rA", *options, "test_locks.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS_MAX,
        check=False,
    )
