"""Proves the promises of preemption in all small worlds: python -m support.proofs.run [--every N] [FAMILY...]."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable
from itertools import islice

from support.proofs.explorer import Explored, explore
from support.proofs.worlds import FAMILIES, Family

__all__ = ["main", "prove"]

_FAULTS_SHOWN = 5


def prove(family: Family, every: int = 1, first: int = 0) -> tuple[int, Explored]:
    """Explore every so many-th world of a family; return how many there were, and what was found in all."""
    worlds, total = 0, Explored()
    for world in islice(family.worlds(), first, None, every):
        found = explore(world, family.depth)
        worlds += 1
        total.states += found.states
        total.preemptions += found.preemptions
        total.faults += found.faults
    return worlds, total


def main(arguments: Iterable[str]) -> int:
    """Prove families, all unless some are named; return how many have a fault."""
    parser = argparse.ArgumentParser(prog="support.proofs.run")
    parser.add_argument("family", nargs="*", help="the names of families")
    parser.add_argument("--every", type=int, default=1, help="explore every so many-th world alone")
    options = parser.parse_args(list(arguments))
    failed = 0
    for family in FAMILIES:
        if options.family and family.name not in options.family:
            continue
        begun = time.process_time()
        worlds, found = prove(family, options.every)
        seconds = time.process_time() - begun
        print(
            f"{family.name}: {worlds} worlds, {found.states} states, {found.preemptions} preemptions, "
            f"{len(found.faults)} faults, {seconds:.0f} s",
            flush=True,
        )
        failed += bool(found.faults)
        for world, path, fault in found.faults[:_FAULTS_SHOWN]:
            print(f"  {fault}\n    {world}\n    {' '.join(f'{verb} {key}'.strip() + ';' for verb, key in path)}")
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
