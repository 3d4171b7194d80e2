"""Rules about how a partition preempts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ..problems import RuleFinding
from ..schema import PartitionConfig, VictimJobs, VictimOrdering
from ..words import did_you_mean

_ORDERS: Final = tuple(order.value for order in VictimOrdering)
_JOBS: Final = tuple(jobs.value for jobs in VictimJobs)


def victims_are_known(partition: PartitionConfig) -> Iterator[RuleFinding]:
    """Refuse an order of victims that does not exist; the empty text means the first that does."""
    preemption = partition.preemption
    for key, written, known in (("victims", preemption.victims, _ORDERS), ("jobs", preemption.jobs, _JOBS)):
        if written and written not in known:
            wanted = " or ".join(repr(word) for word in known)
            yield RuleFinding(
                partition.positions[f"preemption.{key}"],
                f"preemption.{key} is {written!r}, and must be {wanted}{did_you_mean(written, known)}",
            )
