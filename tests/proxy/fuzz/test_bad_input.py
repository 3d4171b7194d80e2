"""What strangers send: a few hundred changed inputs for each door; `make bad-input` takes many more."""

from __future__ import annotations

import random

import pytest
from support.fuzz.input_doors import DOORS, edited

RUNS = 150


@pytest.mark.parametrize("name", DOORS)
def test_changed_input_is_refused_or_taken(name: str) -> None:
    """With a clear error or none, with no change by what is refused, and with all invariants kept."""
    door = DOORS[name]
    seeds = door.seeds()
    assert all(door.take(seed) for seed in seeds), "what is right is taken"
    rng = random.Random(name)  # noqa: S311 - it plays, and keeps no secret
    taken = [door.take(edited(seeds[number % len(seeds)], rng)) for number in range(RUNS)]

    assert name == "session" or not all(taken), "some of it is refused"
