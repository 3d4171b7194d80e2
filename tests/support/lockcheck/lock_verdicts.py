"""What the model checker and the checker say of the same programs, and where they contradict each other."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING

from support.lockcheck.lock_oracle import checker_says, deadlocks, refuses
from support.lockcheck.trace_oracle import comes_true, trace_of

from licorne.lockcheck import Rung
from licorne.lockcheck.prediction.prediction import predict

if TYPE_CHECKING:
    from collections.abc import Iterable

    from support.lockcheck.lock_programs import Program

__all__ = ["Tally", "compare"]


class Tally:
    """Of some programs how many there are of each kind, and those that the two disagree about."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []

    def add(self, program: Program, seed: int) -> None:
        """Look at one program: one run checked, one random run recorded, all schedules searched."""
        stuck = deadlocks(program)
        predictions = predict(trace_of(program, random.Random(seed))).found  # noqa: S311 - a seed to repeat
        self.counts["programs"] += 1
        self.counts["deadlocks"] += stuck
        self.counts["predicted"] += bool(predictions)
        if not _joins_inside(program):
            said = checker_says(program)
            self.counts["unguarded"] += Rung.R2 in said
            self.counts["refused"] += Rung.R0 in said
            self._expect(stuck, Rung.R2 in said, "R2", program)
            self._expect(refuses(program), Rung.R0 in said, "R0", program)
        for prediction in predictions:
            if not comes_true(program, prediction):
                self.wrong.append(f"R3 invented {prediction}: {program}, seed {seed}")

    def _expect(self, expected: bool, said: bool, rung: str, program: Program) -> None:  # noqa: FBT001 - two of a kind
        if expected != said:
            self.wrong.append(f"{rung} {'missed' if expected else 'invented'}: {program}")


def _joins_inside(program: Program) -> bool:
    """Return whether a thread waits for the end of another one under a lock: what R2 knows nothing of."""
    for thread in program.threads:
        for part in thread:
            depth = 0
            for act in () if isinstance(part, int) else part:
                if isinstance(act, int):
                    if depth:
                        return True
                else:
                    depth += -1 if isinstance(act, str) else 1
    return False


def compare(programs: Iterable[Program], seed: int = 0) -> Tally:
    """Look at some programs; the seed is that of the first one's recorded run."""
    tally = Tally()
    for at, program in enumerate(programs):
        tally.add(program, seed + at)
    return tally
