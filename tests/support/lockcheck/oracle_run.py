"""Compare the checker with the model checker on all small programs, and print how many there were.

    make oracle

It works in slices, and writes down what became of each in `.cache/oracle`, so that it can be stopped and
called again. A change of lockcheck or of the oracle begins anew: the count is that of one state of both.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from support.lockcheck.lock_programs import (
    ATTEMPTS,
    Program,
    chains,
    nests,
    random_programs,
    small_programs,
    threads_of,
    unread,
)
from support.lockcheck.lock_verdicts import compare

from licorne.lockcheck.findings.terms import RWPolicy

if TYPE_CHECKING:
    Family: TypeAlias = Callable[[], Iterator[Program]]

ROOT: Final = Path(__file__).parents[3]
NOTES: Final = ROOT / ".cache" / "oracle"
SLICE: Final = 1000
COLUMNS: Final = ("programs", "deadlocks", "unguarded", "refused", "wrong")
POLICIES: Final[tuple[RWPolicy, ...]] = ("writer", "reader")


def _random(seed: int, count: int, *, joins_inside: bool = False, mixed: bool = False) -> Iterator[Program]:
    chance = random.Random(seed)  # noqa: S311 - a seed to repeat
    return islice(random_programs(chance, joins_inside=joins_inside, mixed=mixed), count)


def _families() -> dict[str, Family]:
    """Return the families by name: those of few acts in full, larger ones, and random ones."""
    found: dict[str, Family] = {
        f"{size} acts, {policy or 're-entrant'}": partial(small_programs, size, policy)
        for size in (2, 3, 4)
        for policy in (*POLICIES, None)
    }
    for policy in POLICIES:
        found |= {
            f"2 threads, 3 locks inside each other, {policy}": partial(threads_of, nests(3, 3), 2, policy),
            f"3 threads, 2 of 3 locks each, {policy}": partial(threads_of, nests(3, 2), 3, policy),
            f"2 threads, 2 locks, all attempts, {policy}": partial(
                threads_of, nests(2, 2, ATTEMPTS), 2, policy
            ),
            f"4 threads, 2 locks, {policy}": partial(threads_of, nests(2, 2), 4, policy),
            f"2 threads, hand over hand, {policy}": partial(threads_of, chains(), 2, policy),
        }
    found["2 threads, 3 locks inside each other, mixed"] = partial(
        threads_of, unread(nests(3, 3)), 2, "mixed"
    )
    found["3 threads, 2 of 3 locks each, mixed"] = partial(threads_of, unread(nests(3, 2)), 3, "mixed")
    found["2 threads, hand over hand, mixed"] = partial(threads_of, unread(chains()), 2, "mixed")
    for seed in range(10):
        found[f"random {seed}"] = partial(_random, seed, 10_000)
    found["random, mixed"] = partial(_random, 11, 20_000, mixed=True)
    found["random, joins under locks"] = partial(_random, 10, 20_000, joins_inside=True)
    return found


FAMILIES: Final = _families()


def main(arguments: list[str] | None = None) -> int:
    """Look at what was not looked at yet; return 1 where the two disagree."""
    parser = argparse.ArgumentParser(description="Compare lockcheck with a search through all schedules.")
    parser.add_argument("families", nargs="*", metavar="FAMILY", help=f"one of: {'; '.join(FAMILIES)}")
    chosen = parser.parse_args(arguments).families or list(FAMILIES)
    NOTES.mkdir(parents=True, exist_ok=True)
    notes = NOTES / f"{_state()}.jsonl"
    done = _read(notes)
    with notes.open("a", encoding="utf-8") as file:
        for name in chosen:
            for first, counts, wrong in _slices(name, done):
                done[name, first] = Counter(counts), wrong
                file.write(json.dumps([name, first, counts, wrong]) + "\n")
                file.flush()
            sys.stdout.write(_line(name, _total(done, [name])) + "\n")
            sys.stdout.flush()
    total = _total(done, chosen)
    sys.stdout.write(_line("all", total) + "\n")
    for _, wrong in done.values():
        sys.stdout.writelines(f"{one}\n" for one in wrong)
    return 1 if total["wrong"] else 0


Done: TypeAlias = "dict[tuple[str, int], tuple[Counter[str], list[str]]]"


def _slices(name: str, done: Done) -> Iterator[tuple[int, dict[str, int], list[str]]]:
    programs = FAMILIES[name]()
    first = 0
    while part := list(islice(programs, SLICE)):
        if (name, first) not in done:
            tally = compare(part)
            yield first, dict(tally.counts), tally.wrong
        first += SLICE


def _state() -> str:
    """Return a short name for the code that is compared."""
    sources = sorted([*(ROOT / "lockcheck").rglob("*.py"), *Path(__file__).parent.glob("*_oracle.py")])
    sources += [
        Path(__file__).with_name(name) for name in ("lock_programs.py", "lock_verdicts.py", "oracle_run.py")
    ]
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:12]


def _read(notes: Path) -> Done:
    lines = notes.read_text("utf-8").splitlines(keepends=True) if notes.exists() else []
    read = [json.loads(line) for line in lines if line.endswith("\n")]
    return {(name, first): (Counter(counts), wrong) for name, first, counts, wrong in read}


def _total(done: Done, names: list[str]) -> Counter[str]:
    total: Counter[str] = Counter()
    for (name, _), (counts, wrong) in done.items():
        if name in names:
            total += counts
            total["wrong"] += len(wrong)
    return total


def _line(name: str, counts: Counter[str]) -> str:
    return f"{name}: " + ", ".join(f"{counts[column]:,} {column}" for column in COLUMNS)


if __name__ == "__main__":
    sys.exit(main())
