"""What an application has: sums, swaps, and what it has used."""

from __future__ import annotations

import pytest
from support.model.builders import SECOND_NS, START_NS, TEN, a_resource, an_allocation, an_ask

from licorne.model.applications.holdings import Holdings, less
from licorne.model.resources.resource import EMPTY


def with_placeholders(*keys: str) -> Holdings:
    holdings = Holdings()
    for key in keys:
        holdings.add(an_allocation(ask=an_ask(key, placeholder=True, task_group_name="g")))
    return holdings


def test_placeholders_are_counted_apart() -> None:
    """The most that was used is of either kind, not of both."""
    holdings = with_placeholders("p")
    holdings.add(an_allocation("real", resource=a_resource(memory=3)))

    assert (a_resource(memory=3), TEN, TEN) == (
        holdings.allocated,
        holdings.placeholder_allocated,
        holdings.most_used,
    )
    holdings.validate("app")


@pytest.mark.parametrize(
    ("ended", "added", "most"),
    [
        ("small", {"memory": 1}, {"memory": 11, "vcore": 2}),
        ("small", {"memory": 2}, {"memory": 12, "vcore": 2}),
        ("large", {"memory": 2}, {"memory": 11, "vcore": 2}),
        ("large", {"vcore": 5}, {"memory": 11, "vcore": 5}),
        ("small", {"gpu": 0}, {"memory": 11, "vcore": 2, "gpu": 0}),
    ],
)
def test_the_most_that_was_used_stays_when_something_ends(
    ended: str, added: dict[str, int], most: dict[str, int]
) -> None:
    """Each type by itself; a type is named once it was asked for."""
    holdings = Holdings()
    holdings.add(an_allocation("large", resource=a_resource(memory=10, vcore=2)))
    holdings.add(an_allocation("small", resource=a_resource(memory=1)))
    holdings.end(ended, START_NS)

    holdings.add(an_allocation("more", resource=a_resource(**added)))

    assert a_resource(**most) == holdings.most_used


def test_what_ends_is_counted_no_longer_and_was_used() -> None:
    """By the second, under the kind that it was."""
    holdings = Holdings()
    holdings.add(an_allocation("a"))
    holdings.add(an_allocation("b", resource=a_resource(memory=1)))
    holdings.placed["b"].preempted = True

    assert "a" == holdings.end("a", START_NS + 2 * SECOND_NS).ask.allocation_key
    assert a_resource(memory=1) == holdings.allocated
    holdings.end_all(START_NS + 3 * SECOND_NS)

    assert (EMPTY, {}) == (holdings.allocated, holdings.placed)
    assert {"UNKNOWN": {"memory": 20}} == holdings.used.as_dict()
    assert {"UNKNOWN": {"memory": 3}} == holdings.used_preempted.as_dict()


def test_a_swap_is_taken_once() -> None:
    """Whether it is completed or given up."""
    holdings = with_placeholders("p")
    member = an_allocation("m")
    holdings.begin_swap(member, holdings.placed["p"])
    assert ({"m": "p"}, True) == (holdings.swapping, holdings.placed["p"].released)

    assert [member, None, None] == [holdings.take_swap(key) for key in ("p", "p", "unknown")]
    assert ({}, None) == (holdings.swapping, holdings.placed["p"].swap)


def test_all_swaps_are_dropped_in_their_order() -> None:
    """What is returned holds room on nodes."""
    holdings = with_placeholders("p", "q")
    members = (an_allocation("m"), an_allocation("n"))
    for member, placeholder in zip(members, holdings.placed.values(), strict=True):
        holdings.begin_swap(member, placeholder)

    assert [members, ()] == [holdings.drop_swaps(), holdings.drop_swaps()]


def test_an_allocation_is_released_once() -> None:
    """A victim is not released as well."""
    holdings = Holdings()
    for key in ("a", "victim"):
        holdings.add(an_allocation(key))
    holdings.placed["victim"].preempted = True

    assert [True, False, False, False] == [holdings.release(key) for key in ("a", "a", "victim", "unknown")]


def test_a_sum_that_is_wrong_is_found() -> None:
    """With the application named."""
    holdings = with_placeholders("p")
    holdings.placeholder_allocated = EMPTY

    with pytest.raises(AssertionError, match="application app: placeholders"):
        holdings.validate("app")
    with pytest.raises(AssertionError, match="expected a part of"):
        less(EMPTY, TEN)
