"""The happens-before order: what precedes what in every run, by start and end of threads and by futures.

The life of an execution is cut into segments, each with the segments of others that precede it. Only an order
that holds in every schedule counts: that one thread happened to get a lock before another proves nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["Segment", "begin", "concurrent", "learn", "together"]


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch in the life of an execution between two events that order it with others."""

    line: int
    """The serial number of the execution."""
    number: int = 0
    seen: Mapping[int, int] = field(default_factory=dict)
    """For each other line the last segment that must have ended before this one began."""
    silent: bool = False
    """Whether nothing was learned on the line yet: then its end need not be noted."""


def begin(line: int, after: Segment | None = None) -> Segment:
    """Return the first segment of a line, which starts after a segment of another one."""
    return Segment(line, silent=True) if after is None else Segment(line, 0, _known(after), silent=True)


def learn(segment: Segment, ended: Segment | None = None) -> Segment:
    """Return the next segment of a line, which begins when another one has ended."""
    seen = dict(segment.seen)
    for line, number in (_known(ended) if ended else {}).items():
        if line != segment.line:
            seen[line] = max(number, seen.get(line, -1))
    return replace(segment, number=segment.number + 1, seen=seen)


def together(ended: Iterable[Segment]) -> Segment:
    """Return a segment that stands for the ends of several: what comes after it comes after all of them."""
    seen: dict[int, int] = {}
    for segment in ended:
        for line, number in _known(segment).items():
            seen[line] = max(number, seen.get(line, -1))
    return Segment(-1, 0, seen, silent=True)


def concurrent(one: Segment, other: Segment) -> bool:
    """Return whether two segments are concurrent: neither must have ended before the other began."""
    if one.line == other.line:
        return False
    return other.seen.get(one.line, -1) < one.number and one.seen.get(other.line, -1) < other.number


def _known(segment: Segment) -> Mapping[int, int]:
    if segment.silent:
        return segment.seen
    return {**segment.seen, segment.line: segment.number}
