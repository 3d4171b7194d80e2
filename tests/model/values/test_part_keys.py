"""The keys of the parts of an ask."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from licorne.model.values.allocation import (
    PART_MARK,
    ask_key_of,
    number_of,
    numbered_key,
    part_key,
    uuid_of,
)

ASK_KEYS = st.text(alphabet="k-2:#", min_size=1, max_size=3)
UUIDS = st.lists(st.sampled_from(["k", "-", "2", ":", PART_MARK]), min_size=1, max_size=6).map("".join)


@given(ASK_KEYS, UUIDS)
def test_what_an_rm_knows_an_allocation_by_is_read_from_its_key(ask_key: str, uuid: str) -> None:
    """The key of its ask and its UUID; so no two allocations have one key."""
    key = part_key(ask_key, uuid)

    assert (ask_key, uuid) == (ask_key_of(key), uuid_of(key))


@pytest.mark.parametrize("number", [2, 3, 10_000])
def test_a_key_that_the_scheduler_gives_is_the_uuid_as_well(number: int) -> None:
    """An RM that reports the allocation after a restart leads to the same key."""
    key = numbered_key("k", number)

    assert ("k", key, number) == (ask_key_of(key), uuid_of(key), number_of(key))
    assert key == part_key("k", uuid_of(key))


@pytest.mark.parametrize(
    ("ask_key", "uuid", "key"), [("k", "k", "k"), ("k", "", "k"), ("", "u", "u"), ("", "", "")]
)
def test_an_allocation_with_one_name_has_that_key(ask_key: str, uuid: str, key: str) -> None:
    """Most have: the first one of an ask gets the ask's key as its UUID."""
    assert key == part_key(ask_key, uuid)


@pytest.mark.parametrize("key", ["k", "k#allocation:7", "k#allocation-x", f"k{PART_MARK}"])
def test_only_a_key_that_a_scheduler_gave_has_a_number(key: str) -> None:
    """Any other counts as the first."""
    assert 1 == number_of(key)


def test_a_uuid_with_the_mark_of_another_ask_is_kept() -> None:
    """An earlier scheduler may give what it likes."""
    key = part_key("k", "other#allocation-2")

    assert ("k", "other#allocation-2", 1) == (ask_key_of(key), uuid_of(key), number_of(key))
