"""The usage of locks as a table, grouped by class, by place in the code or by key."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final, Literal, TypeAlias

from ..findings.errors import LockUsageError
from ..findings.statistics import Spread, Usage, usages_together

Group: TypeAlias = Literal["class", "site", "key"]
GROUPS: Final[tuple[Group, ...]] = ("class", "site", "key")

_SPREAD_HEADS: Final = ("total", "p50", "p99", "max")


def usage_table(usages: Iterable[Usage], by: Group = "site") -> str:
    """Return usages as a table, in microseconds, the longest waits first.

    Args:
        usages: the usages.
        by: what a line stands for: a class, a place in the code, or a key, each by mode.

    Raises:
        LockUsageError: nothing was noted by key.
    """
    usages = list(usages)
    if by == "key" and usages and all(usage.key is None for usage in usages):
        raise LockUsageError("no times were noted by key: `run --by-key` does, and `session(by_key=True)`")
    groups = usages_together(_of(usage, by) for usage in usages)
    heads = (*(f"wait {head}" for head in _SPREAD_HEADS), *(f"hold {head}" for head in _SPREAD_HEADS))
    where = {"class": "", "site": "at", "key": "key"}[by]
    rows: list[tuple[str, ...]] = [("lock", "taken", "contended", *heads, where)]
    for usage in sorted(groups, key=lambda one: (-one.wait.total, -one.hold.total, one.lock, one.site)):
        times = (f"{time / 1000:.1f}" for spread in (usage.wait, usage.hold) for time in _times(spread))
        counts = (str(usage.hold.count), str(usage.wait.count))
        last = {"class": "", "site": usage.site, "key": usage.key or "(none)"}[by]
        rows.append((f"{usage.lock}[{usage.mode}]", *counts, *times, last))
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def _of(usage: Usage, by: Group) -> Usage:
    """Return a usage without what its group does not distinguish."""
    return replace(usage, site=usage.site if by == "site" else "", key=usage.key if by == "key" else None)


def _times(spread: Spread) -> tuple[int, int, int, int]:
    return spread.total, spread.percentile(50), spread.percentile(99), spread.max
