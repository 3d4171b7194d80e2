"""Brings changed input to the doors for strangers' bytes: by chance, or guided by coverage with atheris.

python -m support.fuzz.bad_input [--seconds S] [--guided DOOR] [DOOR...]
"""

from __future__ import annotations

import argparse
import logging
import random
import sys
import time
from typing import Any

from loguru import logger
from support.fuzz.input_doors import DOORS, Door, edited


def by_chance(door: Door, seconds: float) -> tuple[int, int]:
    """Bring input until the time is over; return how much, and how much of it was accepted."""
    seeds = door.seeds()
    rng = random.Random(time.time_ns())  # noqa: S311 - it plays, and keeps no secret
    end = time.monotonic() + seconds
    count = taken = 0
    while time.monotonic() < end:
        data = edited(seeds[count % len(seeds)], rng)
        try:
            taken += door.take(data)
        except BaseException:
            sys.stderr.write(f"this breaks it: {data!r}\n")
            raise
        count += 1
    return count, taken


def guided(door: Door, seconds: float) -> None:
    """Let atheris search for input that takes new paths through the code; ends the process."""
    atheris: Any = __import__("atheris")
    atheris.instrument_all()
    atheris.Setup([sys.argv[0], f"-max_total_time={int(seconds)}"], door.take)
    atheris.Fuzz()


def main() -> int:
    """Bring input to the named doors, or to all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--guided", choices=[*DOORS], help="use atheris, for this door")
    parser.add_argument("doors", nargs="*", choices=[[], *DOORS])
    arguments = parser.parse_args()
    logger.remove()
    logging.disable(logging.CRITICAL)
    if arguments.guided:
        guided(DOORS[arguments.guided], arguments.seconds)
    for name in arguments.doors or DOORS:
        count, taken = by_chance(DOORS[name], arguments.seconds)
        sys.stdout.write(f"{name}: {count:,} inputs, {taken:,} of them taken\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
