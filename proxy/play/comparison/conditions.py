"""Conditions on a comparison, such as `p95 wait of root.prod > 5m`: a command fails if one holds.

    condition  = figure "of" jobs comparison value
    figure     = ("mean" | "median" | "p95" | "max") ("wait" | "delay") | "later"
    jobs       = "all" | ["queue"] NAME | "user" NAME | "group" NAME
    comparison = ">" | ">=" | "<" | "<="
    value      = a duration, or a whole number for `later`

`wait` is the wait of jobs for their starts in B, `delay` their start in B less their start in A, and `later`
the number of jobs that start later in B or never. A queue has the jobs of all queues below it. A job that
never starts in B has an unlimited wait, and an unlimited delay if it starts in A.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from operator import ge, gt, le, lt
from typing import Final, final

from ....model.configuration.durations import DurationError, duration_text, parse_duration_ns
from ....model.configuration.names import did_you_mean
from ....model.errors import LicorneError
from ..simulation.report import spread
from .effects import JobEffect, JobEffects

_STATISTICS: Final = ("mean", "median", "p95", "max")
_FIGURES: Final = ("wait", "delay")
_KINDS: Final = ("queue", "user", "group")
_COMPARISONS: Final = {">": gt, ">=": ge, "<": lt, "<=": le}
_NEVER_NS: Final = 2**63
"""A time longer than every duration, which are signed 64-bit numbers of nanoseconds."""

_WORD: Final = re.compile(r"[<>]=?|[^\s<>]+")
_COUNT: Final = re.compile(r"[0-9]{1,18}")


@final
class ConditionError(LicorneError):
    """A condition that cannot be read, or that is about jobs that do not exist.

    Args:
        text: The condition.
        column: The first column of the wrong part, from 1.
        message: The error in it.
    """

    def __init__(self, text: str, column: int, message: str) -> None:
        super().__init__(f"condition {text!r}, column {column}: {message}")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One condition, as read from its text.

    `statistic` is empty for a count, `name` for all jobs. `column` is the first column of the name. `value`
    is in nanoseconds, or a number of jobs.
    """

    text: str
    statistic: str
    figure: str
    kind: str
    name: str
    column: int
    comparison: str
    value: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionResult:
    """The result of a condition on a comparison.

    `value` is the value of the figure. It is `None` if no job has the figure, or if it `is_unbounded`: the
    figure of a job that never starts.
    """

    condition: Condition
    value: int | None
    is_unbounded: bool
    holds: bool

    def sentence(self) -> str:
        """Return the condition, with the value of its figure."""
        if self.is_unbounded:
            found = "unbounded: a job of these never starts in B"
        elif self.value is None:
            found = "nothing: no such job has it"
        else:
            found = duration_text(self.value) if self.condition.statistic else f"{self.value:,}"
        return f"{self.condition.text}: it is {found}"


def read_condition(text: str) -> Condition:
    """Read a condition.

    Raises:
        ConditionError: The text is not a condition; the error names the column and the wrong part.
    """
    words = _Words(text)
    statistic = words.next_of((*_STATISTICS, "later"))
    figure = statistic if statistic == "later" else words.next_of(_FIGURES)
    words.next_of(("of",))
    kind, column, name = _jobs(words)
    comparison = words.next_of(tuple(_COMPARISONS))
    value = _count(words) if figure == "later" else _duration_ns(words)
    words.end()
    return Condition(
        text=text,
        statistic="" if figure == "later" else statistic,
        figure=figure,
        kind=kind,
        name=name,
        column=column,
        comparison=comparison,
        value=value,
    )


def evaluated(condition: Condition, effects: JobEffects) -> ConditionResult:
    """Return the result of a condition on the effects on jobs.

    Raises:
        ConditionError: The queue, user or group does not have any job.
    """
    rows = [row for row in effects.rows if _is_of(row, condition)]
    if not rows and condition.kind != "all":
        there = {name for row in effects.rows for name in _names(row, condition.kind)}
        message = f"no job is of the {condition.kind} {condition.name!r}"
        raise ConditionError(
            condition.text, condition.column, message + did_you_mean(condition.name, sorted(there))
        )
    value = sum(row.is_later for row in rows) if condition.figure == "later" else _statistic(condition, rows)
    is_unbounded = value is not None and value >= _NEVER_NS
    return ConditionResult(
        condition=condition,
        value=None if is_unbounded else value,
        is_unbounded=is_unbounded,
        holds=value is not None and _COMPARISONS[condition.comparison](value, condition.value),
    )


