"""Walltimes that an RM sends: which ones a queue takes, and what it does with work that runs longer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..applications.life import tag_refusal, walltime_of
from ..configuration.durations import duration_text
from ..configuration.queue_properties import RUNTIME_MAX, RuntimeSettings
from ..queues.application_entry import ApplicationEntry
from ..queues.queue import Queue
from ..queues.tree import QueueTree
from ..state.applying import apply
from ..state.event_rates import report_of_ask
from ..state.expected_ends import assumed_walltime_ns
from ..state.partition_state import PartitionState
from ..values.allocation import WALLTIME_TAG, Ask
from ..values.rejections import RejectionCode, RejectionReason, invalid


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


def watch_walltimes(state: PartitionState, entry: ApplicationEntry, keys: Sequence[str] | None) -> None:
    """Set when asks and allocations have run for their walltimes, where their queue ends such work.

    `None` for the keys stands for all that the application has.
    """
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


def names_another(tags: Mapping[str, str], known: Mapping[str, str]) -> bool:
    """Return whether tags name a walltime, and not the one that known tags name."""
    return WALLTIME_TAG in tags and tags[WALLTIME_TAG] != known.get(WALLTIME_TAG)


def change_walltime(
    state: PartitionState, entry: ApplicationEntry, key: str, tags: Mapping[str, str]
) -> None:
    """Give a known ask or allocation the walltime that tags name, if they name another one.

    All that follows from a walltime follows from the new one at once: when a queue ends what runs, and when
    starts are planned. Other tags stay as they are. What is known is not rejected: a walltime that its queue
    does not take changes nothing, and an event of the ask says why.
    """
    ask = _known_ask(entry, key)
    if ask is None or not names_another(tags, ask.tags):
        return
    refusal = walltime_refusal(f"ask {key}", tags, entry.queue)
    if refusal is not None:
        message = f"It keeps the walltime that it has: {refusal.text}"
        report_of_ask(state, "walltime", (entry.application_id, key), ask.resource, message)
        return
    before_ns = assumed_walltime_ns(ask, entry.tags, entry.queue)
    answer = entry.application.retag(key, {**ask.tags, WALLTIME_TAG: tags[WALLTIME_TAG]})
    for allocation in answer.allocations:
        node = state.nodes.get(allocation.node_id)
        if node is not None:
            node.node.replace(key, allocation)
    reserved = state.reserved.get(key)
    if reserved is not None and answer.asks:
        state.reserved.remove(key)
        state.reserved.add(reserved._replace(ask=answer.asks[0].ask))
    apply(state, entry, answer)
    _changed(state, entry, {key: before_ns}, [key])


def change_application_walltime(
    state: PartitionState, entry: ApplicationEntry, tags: Mapping[str, str]
) -> None:
    """Give a known application the walltime that tags name: of all its work without one of its own."""
    waiting = [record.ask for record in entry.application.asks.waiting()]
    before_ns = {ask.allocation_key: assumed_walltime_ns(ask, entry.tags, entry.queue) for ask in waiting}
    entry.tags = {**entry.tags, WALLTIME_TAG: tags[WALLTIME_TAG]}
    if entry.submission is not None:
        entry.submission = replace(entry.submission, tags=entry.tags)
    _changed(state, entry, before_ns, None)


def _known_ask(entry: ApplicationEntry, key: str) -> Ask | None:
    """Return the ask of a key that waits or is placed."""
    record = entry.application.asks.record(key)
    if record is not None:
        return record.ask
    placed = entry.application.allocations.get(key)
    return None if placed is None else placed.ask


def _changed(
    state: PartitionState,
    entry: ApplicationEntry,
    before_ns: Mapping[str, int | None],
    keys: Sequence[str] | None,
) -> None:
    """Plan anew, and end what runs too long.

    What waits for longer than it had said is promised a start as if it came now: others were promised theirs
    beside less.

    Args:
        state: The partition.
        entry: The application.
        before_ns: The walltimes of asks before, by key.
        keys: Those of asks and allocations with another walltime; `None` for all.
    """
    state.ends.forget()
    state.ends.unplanned += 1
    state.changes += 1
    waiting = {record.ask.allocation_key: record.ask for record in entry.application.asks.waiting()}
    if any(
        was_ns is not None
        and key in waiting
        and (assumed_walltime_ns(waiting[key], entry.tags, entry.queue) or 0) > was_ns
        for key, was_ns in before_ns.items()
    ):
        state.ends.forget_promises(waiting if entry.facts.gang_waits else before_ns)
    watch_walltimes(state, entry, keys)


def _follow(state: PartitionState, entry: ApplicationEntry, keys: Sequence[str] | None) -> None:
    """Apply the settings of its queue to some asks and allocations of an application, or to all."""
    runtime = entry.queue.settings.runtime
    default_ns = walltime_of(entry.tags) or runtime.assumed_ns
    answer = entry.application.follow_walltimes(keys, default_ns, ends=runtime.ends_overruns)
    apply(state, entry, answer)
