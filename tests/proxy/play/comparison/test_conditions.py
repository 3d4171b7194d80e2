"""Conditions: what they say of the effects on jobs, and how they are refused."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.proxy.comparisons import a_job_report, a_row

from licorne.proxy.play.comparison.conditions import ConditionError, evaluated, read_condition
from licorne.proxy.play.comparison.effects import JobEffects, job_effects

_MINUTE = 60 * 10**9
_WORDS = ["p95", "wait", "delay", "later", "of", "all", ">", "5m", "3", "user"]


def _effects() -> JobEffects:
    """Three jobs of two queues below root.prod, and two of bob: one starts in A alone, one in B alone."""
    a = [
        a_row("x", started=0, queue="root.prod.web"),
        a_row("y", started=5 * _MINUTE, queue="root.prod.web"),
        a_row("z", started=9 * _MINUTE, queue="root.prod.shop"),
        a_row("never", started=_MINUTE, queue="root.batch", user="bob"),
        a_row("only", started=None, queue="root.other", user="bob"),
    ]
    b = [
        a_row("x", started=2 * _MINUTE, queue="root.prod.web"),
        a_row("y", started=4 * _MINUTE, queue="root.prod.web"),
        a_row("z", started=9 * _MINUTE, queue="root.prod.shop"),
        a_row("never", started=None, queue="root.batch", user="bob"),
        a_row("only", started=7 * _MINUTE, queue="root.other", user="bob"),
    ]
    return job_effects(a_job_report(*a), a_job_report(*b))


class Row(NamedTuple):
    """A condition, whether it holds, and what its sentence says."""

    condition: str
    holds: bool
    found: str


UNBOUNDED = "it is unbounded: a job of these never starts in B"
CASES: dict[str, Row] = {
    "a rank of waits in B": Row("p95 wait of root.prod.web > 3m59s", True, "it is 4m0s"),
    "a bound that is reached is not exceeded": Row("p95 wait of root.prod.web > 4m", False, "it is 4m0s"),
    "or reached": Row("p95 wait of root.prod.web >= 4m", True, "it is 4m0s"),
    "a queue has all below it": Row("max wait of root.prod > 8m", True, "it is 9m0s"),
    "the word queue may be there": Row("median wait of queue root.prod < 5m", True, "it is 4m0s"),
    "a mean": Row("mean wait of root.prod <= 5m", True, "it is 5m0s"),
    "a delay": Row("max delay of root.prod > 1m", True, "it is 2m0s"),
    "a delay below zero": Row("median delay of root.prod < -1s", False, "it is 0s"),
    "a number of jobs": Row("later of root.prod > 1", False, "it is 1"),
    "a job that never starts in B is later": Row("later of all >= 2", True, "it is 2"),
    "its wait is unbounded": Row("max wait of user bob > 1000h", True, UNBOUNDED),
    "also in a mean": Row("mean wait of all > 1000h", True, UNBOUNDED),
    "and no duration is as long": Row("max wait of user bob <= 2562047h", False, UNBOUNDED),
    "so is its delay": Row("max delay of root.batch > 0", True, UNBOUNDED),
    "a job in B alone has no delay": Row(
        "max delay of root.other > 0", False, "it is nothing: no such job has it"
    ),
    "a group": Row("median wait of group g > 6m", True, "it is 7m0s"),
    "blanks around the comparison are optional": Row("later of all>1", True, "it is 2"),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_condition_is_evaluated(case: Row) -> None:
    """On the jobs that it is about; its sentence begins with its text."""
    result = evaluated(read_condition(case.condition), _effects())

    assert (case.holds, f"{case.condition}: {case.found}") == (result.holds, result.sentence())


REFUSED: dict[str, tuple[str, str]] = {
    "nothing": ("", "column 1: expected mean, median, p95, max or later, and here is the end"),
    "an unknown figure": (
        "p95 wiat of all > 5m",
        "column 5: expected wait or delay, not 'wiat'; did you mean",
    ),
    "a figure without a statistic": (
        "wait of all > 5m",
        "column 1: expected mean, median, p95, max or later",
    ),
    "no of": ("p95 wait all > 5m", "column 10: expected of, not 'all'"),
    "no name of a queue": ("p95 wait of > 5m", "column 13: expected the name of a queue, not '>'"),
    "no name of a user": ("later of user", "column 14: expected the name of a user, and here is the end"),
    "an unknown comparison": ("later of all = 5", "column 14: expected >, >=, < or <=, not '='"),
    "no duration": ("max wait of all > 5", "column 19: expected a duration such as 5m, not '5'"),
    "a duration for a number": ("later of all > 5m", "column 16: expected a whole number, not '5m'"),
    "a number beyond all": (f"later of all > {'9' * 30}", "column 16: expected a whole number"),
    "words behind it": ("max wait of all > 5m or", "column 22: expected nothing more, not 'or'"),
}


@pytest.mark.parametrize(("condition", "error"), REFUSED.values(), ids=REFUSED)
def test_a_malformed_condition_is_refused_with_its_column(condition: str, error: str) -> None:
    """In one line, which has the condition."""
    with pytest.raises(ConditionError) as raised:
        read_condition(condition)

    assert str(raised.value).startswith(f"condition {condition!r}, {error}")


@given(st.text(max_size=30) | st.lists(st.sampled_from(_WORDS)).map(" ".join))
def test_any_text_is_read_or_refused_in_one_line(text: str) -> None:
    """Whatever it is."""
    try:
        found = read_condition(text).text
    except ConditionError as error:
        found = text if "\n" not in str(error) else ""

    assert text == found


@pytest.mark.parametrize("kind", ["queue", "user", "group"])
def test_a_condition_about_no_job_is_refused(kind: str) -> None:
    """A misspelt name would pass for ever."""
    name = {"queue": "root.prod", "user": "bob", "group": "group-of-all"}[kind]
    effects = job_effects(
        a_job_report(a_row("x", started=0, queue=name, user=name)),
        a_job_report(a_row("x", started=0, queue=name, user=name)),
    )
    wrong = name.replace("o", "0", 1)

    with pytest.raises(ConditionError) as raised:
        evaluated(read_condition(f"later of {kind} {wrong} > 0"), effects)

    column = len(f"later of {kind} ") + 1
    assert f"column {column}: no job is of the {kind} {wrong!r}" in str(raised.value)
