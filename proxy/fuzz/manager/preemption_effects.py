"""What resource managers see of the effect of preemption: what ends for an ask lets it run.

A claim keeps for an ask what its victims give back. So once all of them have ended, and the scheduler has
nothing more to do, the ask runs. It may not if something else has changed in between; then nothing is said.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final, final

from ...si import si_pb2 as si
from .cluster_record import RecordError

FOR_ASK: Final = "preempting allocations to free up resources to run ask: "
"""How the texts of releases for a guarantee, or for a priority in a queue, begin."""


@final
class PreemptionEffects:
    """Follows all that resource managers say and hear, for schedulers that run when they are stepped."""

    def __init__(self) -> None:
        self._ending: dict[tuple[str, str], set[str]] = {}
        """By manager and ask, the victims that have not ended."""
        self.checked = 0
        """How many preemptions had their effect."""

    def note(self, rm_id: str, verb: str, message: Any) -> None:
        """Take what a manager says or hears."""
        if isinstance(message, si.AllocationResponse):
            self._hear(rm_id, message)
        elif isinstance(message, si.AllocationRequest) and not _changes_room(message):
            for allocation in message.allocations:  # Perhaps it has another size now.
                self._forget(rm_id, allocation.allocationKey)
            for release in message.releases.allocationsToRelease:
                self._forget(rm_id, release.allocationKey)
        elif verb in ("says", "registers", "is refused") or rm_id == "operator":
            self._ending.clear()

    def check(self, managers: Collection[str]) -> None:
        """Check that no ask of some managers waits whose victims have ended; nothing else is to be done.

        Raises:
            RecordError: One does.
        """
        for (rm_id, ask), victims in self._ending.items():
            if rm_id in managers and not victims:
                raise RecordError(f"{ask} waits, and all that was preempted for it has ended")

    def _hear(self, rm_id: str, response: si.AllocationResponse) -> None:
        for allocation in response.new:
            if self._ending.pop((rm_id, allocation.allocationKey), None) is not None:
                self.checked += 1
        for rejected in response.rejectedAllocations:
            self._forget(rm_id, rejected.allocationKey)
        for release in response.released:
            if release.terminationType == si.PREEMPTED_BY_SCHEDULER and release.message.startswith(FOR_ASK):
                ask = release.message.removeprefix(FOR_ASK)
                self._ending.setdefault((rm_id, ask), set()).add(release.allocationKey)
            elif release.terminationType != si.PREEMPTED_BY_SCHEDULER:
                self._forget(rm_id, release.allocationKey)

    def _forget(self, rm_id: str, key: str) -> None:
        """Take out what has ended, or is no longer asked for."""
        self._ending.pop((rm_id, key), None)
        for (manager, _), victims in self._ending.items():
            if manager == rm_id:
                victims.discard(key)


def _changes_room(request: si.AllocationRequest) -> bool:
    """Return whether a request changes the room of nodes or queues by more than the end of work."""
    return any(allocation.nodeID for allocation in request.allocations)
