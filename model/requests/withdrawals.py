"""Asks that are withdrawn before they are placed, carried out on a partition."""

from __future__ import annotations

from collections.abc import Sequence

from ..queues.application_entry import ApplicationEntry
from ..state.applying import apply
from ..state.charges import drop_asks
from ..state.partition_state import PartitionState


def withdraw_ask(state: PartitionState, entry: ApplicationEntry, key: str) -> None:
    """Drop an ask, whether it waits or its allocation has just ended."""
    if entry.application_id not in state.entries:
        return
    answer = entry.application.asks.remove(key, state.now_ns())
    drop_asks(state, entry, answer)
    apply(state, entry, answer)


def withdraw_waiting(
    state: PartitionState, entry: ApplicationEntry, keys: Sequence[str], count: int | None = None
) -> list[str]:
    """Drop those of the asks that wait, the last `count` of them if that is given; return what is left."""
    dropped: set[str] = set()
    for key in reversed(keys):
        if len(dropped) == count:
            break
        record = entry.application.asks.record(key)
        if record is not None and not record.placed:
            withdraw_ask(state, entry, key)
            dropped.add(key)
    return [key for key in keys if key not in dropped]
