"""When allocations have run as long as they may."""

from __future__ import annotations

from licorne.model.applications.life import ExecutionLimits


def limits(**allowed_ns: int) -> ExecutionLimits:
    """Return limits of asks that wait."""
    made = ExecutionLimits()
    for key, allowed in allowed_ns.items():
        made.allow(key, allowed)
    return made


def test_time_runs_from_the_placement() -> None:
    """An ask that waits is never over."""
    execution = limits(a=10)
    waiting = execution.first_due_ns()

    execution.begin("a", 100)

    assert (None, 110) == (waiting, execution.first_due_ns())


def test_what_has_no_limit_runs_for_ever() -> None:
    """Beside others that are limited."""
    execution = limits(a=10)

    execution.begin("b", 100)

    assert (None, frozenset()) == (execution.first_due_ns(), execution.running())


def test_what_is_over_comes_by_time_and_then_by_key() -> None:
    """What is due later stays."""
    execution = limits(b=10, a=10, c=5, d=20)
    for key in ("b", "a", "c", "d"):
        execution.begin(key, 100)

    assert ("c", "a", "b") == execution.take_over(110)
    assert 120 == execution.first_due_ns()


def test_what_is_over_is_over_once() -> None:
    """Its ask stays limited, for the next allocation of it."""
    execution = limits(a=10)
    execution.begin("a", 100)

    assert [("a",), ()] == [execution.take_over(110), execution.take_over(120)]
    assert execution.is_limited("a")


def test_what_ends_early_is_not_over() -> None:
    """Whether it ended alone or with all others."""
    execution = limits(a=10, b=10)
    execution.begin("a", 100)
    execution.begin("b", 100)

    execution.end("a")
    first = execution.running()
    execution.end_all()

    assert (frozenset({"b"}), (), None) == (first, execution.take_over(200), execution.first_due_ns())


def test_a_limit_that_is_forgotten_holds_no_longer() -> None:
    """Neither for what runs nor for what is placed later."""
    execution = limits(a=10)
    execution.begin("a", 100)

    execution.forget("a")
    execution.begin("a", 200)

    assert (False, None) == (execution.is_limited("a"), execution.first_due_ns())


def test_another_limit_takes_the_place_of_the_first() -> None:
    """The time that has passed counts."""
    execution = limits(a=10)
    execution.begin("a", 100)

    execution.allow("a", 50)
    execution.begin("a", 100)

    assert ((), ("a",)) == (execution.take_over(149), execution.take_over(150))


def test_limits_that_change_for_ever_take_no_more_room() -> None:
    """What no longer agrees is thrown away in time."""
    execution = ExecutionLimits()
    for allowed_ns in range(1_000, 0, -1):
        execution.allow("a", allowed_ns)
        execution.begin("a", 0)

    assert 1 == execution.first_due_ns()
    assert len(execution._order) <= 2 * 1 + 64


def test_a_walltime_limits_what_has_no_limit_of_its_own() -> None:
    """It can be changed and taken back; the limit of an RM stays, and replaces it when it comes later."""
    execution = limits(own=10)
    for key, walltime_ns in (
        ("own", 5),
        ("a", 20),
        ("b", 20),
        ("c", 20),
        ("a", 30),
        ("b", None),
        ("own", None),
    ):
        execution.allow_walltime(key, walltime_ns)
    execution.allow("c", 7)
    for key in ("own", "a", "b", "c"):
        execution.begin(key, 100)

    assert ("c", "own", "a") == execution.take_over(1000)
    assert ["a"] == [key for key in ("own", "a", "b", "c") if execution.is_by_walltime(key)]


def test_a_walltime_that_is_forgotten_is_no_limit() -> None:
    """Its ask is gone, and the key may be used again."""
    execution = limits()
    execution.allow_walltime("a", 10)
    execution.forget("a")
    execution.begin("a", 100)

    assert (None, False) == (execution.first_due_ns(), execution.is_by_walltime("a"))
