"""What simulated resource managers see of the effect of preemption."""

from __future__ import annotations

from typing import Any, Final

import pytest

from licorne.proxy.fuzz.manager.callbacks import FOR_ASK, PreemptionEffects
from licorne.proxy.fuzz.manager.cluster_record import RecordError
from licorne.proxy.si import si_pb2 as si


def hears(*placed: str, preempted: tuple[str, ...] = (), message: str = f"{FOR_ASK}p") -> tuple[str, Any]:
    """Return that a manager hears of what is placed, and of what is to end."""
    released = [
        si.AllocationRelease(allocationKey=key, terminationType=si.PREEMPTED_BY_SCHEDULER, message=message)
        for key in preempted
    ]
    new = [si.Allocation(allocationKey=key) for key in placed]
    return "hears", si.AllocationResponse(new=new, released=released)


def ends(*keys: str) -> tuple[str, Any]:
    """Return that a manager says that work has ended, or is no longer asked for."""
    releases = [si.AllocationRelease(allocationKey=key) for key in keys]
    return "says", si.AllocationRequest(releases=si.AllocationReleasesRequest(allocationsToRelease=releases))


BOTH: Final = hears(preempted=("a", "b"))
CASES: Final[dict[str, tuple[list[tuple[str, Any]], bool]]] = {
    "an ask waits for the other victim": ([BOTH, ends("a")], True),
    "an ask that waits without any is a fault": ([BOTH, ends("a", "b")], False),
    "one that runs is none": ([BOTH, ends("a", "b"), hears("p")], True),
    "one that is withdrawn is none": ([BOTH, ends("p"), ends("a", "b")], True),
    "nothing is said where nodes have changed": ([BOTH, ("says", si.NodeRequest()), ends("a", "b")], True),
    "nor of other kinds of preemption": (
        [hears(preempted=("a",), message="enforcing a maximum"), ends("a")],
        True,
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_an_ask_runs_once_its_victims_have_ended(case: tuple[list[tuple[str, Any]], bool]) -> None:
    """Unless something else has changed."""
    said, is_fine = case
    effects = PreemptionEffects()
    for verb, message in said:
        effects.note("rm", verb, message)
    if is_fine:
        effects.check({"rm"})
    else:
        with pytest.raises(RecordError, match="p waits, and all that was preempted for it has ended"):
            effects.check({"rm"})
    effects.check({"another"})
