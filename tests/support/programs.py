"""Programs that tests write down and run by an interpreter of their own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from support.waiting import PROGRAM_SECONDS

__all__ = ["run_lockcheck", "run_python", "written"]


def written(folder: Path, text: str, name: str = "program.py") -> str:
    """Write a program; return its path."""
    path = folder / name
    path.write_text(text, "utf-8")
    return str(path)


def run_python(
    *words: str, folder: Path | None = None, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the interpreter to its end, in a folder and an environment, or in those of the tests."""
    return subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PROGRAM_SECONDS,
        check=False,
    )


def run_lockcheck(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the command of lockcheck in a folder."""
    return run_python("-m", "licorne.lockcheck", *words, folder=folder)
