"""The effects on jobs: who starts later in B and who earlier, by queue, user and group."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from support.proxy.comparisons import a_job_report, a_row

from licorne.proxy.play.comparison.effects import Effects, JobEffects, job_effects
from licorne.proxy.play.simulation.job_figures import JobRow

NO_EFFECTS = Effects(jobs=0, later=0, only_a=0, earlier=0, only_b=0, same=0, later_ns=0, earlier_ns=0)


def _compared(a: list[JobRow], b: list[JobRow]) -> JobEffects:
    """Compare jobs."""
    return job_effects(a_job_report(*a), a_job_report(*b))


def _a_day() -> JobEffects:
    """Three jobs: one starts 20 later in B, one 5 earlier, one at the same time."""
    return _compared(
        [a_row("x", started=10), a_row("y", started=30, user="v"), a_row("z", started=7)],
        [a_row("x", started=30), a_row("y", started=25, user="v"), a_row("z", started=7)],
    )


def test_a_day_of_three_jobs_is_added_up() -> None:
    """One of each kind; the times of later and earlier jobs do not cancel."""
    expected = replace(NO_EFFECTS, jobs=3, later=1, earlier=1, same=1, later_ns=20, earlier_ns=5)

    assert expected == _a_day().total


def test_users_are_in_the_order_of_their_losses() -> None:
    """The one whose job starts later comes first, whatever its name."""
    expected = {
        "u": replace(NO_EFFECTS, jobs=2, later=1, same=1, later_ns=20),
        "v": replace(NO_EFFECTS, jobs=1, earlier=1, earlier_ns=5),
    }

    assert list(expected.items()) == list(_a_day().users.items())


def test_a_job_that_never_starts_in_b_comes_before_all_that_start_later() -> None:
    """It has no delay; the others follow by their delays."""
    a = [a_row("short", started=0), a_row("never", started=50), a_row("long", started=0)]
    b = [a_row("short", started=1), a_row("never", started=None), a_row("long", started=9)]

    effects = _compared(a, b)

    assert [("never", None), ("long", 9), ("short", 1)] == [
        (row.a.job, row.delay_ns) for row in effects.later
    ]
    assert replace(NO_EFFECTS, jobs=3, later=3, only_a=1, later_ns=10) == effects.total


def test_a_job_that_starts_under_neither_starts_at_the_same_time() -> None:
    """It is no loss of B."""
    effects = _compared([a_row("x", started=None)], [a_row("x", started=None)])

    assert replace(NO_EFFECTS, jobs=1, same=1) == effects.total


def test_a_job_in_different_queues_counts_in_both() -> None:
    """As a job of a user in several groups counts in each; in the total it counts once."""
    effects = _compared([a_row("x", started=0, queue="root.a")], [a_row("x", started=3, queue="root.b")])

    one = replace(NO_EFFECTS, jobs=1, later=1, later_ns=3)
    assert {"root.a": one, "root.b": one} == dict(effects.queues)
    assert one == effects.total


def test_jobs_with_one_name_are_compared_in_their_order() -> None:
    """A transcript may submit a name again once the first has ended; what one run has more is left out."""
    effects = _compared(
        [a_row("x", started=0), a_row("x", started=100)],
        [a_row("x", started=1), a_row("x", started=102), a_row("x", started=200)],
    )

    assert ([1, 2], 1) == ([row.delay_ns for row in effects.rows], effects.unpaired)


_STARTS = st.none() | st.integers(0, 9)
_DAYS = st.lists(
    st.tuples(_STARTS, _STARTS, st.sampled_from(["root.a", "root.b"]), st.sampled_from("uv")), max_size=12
)


def _of(day: list[tuple[int | None, int | None, str, str]]) -> tuple[list[JobRow], list[JobRow]]:
    """Return the jobs of a day under A and under B."""
    a = [a_row(f"j{n}", started=one[0], queue=one[2], user=one[3]) for n, one in enumerate(day)]
    b = [a_row(f"j{n}", started=one[1], queue=one[2], user=one[3]) for n, one in enumerate(day)]
    return a, b


def _exchanged(effects: Effects) -> Effects:
    """Return effects with A and B exchanged."""
    return Effects(
        jobs=effects.jobs,
        later=effects.earlier,
        only_a=effects.only_b,
        earlier=effects.later,
        only_b=effects.only_a,
        same=effects.same,
        later_ns=effects.earlier_ns,
        earlier_ns=effects.later_ns,
    )


@given(_DAYS)
def test_to_exchange_a_and_b_exchanges_later_and_earlier(
    day: list[tuple[int | None, int | None, str, str]],
) -> None:
    """And nothing else: in the total, by queue, and job by job."""
    a, b = _of(day)

    there, back = _compared(a, b), _compared(b, a)

    assert there.total == _exchanged(back.total)
    assert there.queues == {name: _exchanged(effects) for name, effects in back.queues.items()}
    assert [row.a.job for row in there.later] == [row.a.job for row in back.earlier]


@given(_DAYS)
def test_the_total_is_the_sum_of_queues_and_of_users(
    day: list[tuple[int | None, int | None, str, str]],
) -> None:
    """Where no job has two of them."""
    effects = _compared(*_of(day))

    for parts in (effects.queues, effects.users):
        sums = {
            name: sum(getattr(part, name) for part in parts.values()) for name in Effects.__dataclass_fields__
        }
        assert effects.total == Effects(**sums)


@given(_DAYS)
def test_a_configuration_has_no_effect_compared_with_itself(
    day: list[tuple[int | None, int | None, str, str]],
) -> None:
    """Every job starts at the same time."""
    a, _ = _of(day)

    effects = _compared(a, a)

    assert replace(NO_EFFECTS, jobs=len(day), same=len(day)) == effects.total
    assert ((), ()) == (effects.later, effects.earlier)
