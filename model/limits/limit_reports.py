"""The events of users and groups whose limits a configuration sets or removes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..values.events import ChangeType

if TYPE_CHECKING:
    from collections.abc import Collection

    from ..values.facts import EventReports
    from .limits import Limits

__all__ = ["report_limits"]


def report_limits(events: EventReports, before: Limits, after: Limits, users: Collection[str]) -> None:
    """Report each limit that a configuration sets, also one that stays as it was, and each that it removes.

    The wildcard of users counts for those who are known and have no limit of their own.
    """
    if not events.are_kept:
        return
    for path in before.paths():
        kept = after.holders_at(path, users)
        for detail, name in before.holders_at(path, users):
            if (detail, name) not in kept:
                events.note(ChangeType.REMOVE, detail, name, reference_id=path)
    for path in after.paths():
        for detail, name in after.holders_at(path, users):
            events.note(ChangeType.SET, detail, name, reference_id=path)
