"""Walltimes that an RM sends: which ones a queue takes, and what it does with work that runs longer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..applications.walltimes import tag_refusal, walltime_of
from ..configuration.durations import duration_text
from ..configuration.queue_properties import RUNTIME_MAX, RuntimeSettings
from ..queues.application_entry import ApplicationEntry
from ..queues.queue import Queue
from ..queues.tree import QueueTree
from ..state.applying import apply
from ..state.partition_state import PartitionState
from ..values.rejections import RejectionCode, RejectionReason, invalid

__all__ = ["runtime_settings", "runtimes_changed", "walltime_refusal", "watch_walltimes"]


def walltime_refusal(whose: str, tags: Mapping[str, str], queue: Queue | None) -> RejectionReason | None:
    """Return why the walltime in tags is refused, `None` if it is not or there is none.

    Args:
        whose: What has the tags, for the text.
        tags: Its tags.
        queue: The leaf that it goes to, `None` if that is not known.
    """
    refusal = invalid(tag_refusal(whose, tags))
    walltime_ns = walltime_of(tags)
    if refusal is not None or walltime_ns is None or queue is None:
        return refusal
    longest_ns = queue.settings.runtime.max_ns
    if longest_ns is None or walltime_ns <= longest_ns:
        return None
    text = (
        f"the walltime {duration_text(walltime_ns)} of {whose} is longer than {RUNTIME_MAX} "
        f"{duration_text(longest_ns)} of queue {queue.path}{_place(queue)}"
    )
    return RejectionReason(RejectionCode.OVER_MAXIMUM, text)


def _place(queue: Queue) -> str:
    """Return where the maximum of a queue is in the configuration, as far as that is known."""
    for level in queue.above:
        position = level.positions.get(f"properties.{RUNTIME_MAX}")
        if position is not None:
            return f" (line {position.line} of the configuration)"
    return ""


def watch_walltimes(state: PartitionState, entry: ApplicationEntry, keys: Sequence[str]) -> None:
    """Set when new asks and allocations have run for their walltimes, where their queue ends such work."""
    if entry.queue.settings.runtime.ends_overruns:
        _follow(state, entry, keys)


def runtime_settings(tree: QueueTree) -> dict[str, RuntimeSettings]:
    """Return what leaf queues say about run times, by their paths."""
    return {queue.path: queue.settings.runtime for queue in tree if queue.is_leaf}


def runtimes_changed(state: PartitionState, before: Mapping[str, RuntimeSettings]) -> None:
    """Apply what leaf queues say now about run times to all that they have.

    Args:
        state: The partition, with the new settings.
        before: The settings before, by path; a queue that was not there has the defaults.
    """
    for queue in state.tree:
        old, new = before.get(queue.path, RuntimeSettings()), queue.settings.runtime
        if not queue.is_leaf or old == new or not (old.ends_overruns or new.ends_overruns):
            continue
        for entry in list(queue.entries.by_id.values()):
            _follow(state, entry, None)


def _follow(state: PartitionState, entry: ApplicationEntry, keys: Sequence[str] | None) -> None:
    """Apply the settings of its queue to some asks and allocations of an application, or to all."""
    runtime = entry.queue.settings.runtime
    default_ns = walltime_of(entry.application.tags) or runtime.assumed_ns
    answer = entry.application.follow_walltimes(keys, default_ns, ends=runtime.ends_overruns)
    apply(state, entry, answer)
