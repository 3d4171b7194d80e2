"""Proves the promises of preemption in all small worlds.

python -m support.proofs.run [--every N] [--stop] [FAMILY...]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable

from support.proofs.explorer import Explored, explore
from support.proofs.families import FAMILIES_OF_RULES
from support.proofs.worlds import FAMILIES, Family

_FAULTS_SHOWN = 5


def prove(family: Family, every: int = 1, *, stop: bool = False) -> tuple[int, Explored]:
    """Explore a family, or a part of it; return how many worlds that are, and what was found in all.

    With `stop` the first world with a fault is the last one.
    """
    worlds, total = 0, Explored()
    for world in family.worlds(every):
        found = explore(world, family.depth)
        worlds += 1
        total.states += found.states
        total.preemptions += found.preemptions
        total.faults += found.faults
        if stop and found.faults:
            break
    return worlds, total


def main(arguments: Iterable[str]) -> int:
    """Prove families, all unless some are named; return how many have a fault."""
    parser = argparse.ArgumentParser(prog="support.proofs.run")
    parser.add_argument("family", nargs="*", help="the names of families")
    parser.add_argument("--every", type=int, default=1, help="explore every so many-th world alone")
    parser.add_argument("--stop", action="store_true", help="stop at the first fault")
    options = parser.parse_args(list(arguments))
    failed = 0
    for family in (*FAMILIES, *FAMILIES_OF_RULES):
        if options.family and family.name not in options.family:
            continue
        begun = time.process_time()
        worlds, found = prove(family, options.every, stop=options.stop)
        seconds = time.process_time() - begun
        sys.stdout.write(
            f"{family.name}: {worlds} worlds, {found.states} states, {found.preemptions} preemptions, "
            f"{len(found.faults)} faults, {seconds:.0f} s\n"
        )
        failed += bool(found.faults)
        for world, path, fault in found.faults[:_FAULTS_SHOWN]:
            steps = "; ".join(f"{verb} {key}".strip() for verb, key in path)
            sys.stdout.write(f"  {fault}\n    {world}\n    {steps}\n")
        sys.stdout.flush()
        if options.stop and failed:
            break
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
