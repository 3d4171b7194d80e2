"""Properties of queues: what they mean and what children inherit."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from licorne.model.configuration.queue_properties import (
    PROPERTIES,
    PreemptionPolicy,
    PriorityPolicy,
    QueueProperties,
    SortPolicy,
    evaluate,
    inherit,
    reads,
)

SECOND = 10**9


def test_a_leaf_without_properties_has_the_defaults() -> None:
    """Applications in order of submission and priority."""
    assert evaluate({}, is_leaf=True) == QueueProperties(
        application_sort_policy=SortPolicy.FIFO,
        priority_sorting=True,
        priority_policy=PriorityPolicy.DEFAULT,
        priority_offset=0,
        preemption_policy=PreemptionPolicy.DEFAULT,
        preemption_delay_ns=30 * SECOND,
        backoff_count=0,
        backoff_delay_ns=30 * SECOND,
        quota_preemption_delay_ns=0,
    )


def test_a_parent_without_properties_serves_its_queues_fairly() -> None:
    """The only default that differs."""
    assert QueueProperties(application_sort_policy=SortPolicy.FAIR) == evaluate({}, is_leaf=False)


def test_every_property_is_read() -> None:
    """Each by its name."""
    properties = {
        "application.sort.policy": "fair",
        "application.sort.priority": "disabled",
        "priority.policy": "fence",
        "priority.offset": "-5",
        "preemption.policy": "disabled",
        "preemption.delay": "1m",
        "application.unschedasks.backoff": "7",
        "application.unschedasks.backoff.delay": "2s",
        "quota.preemption.delay": "500ms",
    }

    assert set(PROPERTIES) == set(properties)
    assert evaluate(properties, is_leaf=True) == QueueProperties(
        application_sort_policy=SortPolicy.FAIR,
        priority_sorting=False,
        priority_policy=PriorityPolicy.FENCE,
        priority_offset=-5,
        preemption_policy=PreemptionPolicy.DISABLED,
        preemption_delay_ns=60 * SECOND,
        backoff_count=7,
        backoff_delay_ns=2 * SECOND,
        quota_preemption_delay_ns=SECOND // 2,
    )


def test_a_parent_does_not_use_the_properties_of_leaves() -> None:
    """It hands them down and is itself as ever."""
    properties = {"application.sort.policy": "fifo", "preemption.delay": "1s"}

    assert evaluate({}, is_leaf=False) == evaluate(properties, is_leaf=False)


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        ("fifo", SortPolicy.FIFO),
        ("", SortPolicy.FIFO),
        ("stateaware", SortPolicy.FIFO),
        ("fair", SortPolicy.FAIR),
        ("Fair", SortPolicy.FIFO),
        ("random", SortPolicy.FIFO),
    ],
)
def test_sort_policies_are_spelled_exactly(text: str, policy: SortPolicy) -> None:
    """Anything else is served in order of submission."""
    assert policy is evaluate({"application.sort.policy": text}, is_leaf=True).application_sort_policy


@pytest.mark.parametrize(
    ("text", "sorting"), [("Disabled", False), ("ENABLED", True), ("", True), ("no", True)]
)
def test_priority_sorting_is_switched_in_any_case(text: str, sorting: bool) -> None:  # noqa: FBT001 - the expected value
    """Only `disabled` switches it off."""
    assert sorting is evaluate({"application.sort.priority": text}, is_leaf=False).priority_sorting


@pytest.mark.parametrize(
    ("text", "priority", "preemption"),
    [
        ("FENCE", PriorityPolicy.FENCE, PreemptionPolicy.FENCE),
        ("Default", PriorityPolicy.DEFAULT, PreemptionPolicy.DEFAULT),
        ("Disabled", PriorityPolicy.DEFAULT, PreemptionPolicy.DISABLED),
        ("wall", PriorityPolicy.DEFAULT, PreemptionPolicy.DEFAULT),
    ],
)
def test_policies_are_read_in_any_case(
    text: str, priority: PriorityPolicy, preemption: PreemptionPolicy
) -> None:
    """Only preemption can be disabled."""
    read = evaluate({"priority.policy": text, "preemption.policy": text}, is_leaf=False)

    assert (priority, preemption) == (read.priority_policy, read.preemption_policy)


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        ("2147483647", 2**31 - 1),
        ("-2147483648", -(2**31)),
        ("+7", 7),
        ("2147483648", 0),
        ("-2147483649", 0),
        ("1_0", 0),
        (" 1", 0),
        ("1.0", 0),
        ("", 0),
        ("9" * 5000, 0),
        ("٣", 0),
    ],
)
def test_offsets_are_numbers_of_32_bits(text: str, offset: int) -> None:
    """Anything else is no offset."""
    assert offset == evaluate({"priority.offset": text}, is_leaf=True).priority_offset


@pytest.mark.parametrize(
    ("text", "count"),
    [("18446744073709551615", 2**64 - 1), ("18446744073709551616", 0), ("-1", 0), ("+1", 0), ("x", 0)],
)
def test_backoff_counts_are_unsigned_numbers_of_64_bits(text: str, count: int) -> None:
    """Anything else switches the backoff off."""
    assert count == evaluate({"application.unschedasks.backoff": text}, is_leaf=True).backoff_count


@pytest.mark.parametrize("text", ["0s", "-5s", "10", "", "soon"])
def test_delays_are_positive_durations(text: str) -> None:
    """Anything else is the default, 30 seconds, and off for quota preemption."""
    names = ("preemption.delay", "application.unschedasks.backoff.delay", "quota.preemption.delay")

    assert QueueProperties() == evaluate(dict.fromkeys(names, text), is_leaf=True)


def test_most_properties_are_inherited_as_they_are() -> None:
    """Also unknown ones, and those that cannot be read."""
    parent = {
        "application.sort.policy": "fair",
        "application.sort.priority": "disabled",
        "preemption.delay": "1s",
        "quota.preemption.delay": "2s",
        "application.unschedasks.backoff": "x",
        "colour": "red",
    }

    assert parent == inherit(parent, {})


def test_what_belongs_to_the_parent_alone_is_inherited_as_its_default() -> None:
    """A fence stands around the parent, not around each child."""
    parent = {"priority.policy": "fence", "priority.offset": "5", "preemption.policy": "fence"}

    assert {
        "priority.policy": "default",
        "priority.offset": "0",
        "preemption.policy": "default",
    } == inherit(parent, {})


@pytest.mark.parametrize("text", ["disabled", "Disabled"])
def test_disabled_preemption_is_inherited(text: str) -> None:
    """Everything below is protected as well."""
    assert {"preemption.policy": text} == inherit({"preemption.policy": text}, {})


def test_own_properties_go_before_inherited_ones() -> None:
    """Each by itself, in the order of the parent and then the child."""
    merged = inherit({"a": "1", "priority.offset": "3"}, {"priority.offset": "4", "b": "2"})

    assert [("a", "1"), ("priority.offset", "4"), ("b", "2")] == list(merged.items())


def test_inheriting_leaves_both_sides_as_they_are() -> None:
    """The result is a map of its own."""
    parent, own = {"a": "1"}, {"b": "2"}

    inherit(parent, own)["c"] = "3"

    assert ({"a": "1"}, {"b": "2"}) == (parent, own)


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(PROPERTIES), st.text(max_size=12)), st.booleans())
def test_no_property_makes_a_queue_fail(properties: dict[str, str], is_leaf: bool) -> None:  # noqa: FBT001 - drawn
    """What cannot be read is as good as absent."""
    readable = {name: text for name, text in properties.items() if reads(name, text)}

    assert evaluate(readable, is_leaf=is_leaf) == evaluate(properties, is_leaf=is_leaf)
