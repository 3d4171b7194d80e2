"""Messages: the names of partitions, and the numbers of the interface."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from licorne.model.values.messages import (
    NodeAction,
    TerminationType,
    full_partition_name,
    short_partition_name,
)


@pytest.mark.parametrize(
    ("name", "full"),
    [
        ("", "[rm]default"),
        ("default", "[rm]default"),
        ("gpu", "[rm]gpu"),
        ("[rm]gpu", "[rm]gpu"),
        ("[other]gpu", "[other]gpu"),
        ("[", "["),
        ("gpu[1]", "[rm]gpu[1]"),
    ],
)
def test_a_full_name_says_whose_partition_it_is(name: str, full: str) -> None:
    """A name gets the id of its RM in front, unless one is there; no name at all is `default`."""
    assert full == full_partition_name(name, "rm")


@pytest.mark.parametrize(
    ("full", "short"),
    [
        ("[rm]default", "default"),
        ("[rm]a]b", "a]b"),
        ("default", "default"),
        ("]default", "]default"),
        ("[]default", "default"),
        ("[rm]", ""),
    ],
)
def test_a_short_name_is_what_stands_behind_the_first_bracket(full: str, short: str) -> None:
    """The text after the first closing bracket, unless that is the very first sign; else the whole."""
    assert short == short_partition_name(full)


@settings(max_examples=60)
@given(
    st.text(min_size=1).filter(lambda name: not name.startswith("[")),
    st.text(min_size=1).filter(lambda rm_id: "]" not in rm_id),
)
def test_a_name_survives_being_made_full_and_short_again(name: str, rm_id: str) -> None:
    """The RM reads the name that it wrote."""
    assert name == short_partition_name(full_partition_name(name, rm_id))


def test_node_actions_have_the_numbers_of_the_interface() -> None:
    """Names and numbers are those of `si.v1`, its spelling included."""
    assert {
        "UNKNOWN_ACTION_FROM_RM": 0,
        "CREATE": 1,
        "UPDATE": 2,
        "DRAIN_NODE": 3,
        "DECOMISSION": 4,
        "DRAIN_TO_SCHEDULABLE": 5,
        "CREATE_DRAIN": 6,
    } == {action.name: action.value for action in NodeAction}


def test_termination_types_have_the_numbers_of_the_interface() -> None:
    """Names and numbers are those of `si.v1`."""
    assert {
        "UNKNOWN_TERMINATION_TYPE": 0,
        "STOPPED_BY_RM": 1,
        "TIMEOUT": 2,
        "PREEMPTED_BY_SCHEDULER": 3,
        "PLACEHOLDER_REPLACED": 4,
        "SCHEDULING_FAILED_ON_RM": 5,
    } == {kind.name: kind.value for kind in TerminationType}
