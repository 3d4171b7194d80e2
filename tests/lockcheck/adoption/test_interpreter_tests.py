"""CPython's own tests of threads have the same outcomes with all locks adopted as without lockcheck."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from support.lockcheck import interpreter_tests

LEVELS: Final = {
    "order": ("run", "--level=order", "--adopt=all"),
    "full": ("run", "--level=full", "--adopt=all"),
}
SECONDS_MAX: Final = 900
OUTCOMES: Final = "outcomes.json"
OF_LOCKS: Final = tuple(
    f"test.test_threading.{name}"
    for name in (
        "LockTests", "PyRLockTests", "CRLockTests", "ConditionAsRLockTests", "ConditionTests", "EventTests",
        "SemaphoreTests", "BoundedSemaphoreTests", "BarrierTests", "AtexitTests", "MiscTestCase",
        "ThreadTests.test_disallow_instantiation",
    )
)  # fmt: skip
"""The tests of locks and what is made of them, and others that are short."""
MODULES: Final = ("test_threading", "test_logging", "test_queue", "test_thread", "test_concurrent_futures")


def started(folder: Path, words: tuple[str, ...], tests: tuple[str, ...]) -> subprocess.Popen[bytes]:
    """Start tests of CPython in a process of its own, which works in a folder."""
    folder.mkdir()
    return subprocess.Popen(  # noqa: S603 - our own interpreter
        [sys.executable, *words, interpreter_tests.__file__, OUTCOMES, *tests],
        cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def outcomes(process: subprocess.Popen[bytes], folder: Path) -> dict[str, str]:
    """Return the outcome of each test, when all have ended."""
    with process:
        try:
            process.wait(SECONDS_MAX)
        finally:
            process.kill()
    found: dict[str, str] = json.loads((folder / OUTCOMES).read_bytes())
    return found


def differences(folder: Path, tests: tuple[str, ...]) -> dict[str, dict[str, str]]:
    """Return, by level, the outcomes that are not those without lockcheck; the three runs are at once."""
    plain = started(folder / "plain", (), tests)
    checked = {
        level: started(folder / level, ("-m", "licorne.lockcheck", *words), tests)
        for level, words in LEVELS.items()
    }
    expected = outcomes(plain, folder / "plain")
    found = {level: outcomes(process, folder / level) for level, process in checked.items()}
    assert expected
    return {
        level: {name: got.get(name, "not run") for name in expected if got.get(name) != expected[name]}
        for level, got in found.items()
    }


def has(module: str) -> bool:
    """Return whether this interpreter comes with a module of its tests."""
    try:
        return importlib.util.find_spec(f"test.{module}") is not None
    except ImportError:
        return False


@pytest.mark.skipif(not has("test_threading"), reason="this Python comes without its tests")
def test_adopted_locks_pass_the_tests_of_the_interpreter_for_its_own(tmp_path: Path) -> None:
    """At each level: what those refuse, how they are shown, and what conditions need of them."""
    assert {level: {} for level in LEVELS} == differences(tmp_path, OF_LOCKS)


@pytest.mark.soak
@pytest.mark.parametrize("module", MODULES)
def test_modules_that_use_threads_pass_their_tests(tmp_path: Path, module: str) -> None:
    """Minutes: `make drop-in`."""
    if not has(module):
        pytest.skip(f"this Python comes without test.{module}")
    assert {level: {} for level in LEVELS} == differences(tmp_path, (f"test.{module}",))
