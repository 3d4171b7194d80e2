"""What the partitions of a door have used, for the workers that they come to next."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from time import time_ns
from typing import final

from ....model.queues.use_order import KeptUse
from ....model.values.documents import Document, Json
from ....model.values.messages import full_partition_name
from ...core.scheduler.answering.state_documents import of_manager, taken_use, use_document


@final
class DoorUse:
    """What partitions have used, as their workers have said last; any thread may use it.

    Args:
        kept: What they have used before, by full name.
    """

    def __init__(self, kept: Mapping[str, KeptUse]) -> None:
        self._lock = threading.Lock()
        self._kept = kept
        """By the full name of the partition; replaced as a whole."""

    def take(self, rm_id: str, usage: Json) -> None:
        """Note what partitions of an RM have used; of each the later is kept.

        What is ahead of the clock, by that of another machine, counts as of now. Else all that comes later by
        a right clock would be the earlier.

        Raises:
            RequestError: It is no such document.
        """
        with self._lock:
            self._kept = taken_use(self._kept, rm_id, usage, time_ns())

    def of_partition(self, rm_id: str, partition: str) -> Document | None:
        """Return what a worker of a partition is to go on from, `None` for nothing."""
        name = full_partition_name(partition, rm_id)
        kept = self._kept.get(name)
        return None if kept is None or not kept.uses else use_document({name: kept}, time_ns())

    def of_manager(self, rm_id: str | None) -> Document:
        """Return what the partitions of an RM have used, those of all RMs with `None`."""
        return use_document(of_manager(self._kept, rm_id), time_ns())
