"""Properties of queues: what they mean and what children inherit."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from licorne.model.configuration.policies import (
    BackfillOrder,
    FairCount,
    GangPlacing,
    MinRuntimeScope,
    PreemptionPolicy,
    PreemptionWithin,
    PriorityPolicy,
)
from licorne.model.configuration.queue_properties import (
    PROPERTIES,
    BackfillSettings,
    DisruptionBudget,
    QueueProperties,
    RuntimeSettings,
    evaluate,
    inherit,
    reads,
)

SECOND = 10**9


def test_a_leaf_without_properties_has_the_defaults() -> None:
    """Applications in order of submission and priority."""
    assert evaluate({}, is_leaf=True) == QueueProperties(
        application_sort_policy="fifo",
        priority_sorting=True,
        priority_policy=PriorityPolicy.DEFAULT,
        priority_offset=0,
        preemption_policy=PreemptionPolicy.DEFAULT,
        preemption_delay_ns=30 * SECOND,
        min_runtime_ns=0,
        min_runtime_scope=MinRuntimeScope.ALL,
        backoff_count=0,
        backoff_delay_ns=30 * SECOND,
        quota_preemption_delay_ns=0,
    )


def test_a_parent_names_the_order_of_its_queues() -> None:
    """A leaf has none below it."""
    properties = {"queue.sort.policy": "policy/credit"}

    assert evaluate(properties, is_leaf=False).queue_sort_policy == "policy/credit"
    assert evaluate(properties, is_leaf=True).queue_sort_policy == "fair"


def test_a_parent_without_properties_serves_its_queues_fairly() -> None:
    """The only default that differs."""
    assert QueueProperties(application_sort_policy="fair") == evaluate({}, is_leaf=False)


def test_every_property_is_read() -> None:
    """Each by its name."""
    properties = {
        "application.sort.policy": "fair",
        "application.sort.priority": "disabled",
        "priority.policy": "fence",
        "priority.offset": "-5",
        "preemption.policy": "disabled",
        "preemption.delay": "1m",
        "preemption.min-runtime": "30m",
        "preemption.min-runtime.scope": "guarantee",
        "preemption.victims-max": "5/1h",
        "preemption.within": "lower-priority",
        "application.unschedasks.backoff": "7",
        "application.unschedasks.backoff.delay": "2s",
        "quota.preemption.delay": "500ms",
        "backfill.reservations": "2",
        "backfill.order": "shortest",
        "backfill.passes": "0",
        "backfill.promises": "policy/short",
        "fair.count": "all",
        "fair.half-life": "7d",
        "fair.weight": "3",
        "gang.placing": "whole",
        "runtime.default": "30m",
        "runtime.max": "1d",
        "runtime.overrun": "end",
        "runtime.expected": "policy/guess",
        "queue.sort.policy": "policy/credit",
    }

    assert set(PROPERTIES) == set(properties)
    assert evaluate(properties, is_leaf=True) == QueueProperties(
        application_sort_policy="fair",
        priority_sorting=False,
        priority_policy=PriorityPolicy.FENCE,
        priority_offset=-5,
        preemption_policy=PreemptionPolicy.DISABLED,
        preemption_delay_ns=60 * SECOND,
        min_runtime_ns=1800 * SECOND,
        min_runtime_scope=MinRuntimeScope.GUARANTEE,
        preemption_within=PreemptionWithin.LOWER_PRIORITY,
        victims_max=DisruptionBudget(5, 3600 * SECOND),
        backoff_count=7,
        backoff_delay_ns=2 * SECOND,
        quota_preemption_delay_ns=SECOND // 2,
        fair_count=FairCount.ALL,
        fair_half_life_ns=7 * 86_400 * SECOND,
        fair_weight=3,
        gang_placing=GangPlacing.WHOLE,
        runtime=RuntimeSettings(
            default_ns=1800 * SECOND,
            max_ns=86_400 * SECOND,
            ends_overruns=True,
            expected_word="policy/guess",
        ),
    )


def test_a_parent_alone_promises_starts() -> None:
    """A leaf does not, whatever it says, nor does a parent that promises none; and no child inherits it."""
    properties = {"backfill.reservations": "2", "backfill.order": "shortest", "backfill.passes": "0"}
    found = [
        evaluate(properties, is_leaf=False).backfill,
        evaluate({"backfill.reservations": "All"}, is_leaf=False).backfill,
        evaluate(properties, is_leaf=True).backfill,
        evaluate(properties | {"backfill.reservations": "0"}, is_leaf=False).backfill,
        evaluate({"backfill.order": "shortest"}, is_leaf=False).backfill,
    ]
    two = BackfillSettings(2, BackfillOrder.SHORTEST, passes=0)
    everyone = BackfillSettings(1000, BackfillOrder.QUEUE, keeps=True, passes=3)
    assert [two, everyone, None, None, None] == found
    assert {} == inherit(properties, {})


def test_a_parent_does_not_use_the_properties_of_leaves() -> None:
    """It hands them down and is itself as ever."""
    properties = {"application.sort.policy": "fifo", "preemption.delay": "1s"}

    assert evaluate({}, is_leaf=False) == evaluate(properties, is_leaf=False)


# What a property means for a leaf, by its text; the attribute that it sets.
READ: Final[dict[tuple[str, str], dict[str, object]]] = {
    # Sort policies are spelled exactly; anything else is served in order of submission.
    ("application.sort.policy", "application_sort_policy"): {
        "fifo": "fifo",
        "": "fifo",
        "stateaware": "fifo",
        "fair": "fair",
        "Fair": "fifo",
        "random": "fifo",
        "users": "users",
    },
    # Only `disabled` switches priority sorting off, in any case.
    ("application.sort.priority", "priority_sorting"): {
        "Disabled": False,
        "ENABLED": True,
        "": True,
        "no": True,
    },
    # Offsets are numbers of 32 bits; anything else is no offset.
    ("priority.offset", "priority_offset"): {
        "2147483647": 2**31 - 1,
        "-2147483648": -(2**31),
        "+7": 7,
        **dict.fromkeys(("2147483648", "-2147483649", "1_0", " 1", "1.0", "", "9" * 5000, "٣"), 0),
    },
    # Backoff counts are unsigned numbers of 64 bits; anything else switches the backoff off.
    ("application.unschedasks.backoff", "backoff_count"): {
        "18446744073709551615": 2**64 - 1,
        **dict.fromkeys(("18446744073709551616", "-1", "+1", "x"), 0),
    },
}


@pytest.mark.parametrize(
    ("name", "attribute", "text", "value"),
    [(*names, text, value) for names, values in READ.items() for text, value in values.items()],
)
def test_a_property_has_a_value_or_its_default(name: str, attribute: str, text: str, value: object) -> None:
    """Nothing that cannot be read makes a queue fail."""
    assert value == getattr(evaluate({name: text}, is_leaf=True), attribute)


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


@pytest.mark.parametrize("text", ["0s", "-5s", "10", "", "soon"])
def test_delays_are_positive_durations(text: str) -> None:
    """Anything else is the default, 30 seconds, and off for quota preemption."""
    names = ("preemption.delay", "application.unschedasks.backoff.delay", "quota.preemption.delay")

    assert QueueProperties() == evaluate(dict.fromkeys(names, text), is_leaf=True)


MOST: Final = {
    "application.sort.policy": "fair",
    "application.sort.priority": "disabled",
    "preemption.delay": "1s",
    "quota.preemption.delay": "2s",
    "application.unschedasks.backoff": "x",
    "colour": "red",
}
INHERITED: Final = {
    "most properties as they are, also unknown ones and those that cannot be read": (MOST, MOST),
    "what belongs to the parent alone as its default: a fence is around the parent, not around each child": (
        {"priority.policy": "fence", "priority.offset": "5", "preemption.policy": "fence"},
        {"priority.policy": "default", "priority.offset": "0", "preemption.policy": "default"},
    ),
    "disabled preemption: everything below is protected as well": (
        {"preemption.policy": "disabled"},
        {"preemption.policy": "disabled"},
    ),
    "disabled preemption in any case": ({"preemption.policy": "Disabled"}, {"preemption.policy": "Disabled"}),
}


@pytest.mark.parametrize(("parent", "inherited"), INHERITED.values(), ids=INHERITED)
def test_a_child_inherits_properties(parent: dict[str, str], inherited: dict[str, str]) -> None:
    """Where it has none of its own."""
    assert inherited == inherit(parent, {})


def test_own_properties_go_before_inherited_ones() -> None:
    """Each by itself, in the order of the parent and then the child."""
    merged = inherit({"a": "1", "priority.offset": "3"}, {"priority.offset": "4", "b": "2"})

    assert [("a", "1"), ("priority.offset", "4"), ("b", "2")] == list(merged.items())


def test_inheriting_leaves_both_sides_as_they_are() -> None:
    """The result is a map of its own."""
    parent, own = {"a": "1"}, {"b": "2"}

    inherit(parent, own)["c"] = "3"

    assert ({"a": "1"}, {"b": "2"}) == (parent, own)


@given(st.dictionaries(st.sampled_from(PROPERTIES), st.text(max_size=12)), st.booleans())
def test_no_property_makes_a_queue_fail(properties: dict[str, str], is_leaf: bool) -> None:  # noqa: FBT001 - drawn
    """What cannot be read is as good as absent."""
    readable = {name: text for name, text in properties.items() if reads(name, text)}

    assert evaluate(readable, is_leaf=is_leaf) == evaluate(properties, is_leaf=is_leaf)
