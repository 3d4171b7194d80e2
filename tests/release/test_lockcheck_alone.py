"""The distribution `licorne-lockcheck`: built from its folder, installed without the scheduler, and used."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.builds import NO_SOURCES, run_hook
from support.programs import run_python, written
from support.sources import ROOT
from support.waiting import PROGRAM_SECONDS

README = (ROOT / "lockcheck" / "README.md").read_text("utf-8")
MODULES_MAX = 8
"""How many modules of lockcheck a run of pytest loads that checks no locks."""


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel into a new environment; return the folder of its programs."""
    folder = tmp_path_factory.mktemp("alone")
    shutil.copytree(ROOT / "lockcheck", folder / "lockcheck", ignore=NO_SOURCES)
    run_hook("build_wheel", folder / "lockcheck", folder / "dist")
    (wheel,) = (folder / "dist").glob("licorne_lockcheck-*.whl")
    programs = folder / "environment" / "bin"
    for words in (
        ("venv", "--without-pip", str(programs.parent)),
        ("pip", "--python", str(programs / "python"), "install", "--quiet", "--no-index", str(wheel)),
    ):
        subprocess.run([sys.executable, "-m", *words], timeout=PROGRAM_SECONDS, check=True)  # noqa: S603 - our own
    return programs


def outcome(*command: str | Path, folder: Path) -> tuple[int, str]:
    """Run a program in a folder; return its status and what it wrote to standard error."""
    ran = subprocess.run(  # noqa: S603 - what was installed
        command, cwd=folder, capture_output=True, text=True, timeout=PROGRAM_SECONDS, check=False, env={}
    )
    return ran.returncode, ran.stderr


def test_a_stranger_finds_the_deadlock_of_the_readme(stranger: Path, tmp_path: Path) -> None:
    """By the command and by the module; there is no scheduler."""
    written(tmp_path, README.split("```python\n")[1].split("```")[0], "transfer.py")
    for command in ((stranger / "licorne-lockcheck",), (stranger / "python", "-m", "licorne.lockcheck")):
        status, said = outcome(*command, "transfer.py", folder=tmp_path)

        assert 1 == status
        assert re.search(r"\[R[25] ", said)
        assert "transfer.py:11 in move: with target.lock:" in said
    assert 0 != outcome(stranger / "python", "-c", "import licorne.model", folder=tmp_path)[0]


def test_a_missing_program_is_refused_by_the_command(stranger: Path, tmp_path: Path) -> None:
    """The first word that is not a command is a program."""
    assert outcome(stranger / "licorne-lockcheck", "nothing.py", folder=tmp_path) == (
        2,
        "lockcheck: nothing.py: there is no such program\n",
    )


def test_the_plugin_loads_its_options_only() -> None:
    """Whoever installs the distribution has it in each run of pytest."""
    code = "import sys, licorne.lockcheck.pytest_plugin; print(*sys.modules)"
    loaded = [name for name in run_python("-c", code).stdout.split() if "lockcheck" in name]

    assert "licorne.lockcheck.pytest_plugin" in loaded
    assert len(loaded) <= MODULES_MAX, loaded


def test_the_readme_has_forty_lines_at_most() -> None:
    """A stranger reads no more."""
    assert len(README.splitlines()) <= 40
