"""A map in the order of its keys."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from licorne.model.values.ordered_map import OrderedMap


def a_map(*numbers: int) -> OrderedMap[tuple[int], str]:
    entries = OrderedMap[tuple[int], str]()
    for number in numbers:
        entries[number,] = str(number)
    return entries


def test_values_are_in_the_order_of_their_keys() -> None:
    """However they came."""
    entries = a_map(5, 1, 9, 3)

    assert ["1", "3", "5", "9"] == list(entries.values())
    assert ([(1,), (3,), (5,), (9,)], (1,), (9,)) == (entries.keys(), entries.first_key(), entries.last_key())


def test_a_key_is_there_once() -> None:
    """A second value takes the place of the first."""
    entries = a_map(1, 2)

    entries[1,] = "one"

    assert (["one", "2"], 2, "one") == (list(entries.values()), len(entries), entries[1,])


def test_a_removed_key_is_gone() -> None:
    """At the front, at the end and in between; what is not there cannot be removed."""
    entries = a_map(1, 2, 3, 4, 5)

    for number in (3, 1, 5):
        del entries[number,]

    assert [(2,), (4,)] == entries.keys()
    assert ((1,) in entries, entries.get((1,)), entries.get((4,))) == (False, None, "4")
    with pytest.raises(KeyError):
        del entries[3,]


@pytest.mark.parametrize(("behind", "values"), [(2, ["3", "5"]), (4, ["5"]), (5, []), (0, ["1", "3", "5"])])
def test_those_behind_a_key_can_be_walked(behind: int, values: list[str]) -> None:
    """The key itself need not be there, and is not among them."""
    assert values == list(a_map(1, 3, 5).after((behind,)))


def test_an_emptied_map_starts_anew() -> None:
    """A smaller key than those that were there goes to the front."""
    entries = a_map(5, 6)
    del entries[5,]
    del entries[6,]

    entries[1,] = "1"

    assert ([(1,)], (1,), (1,)) == (entries.keys(), entries.first_key(), entries.last_key())


def test_keys_that_left_at_the_front_may_come_again() -> None:
    """Also after so many have left that the front was cut."""
    entries = a_map(*range(300))
    for number in range(250):
        del entries[number,]

    for number in range(249, 99, -1):
        entries[number,] = str(number)

    assert list(range(100, 300)) == [key[0] for key in entries.keys()]  # noqa: SIM118 - no mapping


STEPS = st.lists(st.tuples(st.sampled_from(["set", "delete", "first"]), st.integers(0, 40)), max_size=200)


@settings(deadline=None, max_examples=80)
@given(st.integers(0, 300), STEPS)
def test_the_map_is_a_sorted_dict(count: int, steps: list[tuple[str, int]]) -> None:
    """Whatever comes and goes, keys and values are those of a dict that is sorted for each look."""
    entries = a_map(*range(count))
    plain = {(number,): str(number) for number in range(count)}
    for what, number in [("first", 0)] * (count * 3 // 4) + steps:
        if what == "set":
            entries[number,] = plain[number,] = what
        elif plain and (what == "first" or (number,) in plain):
            key = min(plain) if what == "first" else (number,)
            del entries[key]
            del plain[key]
    assert sorted(plain) == entries.keys()
    assert [plain[key] for key in sorted(plain)] == list(entries.values())
    assert [plain[key] for key in sorted(plain) if key > (20,)] == list(entries.after((20,)))
