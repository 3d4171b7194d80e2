"""How busy an engine is, as metrics show it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class EngineLoad(NamedTuple):
    """The load of an engine at one moment."""

    threads: int
    """Threads that run partitions, those that wait included."""
    threads_waiting: int
    """Those of them that wait: for work, an answer or a predicate."""
    queued: int
    """Mailboxes, or partitions, that wait for a thread."""
    messages: Mapping[str, int]
    """How many messages wait for each partition, by its full name."""


IDLE = EngineLoad(0, 0, 0, {})
"""An engine without threads: it has nothing that could wait."""
