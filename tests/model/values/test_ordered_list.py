"""A list in the order of its items' own places."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from licorne.model.values.ordered_list import OrderedList


@dataclass(eq=False)
class Item:
    number: int

    @property
    def order(self) -> tuple[int]:
        return (self.number,)


def a_list(*numbers: int) -> tuple[OrderedList[Item], dict[int, Item]]:
    items = {number: Item(number) for number in numbers}
    entries = OrderedList[Item]()
    for item in items.values():
        entries.add(item)
    return entries, items


def numbers_of(entries: OrderedList[Item]) -> list[int]:
    return [item.number for item in entries]


def test_items_are_in_the_order_of_their_places() -> None:
    """However they came."""
    entries, _ = a_list(5, 1, 9, 3)

    assert [1, 3, 5, 9] == numbers_of(entries)
    first = entries.head()
    assert first is not None
    assert (1, 9, 4) == (first.number, entries.last.number, len(entries))


def test_an_item_is_found_by_its_place() -> None:
    """Where there is no item, none is found."""
    entries, items = a_list(2, 4, 6)

    assert [items[2], items[4], None, None, None] == [entries.find((n,)) for n in (2, 4, 1, 5, 7)]
    assert OrderedList[Item]().find((1,)) is None


def test_a_removed_item_is_gone() -> None:
    """At the front, at the end and in between."""
    entries, items = a_list(1, 2, 3, 4, 5)

    for number in (3, 1, 5):
        entries.remove(items[number])

    assert ([2, 4], 2) == (numbers_of(entries), len(entries))
    assert entries.find((1,)) is None


def test_an_item_that_is_not_there_cannot_be_removed() -> None:
    """Not even if one with the same place is."""
    entries, _ = a_list(1, 2)

    with pytest.raises(AssertionError, match="is not at the place of its order"):
        entries.remove(Item(2))

    assert [1, 2] == numbers_of(entries)


@pytest.mark.parametrize(("behind", "numbers"), [(2, [3, 5]), (4, [5]), (5, []), (0, [1, 3, 5])])
def test_those_behind_a_place_can_be_walked(behind: int, numbers: list[int]) -> None:
    """One at the place itself is not among them."""
    entries, _ = a_list(1, 3, 5)

    assert numbers == [item.number for item in entries.after((behind,))]


def test_an_emptied_list_starts_anew() -> None:
    """A place before those that were there is the first then."""
    entries, items = a_list(5, 6)
    entries.remove(items[5])
    entries.remove(items[6])

    entries.add(Item(1))

    assert ([1], False) == (numbers_of(entries), not entries)


STEPS = st.lists(st.tuples(st.sampled_from(["add", "remove", "first"]), st.integers(0, 40)), max_size=200)


@given(STEPS, st.integers(0, 150))
def test_it_is_what_a_sorted_list_is(steps: list[tuple[str, int]], gone: int) -> None:
    """Whatever comes and goes, also after so many have left that the front was cut."""
    entries, items = a_list(*range(-200, 0))
    for number in range(-200, -200 + gone):
        entries.remove(items.pop(number))
    for step, number in steps:
        if step == "add" and number not in items:
            items[number] = Item(number)
            entries.add(items[number])
        elif step == "remove" and number in items:
            entries.remove(items.pop(number))
        elif step == "first" and items:
            entries.remove(items.pop(min(items)))

        assert sorted(items) == numbers_of(entries)
        assert items.get(number) is entries.find((number,))
