"""Building distributions from copies of the checkout."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path
from typing import Final

from support.programs import run_python

NO_SOURCES: Final = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "build", "dist", "conformance")
"""What a copy of the checkout leaves out."""


def run_hook(name: str, sources: Path, target: Path) -> None:
    """Run a hook of the build backend in a process, in the folder of the sources."""
    project = tomllib.loads((sources / "pyproject.toml").read_text(encoding="utf-8"))
    backend = project["build-system"]["build-backend"]
    ran = run_python("-c", f"import {backend}; {backend}.{name}({str(target)!r})", folder=sources)
    assert ran.returncode == 0, ran.stdout + ran.stderr
