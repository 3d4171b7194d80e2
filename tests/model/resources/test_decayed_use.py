"""Decayed use: the mean that a closed form gives, and when two with different amounts are level."""

from __future__ import annotations

import random
from typing import Final, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from licorne.model.resources.decayed_use import (
    DecayedUse,
    TypeUse,
    above,
    changed,
    decayed_means,
    decayed_share,
    grown_share,
    level_in_ns,
    no_use,
    raised_to,
    with_half_life,
)
from licorne.model.resources.resource import Resource

HOUR: Final = 3600 * 10**9
DAY: Final = 24 * HOUR
HISTORIES: Final = 2_000
EPOCH: Final = 1_760_000_000 * 10**9
"""A moment of 2025."""


class Held(NamedTuple):
    """An amount that somebody used from a moment to another one."""

    begin_ns: int
    end_ns: int
    amount: int


def use_of(held: list[Held], now_ns: int, half_life_ns: int = DAY, seed: int = 0) -> DecayedUse:
    """Return the use after what has happened until now, told in any order."""
    events = [(begin, amount) for begin, _, amount in held]
    events += [(end, -amount) for _, end, amount in held]
    events = [event for event in events if event[0] <= now_ns]
    random.Random(seed).shuffle(events)  # noqa: S311 - dice, no secret
    use = no_use(half_life_ns, 0)
    for moment, amount in events:
        use = changed(use, {"vcore": amount}, moment)
    return use


def mean(held: list[Held], now_ns: int, half_life_ns: int = DAY) -> float:
    return decayed_means(use_of(held, now_ns, half_life_ns), now_ns).get("vcore", 0.0)


def closed_form(held: list[Held], now_ns: int, half_life_ns: int) -> float:
    """Return the mean by its definition: the integral of the amount, each moment by its weight."""

    def weight(moment: int) -> float:
        return float(2 ** (-(now_ns - moment) / half_life_ns))

    begun = [one for one in held if one.begin_ns <= now_ns]
    return sum(one.amount * (weight(min(one.end_ns, now_ns)) - weight(one.begin_ns)) for one in begun)


def a_history(rng: random.Random, half_life_ns: int) -> list[Held]:
    begins = [rng.randrange(20 * half_life_ns) for _ in range(rng.randint(1, 30))]
    return [
        Held(begin, begin + rng.randrange(1, 5 * half_life_ns), rng.randrange(1, 10**6)) for begin in begins
    ]


def test_the_mean_is_that_of_the_closed_form() -> None:
    """Over random histories, whose events are told in a random order; so exact that floats set the bound."""
    rng = random.Random(37)  # noqa: S311 - likewise
    worst = 0.0
    for _ in range(HISTORIES):
        half_life_ns = rng.choice([60 * 10**9, HOUR, 7 * DAY])
        held = a_history(rng, half_life_ns)
        now_ns = rng.randrange(30 * half_life_ns)
        expected = closed_form(held, now_ns, half_life_ns)
        worst = max(worst, abs(mean(held, now_ns, half_life_ns) - expected) / max(1.0, expected))

    assert worst < 1e-9


@pytest.mark.parametrize("seed", range(20))
def test_the_order_of_events_does_not_matter(seed: int) -> None:
    """To the last bit."""
    held = a_history(random.Random(seed), HOUR)  # noqa: S311 - likewise

    assert use_of(held, 30 * HOUR, HOUR, seed=1) == use_of(held, 30 * HOUR, HOUR, seed=2)


@pytest.mark.parametrize("half_life_ns", [60 * 10**9, HOUR, 7 * DAY])
def test_the_numbers_stay_small_however_late_it_is(half_life_ns: int) -> None:
    """Of a year of use that began in 2025, across thousands of spans."""
    use = no_use(half_life_ns, EPOCH)
    for step in range(1_000):
        now_ns = EPOCH + step * 365 * DAY // 1_000
        use = changed(use, {"vcore": 5 if step % 2 == 0 else -5}, now_ns)

    assert use.types["vcore"].kept.bit_length() < 64 + 64 + 40


def test_nobody_changes_a_mean_by_looking() -> None:
    """Each look is of a value, which stays."""
    use = changed(no_use(HOUR, EPOCH), {"vcore": 8}, EPOCH)
    looked = [decayed_means(use, EPOCH + hours * HOUR)["vcore"] for hours in (0, 1, 200, 1)]

    assert [0.0, 4.0, 8.0, 4.0] == pytest.approx(looked)


