"""Carrying out a preemption: mark the victims, count them, ask the RM to end them, and keep a record.

Marking checks again: an allocation that has ended since it was chosen, or that the RM has been asked to end,
cannot be marked. Then nothing happens at all, and the caller may decide again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import Final, NamedTuple

from ..applications.pending_asks import CHECK_INTERVAL_NS
from ..queues.application_entry import ApplicationEntry
from ..state.claims import EndingVictim
from ..state.partition_state import PartitionState
from ..state.preemption_log import (
    FramePriorities,
    PreemptionCause,
    PreemptionLog,
    PreemptionRecord,
    VictimNeed,
    VictimRecord,
)
from ..values.allocation import Ask
from ..values.events import ChangeDetail, ChangeType, EventType
from ..values.messages import AllocationsReleased, Release, TerminationType
from .victims import Victim

FOR_ASK: Final = "preempting allocations to free up resources to run ask: "
"""How the message to a victim begins, before the key of the ask."""


def mark_all(victims: Sequence[Victim]) -> Victim | None:
    """Mark all victims as preempted, or none; return the first that cannot be marked, `None` on success."""
    for position, victim in enumerate(victims):
        if not victim.entry.application.allocations.mark_preempted(victim.key):
            for marked in victims[:position]:
                marked.entry.application.allocations.unmark_preempted(marked.key)
            return victim
    return None


def release_all(state: PartitionState, victims: Sequence[Victim], text: str) -> None:
    """Count marked victims as being preempted, and ask the RM once to end all of them."""
    for victim in victims:
        for level in victim.queue.above:
            level.change_preempting(victim.resource)
    releases = tuple(
        Release(
            partition=state.name,
            application_id=victim.entry.application_id,
            allocation_key=victim.key,
            termination=TerminationType.PREEMPTED_BY_SCHEDULER,
            message=text,
        )
        for victim in victims
    )
    if releases:
        state.ends.unplanned += 1
        state.host.announce(AllocationsReleased(releases))


def release_by_application(state: PartitionState, victims: Sequence[Victim], text: str) -> None:
    """Count marked victims as being preempted, and ask the RM to end them, with a message per application."""
    ordered = sorted(victims, key=lambda victim: victim.entry.application_id)
    for _, group in groupby(ordered, key=lambda victim: victim.entry.application_id):
        release_all(state, list(group), text)


def report_preempted(state: PartitionState, victims: Sequence[Victim], why: str) -> None:
    """Report as events that allocations were preempted; `why` names the cause."""
    for victim in victims:
        state.events.note(
            *(ChangeType.NONE, ChangeDetail.NONE, victim.key),
            of=EventType.REQUEST,
            reference_id=victim.entry.application_id,
            message=f"Preempted by {why}",
            resource=victim.resource,
        )


def by_ask(ask: Ask, entry: ApplicationEntry) -> str:
    """Return the name, in events, of the ask of an application that preempts."""
    return f"{ask.allocation_key} from application {entry.application_id} in {entry.queue.path}"


def ending_of(victims: Sequence[Victim]) -> list[EndingVictim]:
    """Return the victims in the form that the claim of an ask keeps."""
    return [
        EndingVictim(
            victim.entry.application_id,
            victim.key,
            victim.entry.user,
            victim.queue,
            victim.allocation.node_id,
            victim.resource,
        )
        for victim in victims
    ]


def victim_record(
    victim: Victim,
    reason: str,
    need: VictimNeed,
    priorities: FramePriorities | None = None,
    gives: Iterable[str] = (),
) -> VictimRecord:
    """Return the record of a victim."""
    return VictimRecord(
        allocation_key=victim.key,
        application_id=victim.entry.application_id,
        queue_path=victim.queue.path,
        node_id=victim.allocation.node_id,
        resource=victim.resource,
        reason=reason,
        need=need,
        priorities=priorities,
        gives=tuple(sorted(gives)),
        user=victim.entry.user.name,
        begun_ns=victim.begun_ns,
    )


def repeats(state: PartitionState, record: PreemptionRecord) -> Repetition | None:
    """Return the earlier preemption without effect that a record repeats, `None` if it repeats none."""
    return repetition_of(
        record,
        state.preemptions,
        lambda earlier: _waits(state, earlier) and not is_still_ending(state, earlier),
    )


def remember(state: PartitionState, record: PreemptionRecord) -> None:
    """Keep a record for explanations, and note whether the preemption repeats an earlier one."""
    repetition = repeats(state, record)
    state.preemptions.add(
        record if repetition is None else replace(record, loop=repetition.why), partial(_waits, state)
    )


def _waits(state: PartitionState, record: PreemptionRecord) -> bool:
    entry = state.entries.get(record.application_id)
    ask = None if entry is None else entry.application.asks.record(record.allocation_key)
    return ask is not None and not ask.placed


def is_still_ending(state: PartitionState, record: PreemptionRecord) -> bool:
    """Return whether any victim of a preemption has not ended yet."""
    for victim in record.victims:
        entry = state.entries.get(victim.application_id)
        if entry is not None and entry.application.allocations.get(victim.allocation_key) is not None:
            return True
    return False


LOOP_WINDOW_NS: Final = 10 * 60 * 1_000_000_000
"""A preemption without result longer ago than this does not make the next one a loop."""


class Repetition(NamedTuple):
    """A preemption that would repeat earlier ones that had no effect."""

    why: str
    """The repeated preemption, in words."""
    until_ns: int
    """The time until which the new preemption waits; the wait doubles each time."""


def repetition_of(
    record: PreemptionRecord,
    log: PreemptionLog,
    still_waits: Callable[[PreemptionRecord], bool],
) -> Repetition | None:
    """Return the earlier preemptions without effect that a record repeats, `None` if it repeats none.

    Args:
        record: The new preemption.
        log: The earlier preemptions.
        still_waits: Returns whether the ask of an earlier one still waits although its victims have ended.
    """
    if record.cause is PreemptionCause.QUOTA:
        return None
    taken_from = {victim.application_id for victim in record.victims}
    since: dict[str, PreemptionRecord] = {}
    last: tuple[str, int] | None = None
    times = 0
    for earlier in reversed(tuple(log)):
        if record.time_ns - earlier.time_ns > LOOP_WINDOW_NS:
            break
        same_claim = earlier.cause is record.cause and earlier.queue_path == record.queue_path
        again = sorted({victim.application_id for victim in earlier.victims} & taken_from)
        if same_claim and again:
            why = _came_to_nothing(earlier, since, still_waits)
            times += bool(why or earlier.loop)
            if why and last is None:
                text = (
                    f"{', '.join(again)} was preempted for {earlier.allocation_key} of {record.queue_path} "
                    f"already, and {why}"
                )
                last = text, earlier.time_ns
        for victim in earlier.victims:
            since[victim.allocation_key] = earlier
    if last is None:
        return None
    why, time_ns = last
    return Repetition(why, time_ns + min(CHECK_INTERVAL_NS << (times - 1), LOOP_WINDOW_NS))


def _came_to_nothing(
    earlier: PreemptionRecord,
    since: dict[str, PreemptionRecord],
    still_waits: Callable[[PreemptionRecord], bool],
) -> str:
    """Return why an earlier preemption had no result; `since` has the victims of the later ones."""
    later = since.get(earlier.allocation_key)
    if later is not None:
        if f"{later.queue_path}.".startswith(f"{earlier.queue_path}."):
            return ""  # The queue has kept the room that was taken for it.
        return f"that was then preempted itself, for {later.queue_path}"
    if still_waits(earlier):
        return "that still waits: its room was given to somebody else"
    return ""
