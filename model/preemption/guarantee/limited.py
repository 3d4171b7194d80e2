"""Preemption for asks above the limits of their user or group: only work of that user or group ends.

Such an ask preempts only inside its leaf. A limit gets back at least what the ask takes, like a queue without
room. A victim for the ask must count for each of the limits without room. So each victim gives something back
to each of them, and no work of others ends because someone has used up their limit.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...applications.ask_walk import Candidate, CandidateKind
from ...configuration.schema import LIMIT_KINDS
from ...limits.usage_tree import LimitBlocker
from ...queues.application_entry import ApplicationEntry
from ...queues.queue import Queue
from ...resources.resource import Resource, total_of
from ...state.charges import held_of_holders, holder_of
from ...state.claims import EndingVictim
from ...state.partition_state import PartitionState
from ...values.allocation import Ask
from ...values.messages import User
from .candidate_victims import CandidateVictims

_COUNTING: frozenset[str] = frozenset(kind.key for kind in LIMIT_KINDS if kind.counts_usage)


def lets_end_inside(leaf: Queue) -> bool:
    """Return whether asks of a leaf may end work of lower priority in it."""
    return leaf.settings.preemption_within.ends_lower_priorities


def limited_holder(
    state: PartitionState, entry: ApplicationEntry, candidate: Candidate
) -> tuple[str, str | None] | None:
    """Return the user and the group of a candidate if their limits have no room for it, else `None`."""
    return holder_of(state, entry) if candidate.kind is CandidateKind.LIMIT else None


def limits_without_room(state: PartitionState, entry: ApplicationEntry, ask: Ask) -> tuple[LimitBlocker, ...]:
    """Return the limits of the user and the group of an ask that have no room for it."""
    if not state.limits.is_limited:
        return ()
    of_entry = (entry.queue.path, entry.application_id, entry.user)
    held = held_of_holders(state, *of_entry, ask.allocation_key)
    return state.limits.blockers(*of_entry, ask.resource, held)


def within_limits_if_ended(limits: Iterable[LimitBlocker]) -> bool:
    """Return whether each of some limits has room again when enough ends, by the resources in use."""
    return all(limit.key in _COUNTING for limit in limits)


def of_holders(
    state: PartitionState, candidates: CandidateVictims, limits: tuple[LimitBlocker, ...]
) -> CandidateVictims:
    """Return the possible victims that count for each of some limits."""
    if not limits:
        return candidates
    counts: dict[str, bool] = {}

    def is_of_holders(entry: ApplicationEntry) -> bool:
        name = entry.application_id
        if name not in counts:
            counts[name] = all(_counts(state, limit, name, entry.user, entry.queue) for limit in limits)
        return counts[name]

    return candidates._replace(
        victims=tuple(each for each in candidates.victims if is_of_holders(each.entry)),
        protected=tuple(each for each in candidates.protected if is_of_holders(each.victim.entry)),
    )


def coming_to(state: PartitionState, limit: LimitBlocker, ending: Iterable[EndingVictim]) -> Resource:
    """Return how much a limit gets back from victims that end anyway."""
    return total_of(
        each.resource for each in ending if _counts(state, limit, each.application_id, each.user, each.queue)
    )


def _counts(state: PartitionState, limit: LimitBlocker, application_id: str, user: User, leaf: Queue) -> bool:
    """Return whether the use of an application counts for a limit."""
    if not any(level.path == limit.queue_path for level in leaf.above):
        return False
    if limit.kind == "user":
        return user.name == limit.name
    return state.limits.group_of(leaf.path, application_id, user) == limit.name
