"""The detector of preemptions that repeat each other without progress.

A preemption *came to nothing* when its victims have ended and its ask still waits, because another ask was
placed in the room, or when its ask was placed and was then a victim itself. A preemption is a *loop* when
it takes from an application, for a queue, what an earlier one took from the same application for the same
queue and which came to nothing: the RM has asked for the victim again, the scheduler has placed it
again, and the state is the same as before. Such a preemption waits: 15 seconds after the first one that came
to nothing, and twice as long each time, ten minutes at most.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ..applications.pending_asks import CHECK_INTERVAL_NS
from ..state.preemption_log import PreemptionCause

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..state.preemption_log import PreemptionLog, PreemptionRecord

__all__ = ["LOOP_WINDOW_NS", "Repetition", "repetition_of"]

LOOP_WINDOW_NS: Final = 10 * 60 * 1_000_000_000
"""A preemption that came to nothing longer ago than this is no reason to call the next one a loop."""


class Repetition(NamedTuple):
    """A preemption that would repeat earlier ones that had no effect."""

    why: str
    """What it would repeat."""
    until_ns: int
    """Until when it waits: twice as long each time."""


def repetition_of(
    record: PreemptionRecord,
    log: PreemptionLog,
    still_waits: Callable[[PreemptionRecord], bool],
) -> Repetition | None:
    """Return what a preemption would repeat without effect, `None` if it is no repetition.

    Args:
        record: The new preemption.
        log: Those before it.
        still_waits: Says of an earlier one whether its ask waits although its victims have ended.
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
    """Return how an earlier preemption came to nothing; `since` has the victims of the later ones."""
    later = since.get(earlier.allocation_key)
    if later is not None:
        if f"{later.queue_path}.".startswith(f"{earlier.queue_path}."):
            return ""  # The room stayed with the queue that it was taken for.
        return f"that was then preempted itself, for {later.queue_path}"
    if still_waits(earlier):
        return "that still waits: its room was given to somebody else"
    return ""
