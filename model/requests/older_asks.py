"""Asks of the older generation: for several allocations each, which may run for a limited time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ..resources.quantities import INT64_MAX
from ..state.applying import apply
from ..state.partition_state import PartitionState
from ..values.messages import AllocationRejection, AllocationSubmission, AskTerms, invalid
from .allocations import submission_refusal, submit_allocations
from .existing import withdraw_waiting

ALLOCATIONS_MAX: Final = 10_000
"""How many allocations one ask may be for: each is an ask in the model, and takes about a kilobyte."""

_MS_NS: Final = 1_000_000


def timeout_ns(timeout_ms: int) -> int | None:
    """Return a timeout of the wire in nanoseconds; `None` if it means none: not positive, or centuries."""
    return timeout_ms * _MS_NS if 0 < timeout_ms <= INT64_MAX // _MS_NS else None


def submit_with_terms(
    state: PartitionState,
    submissions: Sequence[AllocationSubmission],
    terms: Sequence[AskTerms],
) -> list[AllocationRejection]:
    """Add asks and allocations, in order; return why some are rejected.

    Args:
        state: The partition.
        submissions: The submissions of the RM, beginning with the asks of the older generation.
        terms: One for each of these asks, in order.
    """
    rejections: list[AllocationRejection] = []
    taken: list[tuple[AskTerms, str]] = []
    singles: list[tuple[AllocationSubmission, AskTerms]] = []
    for submission, wanted in zip(submissions, terms, strict=False):
        name, key = submission.application_id, submission.allocation_key
        if wanted.allocations == 1 and not state.parts.has_parts(name, key):
            singles.append((submission, wanted))
            continue
        taken += _submit_singles(state, singles, rejections)
        singles = []
        taken += _submit_parts(state, submission, wanted, rejections)
    taken += _submit_singles(state, singles, rejections)
    rejections += submit_allocations(state, submissions[len(terms) :]).values()
    _limit(state, taken)
    return rejections


def _submit_singles(
    state: PartitionState,
    singles: Sequence[tuple[AllocationSubmission, AskTerms]],
    rejections: list[AllocationRejection],
) -> list[tuple[AskTerms, str]]:
    """Add asks that are for one allocation each; return the terms and keys of those that are taken."""
    rejected = submit_allocations(state, [submission for submission, _ in singles])
    rejections += rejected.values()
    return [
        (wanted, submission.allocation_key)
        for place, (submission, wanted) in enumerate(singles)
        if place not in rejected
    ]


def _submit_parts(
    state: PartitionState,
    submission: AllocationSubmission,
    wanted: AskTerms,
    rejections: list[AllocationRejection],
) -> list[tuple[AskTerms, str]]:
    """Make the parts of an ask match its number; return its terms with the key of each part.

    The parts that are there change their size as any known ask. Running parts are never ended: an ask that is
    for fewer allocations than before loses those that wait, the newest first.
    """
    name, key = submission.application_id, submission.allocation_key
    reason = invalid(_count_refusal(wanted)) or submission_refusal(state, submission)
    if reason is not None:
        rejections.append(AllocationRejection(key, name, reason.text, reason.code))
        return []
    known = state.parts.of(name, key)
    if len(known) > wanted.allocations:
        known = withdraw_waiting(state, state.entries[name], known, len(known) - wanted.allocations)
    keys = known + state.parts.further(name, key, max(0, wanted.allocations - len(known)))
    if state.node_checks is not None:
        state.node_checks.forget(keys=keys)
    rejected = submit_allocations(state, [submission.with_key(part) for part in keys])
    rejections += [
        AllocationRejection(key, name, first.reason, first.code) for first in [*rejected.values()][:1]
    ]
    return [(wanted, part) for place, part in enumerate(keys) if place not in rejected]


def _count_refusal(wanted: AskTerms) -> str | None:
    """Return why an ask cannot be for this number of allocations, `None` if it can."""
    if 0 < wanted.allocations <= ALLOCATIONS_MAX:
        return None
    return (
        f"ask {wanted.allocation_key} has maxAllocations {wanted.allocations}: "
        f"it may be from 1 to {ALLOCATIONS_MAX}, and 0 means 1"
    )


def _limit(state: PartitionState, taken: Sequence[tuple[AskTerms, str]]) -> None:
    """Limit how long the allocations of asks may run."""
    limits: dict[str, list[tuple[str, int | None]]] = {}
    for wanted, key in taken:
        limits.setdefault(wanted.application_id, []).append((key, timeout_ns(wanted.timeout_ms)))
    for application_id, of_application in limits.items():
        entry = state.entries[application_id]
        apply(state, entry, entry.application.limit_execution(of_application, state.now_ns()))
