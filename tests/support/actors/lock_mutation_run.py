"""Runs the tests of the engine `threads` against mutants of its locks: `make mutants`.

Each mutant is put into a copy of the checkout. First come the tests as everybody runs them; what can deadlock
and survives them is run with every lock checked, as in `make lockcheck`. A run that does not end in time
kills too.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import cache_from_source
from pathlib import Path
from queue import SimpleQueue
from typing import Final

from support.actors.lock_mutant_table import can_deadlock
from support.actors.lock_mutants import ROOT, Mutant, mutants

GOAL_PERCENT: Final = 95
TEST_SECONDS_MAX: Final = 40
RUN_SECONDS_MAX: Final = 200
COPIED: Final = ("actors", "lockcheck", "model", "proxy")
LINKED: Final = ("__init__.py", "py.typed", "docs", "examples", "pyproject.toml")
RESOLVERS: Final = "proxy/core/resolvers/"
TESTS: Final = (
    "tests/actors/test_threads_engine.py",
    "tests/actors/test_rm_link.py",
    "tests/actors/test_real_clock.py",
    "tests/proxy/automatic",
    *(
        f"tests/proxy/play/transcripts/test_engines_agree.py::test_engines_agree_on_a_random_transcript[{n}]"
        for n in range(3)
    ),
    "tests/proxy/play/transcripts/test_engines_agree.py::test_several_threads_decide_what_one_does[0]",
)
TESTS_OF_RESOLVERS: Final = ("tests/proxy/core/resolvers", "tests/proxy/core/resolvers/test_user_groups.py")
CHECKED: Final = (
    "--lockcheck=full", "--lockcheck-adopt=none", "--lockcheck-order=licorne.actors.locks.guards:LOCK_ORDER",
)  # fmt: skip
_BLAMED: Final = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)
_HUNG: Final = re.compile(r"\+ Timeout \+|Timeout \(>|Failed: Timeout")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a mutant."""

    mutant: Mutant
    killed_by: str
    """A test, or what else failed; empty if it survived."""
    checked: bool
    """Whether only the lock checker failed."""

    def line(self) -> str:
        """Say it in one line."""
        word = ("killed by lockcheck" if self.checked else "killed") if self.killed_by else "SURVIVED"
        reason = can_deadlock(self.mutant)
        return f"{word:20}{'can deadlock' if reason else '':14}{self.mutant.name}" + (
            f"  [{self.killed_by}]" if self.killed_by else f"  ({reason})" if reason else ""
        )


@contextmanager
def checkout() -> Iterator[Path]:
    """Give a copy of the checkout that a mutant can be put into."""
    with tempfile.TemporaryDirectory(prefix="licorne-mutants-") as folder:
        copy = Path(folder) / "licorne"
        copy.mkdir()
        for name in LINKED:
            (copy / name).symlink_to(ROOT / name)
        for name in COPIED:
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copytree(
            ROOT / "tests", copy / "tests", ignore=shutil.ignore_patterns("__pycache__", "conformance")
        )
        (copy / "tests" / "conformance").symlink_to(ROOT / "tests" / "conformance")
        yield copy


def run(copy: Path, tests: Sequence[str], *options: str) -> str:
    """Run tests in a copy; return what killed the mutant in it, nothing if it survived."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist"]
    try:
        ran = subprocess.run(  # noqa: S603 - our own interpreter
            [*command, f"--timeout={TEST_SECONDS_MAX}", "--timeout-method=thread", *options, *tests],
            cwd=copy,
            env={**os.environ, "PYTHONPATH": str(copy.parent)},
            capture_output=True,
            text=True,
            timeout=RUN_SECONDS_MAX,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "the run did not end"
    if ran.returncode == 0:
        return ""
    blamed = _BLAMED.search(ran.stdout)
    if blamed:
        return blamed[1]
    if _HUNG.search(ran.stdout + ran.stderr):
        return "a test did not end"
    return (ran.stdout + ran.stderr).strip().rpartition("\n")[2][:100]


def judge(copy: Path, mutant: Mutant) -> Outcome:
    """Put a mutant into a copy, run the tests, and put the original back."""
    place = copy / mutant.path
    tests = TESTS_OF_RESOLVERS if mutant.path.startswith(RESOLVERS) else TESTS
    original = place.read_text(encoding="utf-8")
    try:
        _put(place, mutant.source)
        killed_by = run(copy, tests)
        if killed_by or not can_deadlock(mutant):
            return Outcome(mutant, killed_by, checked=False)
        return Outcome(mutant, run(copy, tests, *CHECKED), checked=True)
    finally:
        _put(place, original)


def _put(place: Path, source: str) -> None:
    """Write a source, and forget what was compiled of the one before: it may be as old and as long."""
    Path(cache_from_source(str(place))).unlink(missing_ok=True)
    place.write_text(source, encoding="utf-8")


def outcomes(chosen: Sequence[Mutant], copies: Sequence[Path]) -> Iterator[Outcome]:
    """Judge mutants, as many at a time as there are copies."""
    free: SimpleQueue[Path] = SimpleQueue()
    for copy in copies:
        free.put(copy)

    def one(mutant: Mutant) -> Outcome:
        copy = free.get()
        try:
            return judge(copy, mutant)
        finally:
            free.put(copy)

    with ThreadPoolExecutor(len(copies)) as pool:
        yield from pool.map(one, chosen)


def main() -> int:
    """Judge the mutants that are asked for; return 0 where enough of those that can deadlock are killed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", default="", help="a regular expression for the names of mutants")
    parser.add_argument("--deadlocks", action="store_true", help="only those that can deadlock")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    chosen = [
        mutant
        for mutant in mutants()
        if re.search(options.only, mutant.name) and (can_deadlock(mutant) or not options.deadlocks)
    ]
    judged: list[Outcome] = []
    with ExitStack() as stack:
        copies = [stack.enter_context(checkout()) for _ in range(options.workers)]
        tests = (*TESTS, *TESTS_OF_RESOLVERS)
        wrong = run(copies[0], tests) or run(copies[0], tests, *CHECKED)
        if wrong:
            sys.stdout.write(f"Without any mutant the tests fail: {wrong}\n")
            return 2
        for outcome in outcomes(chosen, copies):
            judged.append(outcome)
            sys.stdout.write(outcome.line() + "\n")
            sys.stdout.flush()
    dangerous = [one for one in judged if can_deadlock(one.mutant)]
    sys.stdout.write(
        f"{len(judged)} mutants.\n"
        f"Killed of those that cannot deadlock: {_share([one for one in judged if one not in dangerous])}.\n"
        f"Killed of those that can deadlock: {_share(dangerous)}.\n"
    )
    killed = sum(bool(one.killed_by) for one in dangerous)
    return 0 if 100 * killed >= GOAL_PERCENT * len(dangerous) else 1


def _share(judged: Sequence[Outcome]) -> str:
    if not judged:
        return "none was run"
    plain = sum(bool(one.killed_by) and not one.checked for one in judged)
    checked = sum(one.checked and bool(one.killed_by) for one in judged)
    percent = 100 * (plain + checked) // len(judged)
    return f"{plain} and with every lock checked {checked} more, of {len(judged)} ({percent} %)"


if __name__ == "__main__":
    sys.exit(main())