def test_a_mean_goes_on_from_one_span_into_the_next() -> None:
    """The spans of an hour begin each 64 hours."""
    before = changed(no_use(HOUR, 63 * HOUR), {"vcore": 8}, 63 * HOUR)
    after = changed(before, {"vcore": -8}, 65 * HOUR)

    assert (0, 1) == (before.span, after.span)
    assert {"vcore": 6.0} == pytest.approx(decayed_means(after, 65 * HOUR))
    assert {"vcore": 3.0} == pytest.approx(decayed_means(after, 66 * HOUR))


class Example(NamedTuple):
    """What was used, in hours, and the mean at some hours with a half-life of a day."""

    held: list[tuple[float, float, int]]
    means: dict[float, float]


LONG: Final = 10_000.0
EXAMPLES: Final[dict[str, Example]] = {
    "half of it is left a day after the end": Example([(0, 48, 100)], {48: 75.0, 72: 37.5, 96: 18.75}),
    "what runs counts half after a day": Example([(0, LONG, 10)], {24: 5.0}),
    "a small amount of a short time is not lost": Example([(0, 5 / 60, 1)], {5 / 60: 0.002404}),
    "less is used from some time on": Example([(0, 24, 60), (24, LONG, 40)], {24: 30.0, 48: 60 / 4 + 40 / 2}),
    "an allocation that runs through a restart": Example([(0, LONG, 10)], {48: 7.5}),
    "an allocation whose past is not known": Example([(30, LONG, 10)], {48: 4.054}),
}


@pytest.mark.parametrize("case", EXAMPLES.values(), ids=EXAMPLES)
def test_means_of_examples(case: Example) -> None:
    """Figures that one can work out by hand."""
    held = [Held(round(begin * HOUR), round(end * HOUR), amount) for begin, end, amount in case.held]
    found = {hours: mean(held, round(hours * HOUR)) for hours in case.means}

    assert case.means == pytest.approx(found, rel=2e-4)


