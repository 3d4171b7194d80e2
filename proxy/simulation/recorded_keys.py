"""The keys under which a record has what a resource manager names in either generation of `si.v1`.

They are those of the model, see `licorne.model.values.part_keys`: an ask of the older generation is in the
record once for each allocation that it is for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from ...model.requests.older_asks import ALLOCATIONS_MAX
from ...model.state.ask_parts import AskParts
from ...model.values.part_keys import PART_MARK, part_key

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..si import si_pb2 as si

__all__ = ["RecordedKeys"]


@final
class RecordedKeys:
    """The keys of one resource manager.

    Args:
        is_used: Returns whether something with a key waits or runs.
    """

    def __init__(self, is_used: Callable[[str], bool]) -> None:
        def used_among(_: str, keys: Sequence[str]) -> list[str]:
            return [key for key in keys if is_used(key)]

        self._parts = AskParts(used_among)
        self.is_older = False
        """Whether it uses the older generation: then a release without a name keeps what waits."""

    def wanted(self, ask: si.AllocationAsk) -> tuple[list[str], list[str]]:
        """Return the parts that an ask of the older generation is for now, and then those that are too many.

        Of the latter only those end that wait. An ask that is rejected for its number counts as it was.
        """
        known = self.of_ask(ask.applicationID, ask.allocationKey)
        count = ask.maxAllocations or 1
        if not 0 < count <= ALLOCATIONS_MAX:
            return known or [ask.allocationKey], []
        further = self._parts.further(ask.applicationID, ask.allocationKey, max(0, count - len(known)))
        return known[:count] + further, known[count:]

    def of_ask(self, application_id: str, ask_key: str) -> list[str]:
        """Return the keys of what waits or runs of an ask; its application may be empty."""
        return self._parts.of(application_id or self._parts.owner_of(ask_key), ask_key)

    def of_allocation(self, allocation: si.Allocation) -> str:
        """Return the key of an allocation, or of an ask of the current generation."""
        key = part_key(allocation.allocationKey, allocation.UUID)
        if PART_MARK in key:
            self._parts.note(allocation.applicationID, key)
        return key

    def of_release(self, release: si.AllocationRelease) -> list[str]:
        """Return the keys of what a release names; none if it is everything of the application."""
        key, uuid, name = release.allocationKey, release.UUID, release.applicationID
        if uuid:
            return [part_key(key, uuid) if key else self._parts.with_uuid(name, uuid)]
        return self.of_ask(name, key) if key else []
