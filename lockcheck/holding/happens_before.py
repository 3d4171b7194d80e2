"""The happens-before order: what precedes what in every run, by start and end of threads and by futures.

The life of an execution is cut into segments, each with the segments of others that precede it. Only an order
that holds in every schedule counts: that one thread happened to get a lock before another proves nothing.
What made the order is kept for the last lines that a segment was put behind, for the reasons of findings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import CodeType
from typing import Final, TypeAlias

CAUSES_MAX: Final = 32
"""For how many lines a segment keeps why it comes after them: a thread may come after thousands of tasks."""

Cause: TypeAlias = "tuple[str, CodeType | None, int]"
"""What orders two lines, in words, and the place where the later one waited for it, if it is known."""

_START: Final[Cause] = ("by the start of a thread or task", None, 0)


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch in the life of an execution between two events that order it with others."""

    line: int
    """The serial number of the execution."""
    number: int = 0
    seen: Mapping[int, int] = field(default_factory=dict)
    """For each other line the last segment that must have ended before this one began."""
    causes: Mapping[int, Cause] = field(default_factory=dict)
    """For some of these lines, why."""
    silent: bool = False
    """Whether nothing was learned on the line yet: then its end need not be noted."""


def begin(line: int, after: Segment | None = None) -> Segment:
    """Return the first segment of a line, which starts after a segment of another one."""
    if after is None:
        return Segment(line, silent=True)
    causes = dict(after.causes)
    if not after.silent:
        _keep(causes, after.line, _START)
    return Segment(line, 0, _known(after), causes, silent=True)


def learn(segment: Segment, ended: Segment | None = None, cause: Cause | None = None) -> Segment:
    """Return the next segment of a line, which begins when another one has ended."""
    seen, causes = dict(segment.seen), dict(segment.causes)
    for line, number in (_known(ended) if ended else {}).items():
        if line != segment.line and number > seen.get(line, -1):
            seen[line] = number
            if cause is not None:
                _keep(causes, line, cause)
    return replace(segment, number=segment.number + 1, seen=seen, causes=causes)


def knows(segment: Segment, ended: Segment) -> bool:
    """Return whether a segment begins after another one has ended anyway."""
    return all(
        line == segment.line or segment.seen.get(line, -1) >= number for line, number in _known(ended).items()
    )


def _keep(causes: dict[int, Cause], line: int, cause: Cause) -> None:
    """Keep why a segment comes after a line; the oldest cause goes if there are too many."""
    causes.pop(line, None)
    causes[line] = cause
    if len(causes) > CAUSES_MAX:
        del causes[next(iter(causes))]


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


def cause_of_order(one: Segment, other: Segment) -> Cause | None:
    """Return why two segments that are not concurrent come one after the other, if that was kept."""
    first, later = (one, other) if other.seen.get(one.line, -1) >= one.number else (other, one)
    return later.causes.get(first.line)


def _known(segment: Segment) -> Mapping[int, int]:
    if segment.silent:
        return segment.seen
    return {**segment.seen, segment.line: segment.number}
