"""The effect of a configuration on jobs: the same input under A and under B, job by job.

The *delay* of a job is its start under B less its start under A: above zero it starts later in B, below zero
earlier. A job that starts under one of the two alone has no delay, and is counted apart: it loses, or gains,
more than any other. One that starts under neither is counted as one that starts at the same time.

To exchange A and B exchanges later and earlier, and changes nothing else.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import final

from ..simulation.job_figures import JobReport, JobRow
from ..simulation.report import NO_OWNER


@final
@dataclass(frozen=True, slots=True)
class JobEffect:
    """One job, as it is under A and under B."""

    a: JobRow
    b: JobRow

    @property
    def delay_ns(self) -> int | None:
        """How much later it starts under B, `None` unless it starts under both."""
        if self.a.started_ns is None or self.b.started_ns is None:
            return None
        return self.b.started_ns - self.a.started_ns

    @property
    def is_only_in_a(self) -> bool:
        """Whether it starts under A, and never under B."""
        return self.a.started_ns is not None and self.b.started_ns is None

    @property
    def is_only_in_b(self) -> bool:
        """Whether it starts under B, and never under A."""
        return self.a.started_ns is None and self.b.started_ns is not None

    @property
    def is_later(self) -> bool:
        """Whether it starts later under B, or never."""
        return self.is_only_in_a or (self.delay_ns or 0) > 0

    @property
    def is_earlier(self) -> bool:
        """Whether it starts earlier under B, or there alone."""
        return self.is_only_in_b or (self.delay_ns or 0) < 0

    def queues(self) -> Sequence[str]:
        """Return the queue of its placement; two where the configurations place it differently."""
        return _once(row.queue or NO_OWNER.queue for row in (self.a, self.b))

    def users(self) -> Sequence[str]:
        """Return its user; two where the configurations find different ones."""
        return _once(row.user or NO_OWNER.user for row in (self.a, self.b))

    def groups(self) -> Sequence[str]:
        """Return all groups of its user, under A or under B."""
        return _once(group for row in (self.a, self.b) for group in row.groups or NO_OWNER.groups)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Effects:
    """The effects on some jobs.

    `later` are those that start later in B, of which `only_a` never do; `earlier` those that start earlier,
    of which `only_b` never do in A; `same` are all others. `later_ns` and `earlier_ns` are the delays of
    those that start in both, added up; both are zero or more.
    """

    jobs: int
    later: int
    only_a: int
    earlier: int
    only_b: int
    same: int
    later_ns: int
    earlier_ns: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class JobEffects:
    """The effects on all jobs of an input.

    Queues, users and groups are in the order of their effects, those that lose most first. `later` and
    `earlier` are the jobs that start at another time, the largest effect first. A job counts in each of its
    groups, and in both queues where the configurations place it in different ones. `unpaired` are jobs that
    were asked for in one run alone; they count nowhere.
    """

    total: Effects
    queues: Mapping[str, Effects]
    users: Mapping[str, Effects]
    groups: Mapping[str, Effects]
    rows: tuple[JobEffect, ...]
    later: tuple[JobEffect, ...]
    earlier: tuple[JobEffect, ...]
    unpaired: int


def job_effects(a: JobReport, b: JobReport) -> JobEffects:
    """Compare the jobs of two simulations of one input.

    Args:
        a: The jobs under the configuration A.
        b: The jobs under the configuration B.
    """
    rows_a, rows_b = _numbered(a.rows), _numbered(b.rows)
    rows = tuple(JobEffect(row, rows_b[name]) for name, row in rows_a.items() if name in rows_b)

    def by(names: Callable[[JobEffect], Iterable[str]]) -> dict[str, Effects]:
        parts: defaultdict[str, list[JobEffect]] = defaultdict(list)
        for row in rows:
            for name in names(row):
                parts[name].append(row)
        effects = {name: _effects(part) for name, part in parts.items()}
        return {
            name: effects[name] for name in sorted(effects, key=lambda name: (*_size(effects[name]), name))
        }

    return JobEffects(
        total=_effects(rows),
        queues=by(JobEffect.queues),
        users=by(JobEffect.users),
        groups=by(JobEffect.groups),
        rows=rows,
        # Sorting keeps the order of submission among equal effects.
        later=tuple(sorted((row for row in rows if row.is_later), key=_largest_delay)),
        earlier=tuple(sorted((row for row in rows if row.is_earlier), key=_largest_delay)),
        unpaired=len(rows_a.keys() ^ rows_b.keys()),
    )


def _numbered(rows: Iterable[JobRow]) -> dict[tuple[str, int], JobRow]:
    """Return jobs by name, and by how often the name was submitted before: a transcript may use it again."""
    seen: Counter[str] = Counter()
    numbered = {}
    for row in rows:
        numbered[row.job, seen[row.job]] = row
        seen[row.job] += 1
    return numbered


def _effects(rows: Sequence[JobEffect]) -> Effects:
    """Add up the effects on some jobs."""
    delays_ns = [row.delay_ns or 0 for row in rows]
    later, earlier = sum(row.is_later for row in rows), sum(row.is_earlier for row in rows)
    return Effects(
        jobs=len(rows),
        later=later,
        only_a=sum(row.is_only_in_a for row in rows),
        earlier=earlier,
        only_b=sum(row.is_only_in_b for row in rows),
        same=len(rows) - later - earlier,
        later_ns=sum(max(delay_ns, 0) for delay_ns in delays_ns),
        earlier_ns=sum(max(-delay_ns, 0) for delay_ns in delays_ns),
    )


def _size(effects: Effects) -> tuple[int, ...]:
    """Return the key by which the largest losses come first, and then the largest gains."""
    return (-effects.only_a, -effects.later_ns, -effects.only_b, -effects.earlier_ns)


def _largest_delay(row: JobEffect) -> tuple[bool, int]:
    """Return the key by which a job without a delay comes first, and then the largest, whatever its sign."""
    return (row.delay_ns is not None, -abs(row.delay_ns or 0))


def _once(names: Iterable[str]) -> tuple[str, ...]:
    """Return names in their order, each once."""
    return tuple(dict.fromkeys(names))
