"""Where a partition runs, and how it is: what states, REST and the page show of the workers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum

from .workers import LaunchedWorker


class LinkState(Enum):
    """How the link to the worker of a partition is."""

    STARTING = "Starting"
    """There is no worker yet."""
    RECOVERING = "Recovering"
    """A worker gets what the partition holds; nothing is placed meanwhile."""
    RUNNING = "Running"
    CLOSED = "Closed"
    """The resource manager has registered again, here or elsewhere, or has stopped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionPlace:
    """A partition of a resource manager, and the worker that it is on."""

    rm_id: str
    partition: str
    """Its name as the configuration has it, without the resource manager."""
    state: LinkState
    since_ns: int
    """Since when it is in this state, nanoseconds since 1970."""
    reason: str
    """Why the worker before was lost, or why there is none; empty if nothing went wrong."""
    address: str
    """Where the worker serves `licorne.v1`; empty while there is none."""
    rest_address: str
    """Where the worker's REST interface listens, `HOST:PORT`; empty if that is not known, or it has none."""
    worker_number: int
    """Counts the workers of the partition, from 1; 0 while there is none."""
    waiting: int
    """How many requests wait in the door."""
    token: str = field(default="", repr=False, compare=False)
    """The bearer token that this worker alone requires; empty if it has none of its own."""

    def refusal(self, now_ns: int) -> str:
        """Return what is said to those who ask the partition something while it does not run."""
        seconds = (now_ns - self.since_ns) / 1e9
        why = f": {self.reason}" if self.reason else ""
        state = self.state.value.lower()
        return f"partition {self.partition!r} of RM {self.rm_id!r} is {state} since {seconds:.1f} s{why}"

    @classmethod
    def starting(cls, rm_id: str, partition: str, since_ns: int) -> PartitionPlace:
        """Return the place of a partition that has had no worker yet."""
        return cls(
            rm_id=rm_id,
            partition=partition,
            state=LinkState.STARTING,
            since_ns=since_ns,
            reason="",
            address="",
            rest_address="",
            worker_number=0,
            waiting=0,
        )

    def entered(self, state: LinkState, reason: str | None, now_ns: int) -> PartitionPlace:
        """Return the same in another state; without a reason the one before stays."""
        return replace(self, state=state, since_ns=now_ns, reason=self.reason if reason is None else reason)

    def at(self, worker: LaunchedWorker, rest_address: str) -> PartitionPlace:
        """Return the same at a worker."""
        return replace(
            self,
            address=worker.address,
            rest_address=rest_address,
            worker_number=worker.number,
            token=worker.token,
        )