def test_a_sample_of_five_minutes_counts_with_a_half_life_of_a_week() -> None:
    """Far below a thousandth of a CPU, and not rounded away."""
    assert pytest.approx(0.000344, abs=5e-7) == mean([Held(0, HOUR // 12, 1)], HOUR // 12, 7 * DAY)


def test_one_allocation_is_as_many_short_ones() -> None:
    """End to end, 48 of one hour are one of 48 hours, bit by bit."""
    one = use_of([Held(0, 48 * HOUR, 100)], 48 * HOUR)
    many = use_of([Held(hour * HOUR, (hour + 1) * HOUR, 100) for hour in range(48)], 48 * HOUR)

    assert one == many


LEVEL: Final[dict[str, tuple[int, int, float]]] = {
    "equal weights": (1, 1, 55.7263),
    "twice the weight for who used much": (1, 2, 38.0391),
    "twice the weight for who uses it now": (2, 1, 76.0782),
}


@pytest.mark.parametrize("case", LEVEL.values(), ids=LEVEL)
def test_one_who_uses_becomes_level_with_one_who_has_used(case: tuple[int, int, float]) -> None:
    """X uses 10 from 0 on, Y used 40 for a day: X has the smaller share until a moment, Y after it."""
    weight_x, weight_y, level = case

    def first_at(hours: float) -> str:
        now_ns = round(hours * HOUR)
        x = decayed_means(use_of([Held(0, 999 * HOUR, 10)], now_ns), now_ns)
        y = decayed_means(use_of([Held(0, DAY, 40)], now_ns), now_ns)
        limits = Resource({"vcore": 100})
        return "X" if decayed_share(x, limits, weight_x) < decayed_share(y, limits, weight_y) else "Y"

    assert ["X", "Y"] == [first_at(level - 0.001), first_at(level + 0.001)]


SHARES: Final[dict[str, tuple[dict[str, float], dict[str, int] | None, int, float]]] = {
    "the largest of several types": ({"vcore": 20.0, "memory": 10.0}, {"vcore": 100, "memory": 20}, 1, 0.5),
    "less with a weight": ({"vcore": 50.0}, {"vcore": 100}, 5, 0.1),
    "no limit of the type": ({"gpu": 3.0}, {"vcore": 100}, 1, 0.0),
    "a limit of nothing": ({"gpu": 0.25}, {"gpu": 0}, 1, 1.0),
    "no limits": ({"vcore": 1.0}, None, 1, 0.0),
    "no use": ({"vcore": 0.0}, {"vcore": 0}, 1, 0.0),
}


@pytest.mark.parametrize("case", SHARES.values(), ids=SHARES)
def test_shares_of_means(case: tuple[dict[str, float], dict[str, int] | None, int, float]) -> None:
    """By type, and by weight."""
    means, limits, weight, expected = case

    assert expected == decayed_share(means, None if limits is None else Resource(limits), weight)


def test_amounts_are_raised_and_lowered_to_what_is_in_use() -> None:
    """A type that is not named is in use no longer; nothing changes where all are as they were."""
    use = raised_to(no_use(DAY, 0), {"vcore": 10, "gpu": 2}, 0)
    later = raised_to(use, {"vcore": 4}, DAY)

    assert use is raised_to(use, {"vcore": 10, "gpu": 2}, 7)
    assert {"gpu": 1.0, "vcore": 5.0} == pytest.approx(decayed_means(later, DAY))
    assert {"gpu": 0.5, "vcore": 4.5} == pytest.approx(decayed_means(later, 2 * DAY))


def test_what_began_and_ended_at_one_moment_leaves_nothing() -> None:
    """Not even its type."""
    use = raised_to(no_use(DAY, EPOCH), {"gpu": 2}, EPOCH)

    assert no_use(DAY, EPOCH) == raised_to(use, {}, EPOCH)


def test_another_half_life_counts_from_now_on() -> None:
    """The mean is the same at that moment, and is halved in the new time."""
    use = use_of([Held(0, 2 * DAY, 100)], 2 * DAY)
    quicker = with_half_life(use, HOUR, 2 * DAY)

    assert use is with_half_life(use, DAY, 2 * DAY)
    assert {"vcore": 75.0} == pytest.approx(decayed_means(quicker, 2 * DAY))
    assert {"vcore": 37.5} == pytest.approx(decayed_means(quicker, 2 * DAY + HOUR))


def test_a_clock_that_is_set_back_a_year_is_no_harm() -> None:
    """What is seen is the beginning of the span of the last change, and the new changes count little."""
    use = raised_to(no_use(HOUR, EPOCH), {"vcore": 8}, EPOCH)
    back = EPOCH - 365 * DAY

    assert 0.0 <= decayed_means(raised_to(use, {"vcore": 4}, back), back)["vcore"] <= 8.0
    assert {"vcore": 4.0} == pytest.approx(
        decayed_means(raised_to(use, {"vcore": 4}, back), EPOCH + 99 * HOUR)
    )


ABOVE: Final[dict[str, tuple[dict[str, int], dict[str, int] | None, dict[str, int]]]] = {
    "all without a guarantee": ({"vcore": 60}, None, {"vcore": 60}),
    "what is above it": ({"vcore": 60}, {"vcore": 40}, {"vcore": 20}),
    "nothing below it": ({"vcore": 30}, {"vcore": 40}, {}),
    "type by type": ({"vcore": 30, "gpu": 2}, {"vcore": 40}, {"gpu": 2}),
}


@pytest.mark.parametrize("case", ABOVE.values(), ids=ABOVE)
def test_what_is_above_a_guarantee(
    case: tuple[dict[str, int], dict[str, int] | None, dict[str, int]],
) -> None:
    """A guarantee is used without being remembered."""
    allocated, guaranteed, expected = case

    assert expected == above(Resource(allocated), None if guaranteed is None else Resource(guaranteed))


def test_only_what_was_above_the_guarantee_is_remembered() -> None:
    """Of 60 with 40 guaranteed 20 count: 10 after a day, 5 a day after it is 40."""
    guaranteed = Resource({"vcore": 40})
    use = raised_to(no_use(DAY, 0), above(Resource({"vcore": 60}), guaranteed), 0)
    later = raised_to(use, above(Resource({"vcore": 40}), guaranteed), DAY)

    assert {"vcore": 10.0} == decayed_means(use, DAY)
    assert {"vcore": 5.0} == decayed_means(later, 2 * DAY)


# ------------------------------------------------------------------------------------------ level times


LIMITS: Final = Resource({"vcore": 100, "memory": 100})
IDLE: Final = (0, 0)
SMALL: Final = 1e-9
"""Shares that differ by less are equal here."""


class Holder(NamedTuple):
    """The mean and what is in use now, of each of two types, and the weight."""

    vcore: tuple[int, int]
    memory: tuple[int, int] = IDLE
    weight: int = 1

    @property
    def use(self) -> DecayedUse:
        """The use at the beginning of 1970, where nothing has decayed."""
        types = {
            name: TypeUse(amount, (mean - amount) << 64)
            for name, (mean, amount) in (("vcore", self.vcore), ("memory", self.memory))
        }
        return DecayedUse(DAY, 0, types)

    def share(self, at_ns: int) -> float:
        """Return the share at a later moment, as an order would see it."""
        return decayed_share(decayed_means(self.use, at_ns), LIMITS, self.weight)


def level_hours(first: Holder, second: Holder) -> float | None:
    after_ns = level_in_ns((first.use, second.use), (first.weight, second.weight), LIMITS, 0)
    return None if after_ns is None else round(after_ns / HOUR, 4)


class Row(NamedTuple):
    """Two holders, and after how many hours they are level."""

    first: Holder
    second: Holder
    hours: float | None


# X uses 10 from the beginning on, Y used 40 for a day: their means are 5 and 20 after it.
X: Final = Holder((5, 10))
Y: Final = Holder((20, 0))
CASES: Final = {
    "who uses now comes to who has used": Row(X, Y, 31.7263),
    "the other one is asked of": Row(Y, X, 31.7263),
    "twice the weight for who used much": Row(X, Y._replace(weight=2), 14.0391),
    "twice the weight for who uses it now": Row(X._replace(weight=2), Y, 52.0782),
    "neither uses anything now": Row(Holder((40, 0)), Holder((20, 0)), None),
    "who has used more uses more": Row(Holder((40, 30)), Holder((20, 10)), None),
    "they come to the same share": Row(Holder((40, 10)), Holder((20, 10)), None),
    "they are equal": Row(Y, Y, None),
    "they are level now and part": Row(Holder((20, 0)), Holder((20, 20)), None),
    "later than twenty half-lives": Row(Holder((0, 0)), Holder((100_000_000, 0)), None),
    "another type is the largest share by then": Row(
        Holder((40, 40), memory=(40, 80)), Holder((50, 50)), 9.9609
    ),
    "they part after a time of equal shares": Row(Holder((40, 40), memory=(20, 80)), Holder((40, 40)), None),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_two_are_level_after_a_time(case: Row) -> None:
    """Or never: it is counted from now, in hours with a half-life of a day."""
    assert case.hours == level_hours(case.first, case.second)


amounts = st.tuples(st.integers(0, 50), st.integers(0, 50))
holders = st.builds(Holder, amounts, amounts, st.integers(1, 3))


@given(holders, holders)
def test_no_order_changes_before_the_time_and_the_shares_are_equal_then(
    first: Holder, second: Holder
) -> None:
    """As the shares at fifty moments say that are found without it."""

    def difference(at_ns: int) -> float:
        return first.share(at_ns) - second.share(at_ns)

    after_ns = level_in_ns((first.use, second.use), (first.weight, second.weight), LIMITS, 0)
    until_ns = 19 * DAY if after_ns is None else after_ns
    moments = [(until_ns - HOUR // 1000) * step // 50 for step in range(51)]
    clear = {found > 0 for at_ns in moments if abs(found := difference(max(at_ns, 0))) > SMALL}

    assert len(clear) <= 1
    assert after_ns is None or abs(difference(after_ns)) <= SMALL


@given(
    first=st.integers(0, 1000),
    second=st.integers(0, 1000),
    begun_ns=st.integers(1, HOUR),
    after_ns=st.integers(1, 30 * HOUR),
)
def test_a_grown_share_orders_as_the_share_does(
    first: int, second: int, begun_ns: int, after_ns: int
) -> None:
    """One uses nothing any more, the other one still does."""
    limits, now_ns = Resource({"vcore": 1000}), EPOCH + HOUR + after_ns
    past = changed(changed(no_use(HOUR, EPOCH), {"vcore": first}, EPOCH), {"vcore": -first}, EPOCH + begun_ns)
    using = changed(no_use(HOUR, EPOCH), {"vcore": second}, EPOCH + begun_ns)

    shares = [decayed_share(decayed_means(use, now_ns), limits, 1) for use in (past, using)]
    grown = [grown_share(use, limits, now_ns)[0] for use in (past, using)]

    assert (shares[0] < shares[1], shares[0] > shares[1]) == (grown[0] < grown[1], grown[0] > grown[1])


def test_a_grown_share_stands_still_without_use() -> None:
    """So one place in an order stays right; that of one who uses something moves with time."""
    limits, later_ns = Resource({"vcore": 1000}), EPOCH + 3 * HOUR
    past = changed(changed(no_use(HOUR, EPOCH), {"vcore": 7}, EPOCH), {"vcore": -7}, EPOCH + HOUR)
    using = changed(no_use(HOUR, EPOCH), {"vcore": 7}, EPOCH)

    assert grown_share(past, limits, EPOCH + HOUR) == grown_share(past, limits, later_ns)
    assert (True, True) == (
        grown_share(using, limits, later_ns)[1],
        grown_share(past, Resource({"vcore": 0}), later_ns)[1],
    )
