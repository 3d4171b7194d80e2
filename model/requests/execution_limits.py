"""Limits on how long the allocations of asks may run, as an RM sets them, carried out on a partition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..resources.quantities import INT64_MAX
from ..state.applying import apply

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from ..state.partition_state import PartitionState
    from ..values.messages import ExecutionLimit

__all__ = ["limit_executions", "timeout_ns"]

_MS_NS: Final = 1_000_000


def timeout_ns(timeout_ms: int) -> int | None:
    """Return a timeout of the wire in nanoseconds; `None` if there is none: not positive, or centuries."""
    return timeout_ms * _MS_NS if 0 < timeout_ms <= INT64_MAX // _MS_NS else None


def limit_executions(
    state: PartitionState,
    limits: Sequence[ExecutionLimit],
    rejected: Container[int],
) -> None:
    """Limit the asks that a request begins with; rejected ones are skipped.

    Args:
        state: The partition.
        limits: One for each of these asks, in order.
        rejected: The places of the rejected ones.
    """
    by_application: dict[str, list[tuple[str, int | None]]] = {}
    for place, limit in enumerate(limits):
        if place not in rejected:
            ask_limit = (limit.allocation_key, timeout_ns(limit.timeout_ms))
            by_application.setdefault(limit.application_id, []).append(ask_limit)
    for application_id, ask_limits in by_application.items():
        entry = state.entries[application_id]
        apply(state, entry, entry.application.limit_execution(ask_limits, state.now_ns()))
