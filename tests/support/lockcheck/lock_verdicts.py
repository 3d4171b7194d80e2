"""What the model checker and the checker say of the same programs, and where they contradict each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from support.lockcheck.lock_oracle import acts_of, checker_says, deadlocks, refuses
from support.lockcheck.lock_programs import LEAVE, Program, Take

from licorne.lockcheck import Rung


class Tally:
    """Of some programs how many there are of each kind, and those that the two disagree about."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []

    def add(self, program: Program) -> None:
        """Look at one program: one run checked, all schedules searched."""
        stuck = deadlocks(program)
        self.counts["programs"] += 1
        self.counts["deadlocks"] += stuck
        said = checker_says(program)
        self.counts["unguarded"] += Rung.R2 in said
        self.counts["refused"] += Rung.R0 in said
        if Rung.R2 in said or not _may_skip_a_join(program):
            self._expect(stuck, Rung.R2 in said, "R2", program)
        self._expect(refuses(program), Rung.R0 in said, "R0", program)

    def _expect(self, expected: bool, said: bool, rung: str, program: Program) -> None:  # noqa: FBT001 - two of a kind
        if expected != said:
            self.wrong.append(f"{rung} {'missed' if expected else 'invented'}: {program}")


def _may_skip_a_join(program: Program) -> bool:
    """Return whether a thread is joined only if an attempt succeeds: no run takes both ways."""
    for thread in program.threads:
        for part in thread:
            held: list[bool] = []
            for act in acts_of(part):
                if isinstance(act, Take):
                    held.append(act.attempt != "block")
                elif isinstance(act, str):
                    held.pop(-1 if act == LEAVE else 0)
                elif any(held):
                    return True
    return False


def compare(programs: Iterable[Program]) -> Tally:
    """Look at some programs."""
    tally = Tally()
    for program in programs:
        tally.add(program)
    return tally
