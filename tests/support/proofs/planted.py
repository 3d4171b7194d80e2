"""Faults of preemption that the proofs alone find: python -m support.proofs.planted."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from support.fuzz.fault import Fault
from support.fuzz.planting import ROOT, copied_package, plant

__all__ = ["PREEMPTION_FAULTS", "main"]

_LEDGER: Final = "model/preemption/guarantee/ledger.py"
_SECONDS_MAX: Final = 600

PREEMPTION_FAULTS: Final = (
    Fault(
        "an ask drops its own reservation",
        "model/preemption/guarantee/candidate_nodes.py",
        "record = None if key == ask.allocation_key else reserved",
        "record = reserved",
    ),
    Fault(
        "a guarantee of one type gives all types",
        _LEDGER,
        "entitled = self._asked if self.ask_leaf.is_unbound else self._serving",
        "entitled = self._asked",
    ),
    Fault(
        "a type that the ask is not entitled to is taken from guarantees",
        _LEDGER,
        "less.get(name) + quantity and (above > 0 or name not in self._serving)",
        "less.get(name) + quantity and above > 0",
    ),
    Fault(
        "the least that any queue of the path is owed counts",
        _LEDGER,
        "return serving.guaranteed[name] - self.used(serving).get(name)",
        "return min(\n            (level.guaranteed or EMPTY)[name] - self.used(level).get(name)\n"
        "            for level in self.ask_leaf.path_up\n            if level.names(name)\n        )",
    ),
    Fault(
        "what other asks have preempted for does not count",
        _LEDGER,
        "(self.committed if above_ask else NOTHING_COMMITTED).use_of(queue)",
        "NOTHING_COMMITTED.use_of(queue)",
    ),
    Fault(
        "no victim is spared",
        "model/preemption/victims.py",
        "    rooms = [need.given for need in needs]\n",
        "    return tuple(victims)\n    rooms = [need.given for need in needs]\n",
    ),
    Fault(
        "a node that was lost to an ask that needs it is not reserved again",
        "model/preemption/guarantee/attempt.py",
        "    if lost is not None:\n        return lost\n",
        "",
    ),
)


def main() -> int:
    """Plant each in a copy and prove there; return how many are not found."""
    missed = 0
    for fault in PREEMPTION_FAULTS:
        with tempfile.TemporaryDirectory(prefix="licorne-proofs-") as folder:
            plant(copied_package(Path(folder)), fault)
            ran = subprocess.run(
                [sys.executable, "-m", "support.proofs.run", "--stop", "--every", "3"],
                env={**os.environ, "PYTHONPATH": f"{folder}:{ROOT / 'tests'}"},
                capture_output=True,
                text=True,
                timeout=_SECONDS_MAX,
                check=False,
            )
        lines = [line.strip() for line in ran.stdout.splitlines() if line.startswith("  ")]
        missed += not lines
        found = lines[0] if lines else f"not found {ran.stderr[-200:]}"
        sys.stdout.write(f"{fault.name}: {found}\n")
        sys.stdout.flush()
    return missed


if __name__ == "__main__":
    sys.exit(main())
