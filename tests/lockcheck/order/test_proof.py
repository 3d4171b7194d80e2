"""The search for strong cycles in what a declaration allows."""

from __future__ import annotations

import random

import pytest

from licorne.lockcheck import Order
from licorne.lockcheck.findings.terms import Mode
from licorne.lockcheck.order import order
from licorne.lockcheck.order.order import OrderStep, find_strong_cycle

MODES: tuple[Mode, Mode] = ("R", "W")


def random_steps(chance: random.Random) -> list[OrderStep]:
    """Return steps between a few classes, some of them within a class."""
    pick = chance.choice
    return [
        OrderStep(pick("abcde"), pick(MODES), pick("abcde"), pick(MODES), "")
        for _ in range(chance.randrange(1, 9))
    ]


def test_steps_that_are_in_no_cycle_of_classes_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(14)  # noqa: S311 - a seeded test
    every = [random_steps(chance) for _ in range(400)]
    found = [find_strong_cycle(steps, "ab") for steps in every]
    monkeypatch.setattr(order, "_in_cycles_of_classes", lambda steps: steps)

    assert [find_strong_cycle(steps, "ab") for steps in every] == found
    assert 50 < sum(map(bool, found)) < 350


def test_an_order_without_exceptions_needs_no_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of forty classes has more than three thousand steps, and to search from each took a minute."""

    def search(*_: object) -> tuple[OrderStep, ...]:
        pytest.fail("no step can be part of a cycle")

    monkeypatch.setattr(order, "_round", search)

    assert len(Order(" < ".join(f"c{number}" for number in range(40))).ranks) == 40