def _statistic(condition: Condition, rows: Sequence[JobEffect]) -> int | None:
    """Return the mean or a rank of waits or delays, `None` if no job has one."""
    found = [_wait_ns(row) if condition.figure == "wait" else _delay_ns(row) for row in rows]
    values_ns = [value_ns for value_ns in found if value_ns is not None]
    if condition.statistic == "mean" and _NEVER_NS in values_ns:
        return _NEVER_NS
    figures = spread(values_ns)
    return None if figures is None else int(getattr(figures, condition.statistic))


def _wait_ns(row: JobEffect) -> int | None:
    """Return the wait of a job in B, unlimited if it never starts; `None` if it ran before."""
    return _NEVER_NS if row.b.started_ns is None else row.b.wait_ns


def _delay_ns(row: JobEffect) -> int | None:
    """Return the delay of a job in B, unlimited if it starts only in A; `None` if it starts only in B."""
    return _NEVER_NS if row.is_only_in_a else row.delay_ns


def _is_of(row: JobEffect, condition: Condition) -> bool:
    """Return whether a condition is about a job."""
    return condition.kind == "all" or condition.name in _names(row, condition.kind)


def _names(row: JobEffect, kind: str) -> Collection[str]:
    """Return the users or groups of a job, or its queues and all above them."""
    if kind != "queue":
        return row.users() if kind == "user" else row.groups()
    parts = [queue.split(".") for queue in row.queues()]
    return {".".join(path[:length]) for path in parts for length in range(1, len(path) + 1)}


@final
class _Words:
    """The words of a condition, read one by one.

    Args:
        text: The condition.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._found = [(found[0], found.start() + 1) for found in _WORD.finditer(text)]
        self._taken = 0

    @property
    def column(self) -> int:
        """The first column of the next word, from 1; after the last word the end of the text."""
        return self._found[self._taken][1] if self._taken < len(self._found) else len(self._text) + 1

    def peek(self) -> str:
        """Return the next word, empty after the last one."""
        return self._found[self._taken][0] if self._taken < len(self._found) else ""

    def next(self) -> str:
        """Read and return the next word."""
        word = self.peek()
        self._taken += 1
        return word

    def next_of(self, known: Sequence[str]) -> str:
        """Read and return the next word, which must be one of these."""
        word = self.peek()
        if word not in known:
            raise self.error(
                " or ".join((", ".join(known[:-1]), known[-1])) if known[1:] else known[0], known
            )
        return self.next()

    def end(self) -> None:
        """Check that no further word follows."""
        if self.peek():
            raise self.error("nothing more")

    def error(self, expected: str, known: Sequence[str] = ()) -> ConditionError:
        """Return the error of the next word."""
        word = self.peek()
        found = f"not {word!r}{did_you_mean(word, known)}" if word else "and here is the end"
        return ConditionError(self._text, self.column, f"expected {expected}, {found}")


def _jobs(words: _Words) -> tuple[str, int, str]:
    """Read the jobs of a condition: their kind, and the column and the text of the name."""
    kind = words.next() if words.peek() in {"all", *_KINDS} else "queue"
    column = words.column
    if kind == "all":
        return kind, column, ""
    if not words.peek() or words.peek() in _COMPARISONS:
        raise words.error(f"the name of a {kind}")
    return kind, column, words.next()


def _duration_ns(words: _Words) -> int:
    """Read a duration."""
    try:
        value_ns = parse_duration_ns(words.peek())
    except DurationError as error:
        raise words.error("a duration such as 5m") from error
    words.next()
    return value_ns


def _count(words: _Words) -> int:
    """Read a number of jobs."""
    if not _COUNT.fullmatch(words.peek()):
        raise words.error("a whole number")
    return int(words.next())
