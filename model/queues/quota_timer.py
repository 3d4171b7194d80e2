"""When a maximum that was lowered is enforced: a due time for each queue.

The due time is set where a queue uses more than its maximum and has a `quota.preemption.delay`: when the
maximum was lowered, or when the RM reports something that exists already. It is cancelled when the usage is
within the maximum again, and removed once it has been due: one change is enforced once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ..resources.resource import Resource
from .queue import Queue


class QuotaSettings(NamedTuple):
    """What the due time of a queue depends on."""

    maximum: Resource | None = None
    delay_ns: int = 0


def is_over_maximum(queue: Queue) -> bool:
    """Return whether a queue uses more than its own maximum of any type."""
    maximum = queue.maximum
    if maximum is None:
        return False
    return any(queue.allocated.get(name) > quantity for name, quantity in maximum.items())


def quota_changed(queue: Queue, old_maximum: Resource | None, old_delay_ns: int, now_ns: int) -> None:
    """Set, move or cancel the due time of a queue whose configuration has been applied.

    A maximum counts as lowered where it is lower for any type, or newly limits one: in the recorded core
    a first maximum, and one that is lowered for some types and raised for others, is never enforced.

    Args:
        queue: The queue as it is now.
        old_maximum: Its maximum before, `None` for none, or for a queue that is new.
        old_delay_ns: Its `quota.preemption.delay` before, 0 for none.
        now_ns: The time.
    """
    delay_ns = queue.settings.quota_preemption_delay_ns
    if not queue.managed or not delay_ns or not is_over_maximum(queue):
        queue.quota_preemption_due_ns = None
        return
    due_ns = queue.quota_preemption_due_ns
    if due_ns is not None:
        queue.quota_preemption_due_ns = due_ns + delay_ns - old_delay_ns
    elif _is_lowered(old_maximum, queue.maximum) or not old_delay_ns:
        queue.quota_preemption_due_ns = now_ns + delay_ns


def quota_settings(queues: Iterable[Queue]) -> dict[str, QuotaSettings]:
    """Return the settings of queues by path, to be kept while a configuration is applied to them."""
    return {
        queue.path: QuotaSettings(queue.maximum, queue.settings.quota_preemption_delay_ns) for queue in queues
    }


def quotas_changed(queues: Iterable[Queue], before: Mapping[str, QuotaSettings], now_ns: int) -> None:
    """Set, move or cancel the due times of all queues after a configuration has been applied to them."""
    for queue in queues:
        old = before.get(queue.path, QuotaSettings())
        quota_changed(queue, old.maximum, old.delay_ns, now_ns)


def _is_lowered(old: Resource | None, new: Resource | None) -> bool:
    """Return whether a new maximum is stricter than the old one for any type."""
    if new is None:
        return False
    if old is None:
        return True
    return any(not old.has(name) or quantity < old[name] for name, quantity in new.items())


def usage_raised(queue: Queue, now_ns: int) -> None:
    """Set the due times of a leaf and of those above it that now use more than their maximum.

    To be called where usage is raised whatever the quotas say (recovery, placement by the RM, resizing), in
    a partition that enforces quotas.
    """
    for level in queue.above:
        delay_ns = level.settings.quota_preemption_delay_ns
        if level.managed and delay_ns and level.quota_preemption_due_ns is None and is_over_maximum(level):
            level.quota_preemption_due_ns = now_ns + delay_ns


def next_due_ns(queues: Iterable[Queue]) -> int | None:
    """Return when the next maximum is to be enforced, `None` if none is."""
    due = (queue.quota_preemption_due_ns for queue in queues)
    return min((time_ns for time_ns in due if time_ns is not None), default=None)
