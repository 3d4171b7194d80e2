"""When two who have used different amounts are level, if what they use stays as it is."""

from __future__ import annotations

from typing import Final, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from licorne.model.resources.decayed_use import (
    DecayedUse,
    TypeUse,
    decayed_means,
    decayed_share,
    level_in_ns,
)
from licorne.model.resources.resource import Resource

HOUR: Final = 3600 * 10**9
DAY: Final = 24 * HOUR
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
