"""What a strict mypy says of a program that embeds Licorne, with and without the extra `typing`."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
import sysconfig
import tomllib
import venv
from pathlib import Path
from typing import Final

import google.protobuf
import pytest
from support.waiting import PROGRAM_SECONDS

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "embedding.md"
STUBS: Final = "types-protobuf"
CACHE: Final = ROOT / ".mypy_cache" / "desk"
"""What mypy knows of the modules of Licorne, kept between the runs: to read them all takes it ten seconds."""


def the_program() -> str:
    """Return the program in the section about types, with the mistake that the page speaks of."""
    section = PAGE.read_text(encoding="utf-8").partition("## 8. Check your types")[2]
    program = section.partition("```python\n")[2].partition("```")[0]
    assert 1 == program.count("accepted.nodeID")
    return program.replace("accepted.nodeID", "accepted.nodeId")


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    """Make an environment in which Licorne and protobuf are installed, and no more; return its packages."""
    home = str(tmp_path / "venv")
    venv.create(home)
    packages = Path(sysconfig.get_path("purelib", "venv", vars={"base": home, "platbase": home}))
    (packages / "licorne").mkdir()
    for name in ("__init__.py", "py.typed", "actors", "lockcheck", "model", "proxy"):
        (packages / "licorne" / name).symlink_to(ROOT / name)
    (packages / "google").symlink_to(Path(google.protobuf.__path__[0]).parent)
    return packages


def said_by_mypy(folder: Path, extra: str) -> str:
    """Return what a strict mypy reports of the program in the environment of a folder, which has an extra."""
    program = folder / "program.py"
    program.write_text(the_program(), encoding="utf-8")
    python = folder / "venv" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    ran = subprocess.run(  # noqa: S603 - mypy is in the dev group
        [
            sys.executable,
            "-m",
            "mypy",
            "--strict",
            "--config-file=",
            f"--cache-dir={CACHE / extra}",
            f"--python-executable={python}",
            program.name,
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PROGRAM_SECONDS,
        check=False,
    )
    assert "" == ran.stderr
    return ran.stdout


def test_without_the_extra_a_wrong_message_is_overlooked(desk: Path, tmp_path: Path) -> None:
    """In silence: that is why there is an extra, and why the page says so."""
    assert not list(desk.glob("*-stubs"))
    assert "Success: no issues found in 1 source file\n" == said_by_mypy(tmp_path, "none")


def test_with_the_extra_a_wrong_message_is_found(desk: Path, tmp_path: Path) -> None:
    """In the words of the page."""
    stubs = importlib.metadata.distribution(STUBS).locate_file("google-stubs")
    (desk / "google-stubs").symlink_to(str(stubs))

    said = said_by_mypy(tmp_path, "typing")

    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    (first, *_) = said.splitlines()
    assert 'program.py:7: error: "AcceptedNode" has no attribute "nodeId"; maybe "nodeID"?' in first
    assert '"AcceptedNode" has no attribute "nodeId"; maybe "nodeID"?' in page


def test_the_extra_brings_the_types_of_protobuf() -> None:
    """And the tests run with what it brings."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

    (brought,) = project["project"]["optional-dependencies"]["typing"]
    assert brought.startswith(STUBS)
    assert brought in project["dependency-groups"]["dev"]
