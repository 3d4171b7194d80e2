"""Sizes that fit a room are found, whatever their types, and whichever came and went."""

from __future__ import annotations

import random

import pytest
from support.model.builders import a_resource

from licorne.model.resources.resource import EMPTY, Resource, fits, fits_undefined_unlimited
from licorne.model.resources.size_index import SizeIndex

TYPES = ("memory", "vcore", "gpu")


def some_resource(rng: random.Random, least: int = 0) -> Resource:
    return a_resource(**{name: rng.randint(least, 9) for name in rng.sample(TYPES, rng.randint(1, 3))})


@pytest.mark.parametrize("seed", range(20))
def test_the_sizes_found_are_those_that_fit(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - a reproducible draw
    index, sizes = SizeIndex(), set[Resource]()
    for _ in range(60):
        size = some_resource(rng)
        if size in sizes and rng.random() < 0.5:
            index.remove(size)
            sizes.discard(size)
        else:
            index.add(size)
            sizes.add(size)
        room = some_resource(rng, least=-1)
        on_node = index.fitting(room, undefined_unlimited=False)
        in_queue = index.fitting(room, undefined_unlimited=True)
        assert {size for size in sizes if fits(room, size)} == set(on_node)
        assert {size for size in sizes if fits_undefined_unlimited(room, size)} == set(in_queue)
    assert sizes == set(index.serials)


def test_what_is_taken_is_no_longer_there() -> None:
    index = SizeIndex()
    for quantity in (3, 1, 2):
        index.add(a_resource(memory=quantity))

    taken = index.take_fitting(a_resource(memory=2), undefined_unlimited=False)

    assert {a_resource(memory=1), a_resource(memory=2)} == set(taken)
    assert [a_resource(memory=3)] == [*index.serials]


def test_without_a_room_all_fit_and_nothing_has_room_for_nothing() -> None:
    index = SizeIndex()
    index.add(a_resource(memory=3))
    index.add(EMPTY)

    assert 2 == len(index.fitting(None, undefined_unlimited=True))
    assert [EMPTY] == index.fitting(EMPTY, undefined_unlimited=False)
    index.clear()
    assert [] == index.fitting(None, undefined_unlimited=True)
