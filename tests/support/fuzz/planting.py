"""Plants faults one by one in a copy of the package, and has the simulator look for each.

python -m support.fuzz.planting [--minutes K] [--jobs J] [NAME...]
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from support.fuzz.fault import Fault
from support.fuzz.planted_faults import FAULTS
from support.fuzz.planted_outer_faults import OUTER_FAULTS

ROOT: Final = Path(__file__).parents[3]
COPIED: Final = ("actors", "lockcheck", "model", "proxy")
GOAL_MISSED: Final = 2
"""The number of faults that may remain unfound."""


def copied_package(folder: Path) -> Path:
    """Copy the package into a folder; return the copy."""
    package = folder / "licorne"
    package.mkdir()
    for name in ("__init__.py", "__main__.py"):
        shutil.copy(ROOT / name, package / name)
    for name in COPIED:
        shutil.copytree(ROOT / name, package / name, ignore=shutil.ignore_patterns("__pycache__"))
    return package


def planted_text(package: Path, fault: Fault) -> str:
    """Return the text of a file with its planted fault.

    Raises:
        ValueError: The text to change is missing, or occurs more than once.
    """
    text = (package / fault.path).read_text(encoding="utf-8")
    if text.count(fault.old) != 1:
        raise ValueError(f"{fault.name}: its text stands {text.count(fault.old)} times in {fault.path}")
    return text.replace(fault.old, fault.new)


def plant(package: Path, fault: Fault) -> None:
    """Change the copy; raises as `planted_text` does."""
    (package / fault.path).write_text(planted_text(package, fault), encoding="utf-8")


def found(fault: Fault, minutes: float) -> tuple[str, float]:
    """Search for a fault; return the finding, empty for none, and the seconds of CPU time."""
    with tempfile.TemporaryDirectory(prefix="licorne-faults-") as name:
        folder = Path(name)
        plant(copied_package(folder), fault)
        command = [sys.executable, "-c", _PROGRAM, str(minutes * 60), *fault.engines]
        environment = {**os.environ, "PYTHONPATH": str(folder)}
        try:
            ran = subprocess.run(  # noqa: S603 - our own interpreter
                command,
                cwd=folder,
                env=environment,
                capture_output=True,
                text=True,
                timeout=minutes * 600 + 120,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return "a run did not end", minutes * 60
        seconds, *lines = ran.stdout.strip().splitlines() or [str(minutes * 60)]
        text = lines[-1] if lines else ran.stderr.strip().rpartition("\n")[2]
        return text if ran.returncode else "", float(seconds)


_PROGRAM: Final = """
import sys, time
from licorne.proxy.fuzz.runs import be_quiet, run_seeds
be_quiet()
summary = run_seeds(1, None, steps=60, engines=sys.argv[2:],
                    until=lambda: time.process_time() > float(sys.argv[1]), jobs=1)
print(f"{time.process_time():.1f}")
for failure in summary.failures:
    print(f"seed {failure.seed} on {failure.engine}: {failure.failure}".replace(chr(10), " ")[:160])
sys.exit(bool(summary.failures))
"""


def main() -> int:
    """Plant the faults, and print the findings; return 1 if too many remain unfound."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("names", nargs="*", help="parts of the names of faults; all unless given")
    arguments = parser.parse_args()
    chosen = [
        fault
        for fault in (*FAULTS, *OUTER_FAULTS)
        if not arguments.names or any(name in fault.name for name in arguments.names)
    ]
    missed = 0
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for fault, (text, seconds) in zip(
            chosen, pool.map(lambda fault: found(fault, arguments.minutes), chosen), strict=True
        ):
            missed += not text
            sys.stdout.write(
                f"{'found' if text else 'NOT FOUND':10}{seconds:6.1f} s  {fault.name}  [{text}]\n"
            )
            sys.stdout.flush()
    sys.stdout.write(f"{len(chosen) - missed} of {len(chosen)} planted faults were found\n")
    return int(missed > GOAL_MISSED)


if __name__ == "__main__":
    sys.exit(main())
