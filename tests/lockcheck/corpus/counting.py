"""Run the whole corpus, and count what is found as it has to be.

make corpus
"""

from __future__ import annotations

import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from unittest import mock

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from collections.abc import Iterator, Sequence

from order_bugs import ORDER_BUGS
from rule_bugs import RULE_BUGS
from safe_patterns import SAFE
from sources import ABSENT, BUGS, ELSEWHERE, FALSE_ALARMS, HISTORY
from support.lockcheck.lock_corpus import Bug, Safe, look

from licorne.lockcheck import Finding, Rung

ALL_BUGS: Final[Sequence[Bug]] = (*ORDER_BUGS, *RULE_BUGS)


def is_found(bug: Bug) -> bool:
    """Return whether a bug is found at its rung, by its kind, with a cycle of its length and all stacks."""
    _, findings = look(bug.run, bug.order)
    return any(_fits(bug, finding) for finding in findings)


def _fits(bug: Bug, finding: Finding) -> bool:
    stacks = bug.rung is Rung.R0 or all(edge.want_stack for edge in finding.edges)
    steps = bug.steps is None or bug.steps == len(finding.edges)
    return stacks and steps and (bug.rung, bug.kind) == (finding.rung, finding.kind)


def is_left_alone(case: Safe) -> bool:
    """Return whether nothing is found but R1, and that says why it is safe if there is a cycle."""
    _, findings = look(case.run, case.order)
    reasons = [reason for finding in findings for reason in finding.why]
    explained = any(case.explained in reason for reason in reasons) if case.explained else not reasons
    return explained and all(finding.rung is Rung.R1 for finding in findings)


def bug_text(bug: Bug) -> str:
    """Return the name of a bug that is found in several ways."""
    return bug.name.removesuffix(" (declared)").removesuffix(" (learned)")


@dataclass(frozen=True)
class Count:
    """How many cases there are, and how many come out as they have to."""

    bugs: int
    found: int
    """How many bugs are found in every way, with a declaration and without one."""
    alone: int
    """How many of those need no second thread."""
    safe: int
    left: int
    explained: int
    """How many of those left alone close a path, and R1 says why that is safe."""

    def text(self) -> str:
        """Say it, in three lines."""
        sources = (*HISTORY, *BUGS, *FALSE_ALARMS)
        return (
            f"bugs: {self.found}/{self.bugs} found at their rung, {self.alone} of them in one thread\n"
            f"safe patterns: {self.left}/{self.safe} with nothing at R0 or from R2 on, "
            f"{self.explained} of them explained at R1\n"
            f"sources: {len(sources) - len(ABSENT)}/{len(sources)} have a case\n"
        )


def count() -> Count:
    """Run everything."""
    missed, threaded = set(), set()
    for bug in ALL_BUGS:
        start = threading.Thread.start
        with mock.patch.object(threading.Thread, "start", autospec=True, side_effect=start) as started:
            if not is_found(bug):
                missed.add(bug_text(bug))
        if started.called:
            threaded.add(bug_text(bug))
    bugs = set(map(bug_text, ALL_BUGS))
    left = [case for case in SAFE if is_left_alone(case)]
    return Count(
        bugs=len(bugs),
        found=len(bugs - missed),
        alone=len(bugs - missed - threaded),
        safe=len(SAFE),
        left=len(left),
        explained=sum(bool(case.explained) for case in left),
    )


def table() -> Iterator[tuple[str, str]]:
    """Yield every source, with the names of its cases, or why there is none."""
    for source in (*HISTORY, *BUGS, *FALSE_ALARMS):
        bugs = dict.fromkeys(bug_text(bug) for bug in ALL_BUGS if source in bug.sources)
        safe = [case.name for case in SAFE if source in case.sources]
        yield source, "; ".join([*bugs, *safe]) or ELSEWHERE.get(source) or f"none: {ABSENT[source]}"


if __name__ == "__main__":
    sys.stdout.writelines(f"{source}: {cases}\n" for source, cases in table())
    sys.stdout.write(count().text())
