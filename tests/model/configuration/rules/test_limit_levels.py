"""Rules about limits of queues above each other; `§` marks where an error is reported."""

from __future__ import annotations

from collections import ChainMap
from dataclasses import replace

import pytest
from support.model.configurations import errors_at_marks, errors_of

from licorne.model.configuration.reader import load
from licorne.model.configuration.rules.limit_levels import limit_applications_fit_levels_above


def levels(*limits: str) -> str:
    """Return a configuration in which each queue below the root stands in the one before."""
    queues = ""
    for name, limit in reversed(list(zip(("root", "a", "b", "c"), limits, strict=False))):
        below = f", queues: [{queues}]" if queues else ""
        queues = f"{{name: {name}, limits: [{limit}]{below}}}"
    return f"partitions: [{{queues: [{queues}]}}]"


@pytest.mark.parametrize(("kind", "who"), [("user", "users: [bob]"), ("group", "groups: [dev]")])
def test_a_name_has_no_more_resources_than_further_up(kind: str, who: str) -> None:
    """The limit of the same name above counts."""
    text = levels(f"{{{who}, maxresources: {{memory: 10}}}}", f"{{{who}, maxresources: §{{memory: 11}}}}")

    name = who[-4:-1]
    assert [
        (
            f"{kind} {name} max resource map[memory:11] of queue a is greater than immediate or ancestor "
            "parent maximum resource map[memory:10]"
        )
    ] == errors_at_marks(text)


def test_a_name_without_a_limit_above_is_held_against_the_wildcard() -> None:
    """Reported with that word."""
    text = levels("{users: ['*'], maxresources: {memory: 10}}", "{users: [bob], maxresources: §{memory: 11}}")

    assert [
        (
            "user bob max resource map[memory:11] of queue a is greater than wildcard maximum resource "
            "map[memory:10] of immediate or ancestor parent queue"
        )
    ] == errors_at_marks(text)


def test_a_name_with_a_limit_above_is_not_held_against_the_wildcard() -> None:
    """Its own limit above counts alone."""
    text = levels(
        "{users: [bob], maxresources: {memory: 20}}, {users: ['*'], maxresources: {memory: 10}}",
        "{users: [bob], maxresources: {memory: 15}}",
    )

    assert errors_of(text) == []


def test_the_wildcard_is_held_against_the_wildcard_only() -> None:
    """A named user above does not limit everyone below."""
    text = levels("{users: [bob], maxresources: {memory: 10}}", "{users: ['*'], maxresources: {memory: 11}}")

    assert errors_of(text) == []


def test_resources_reach_over_levels_and_the_lowest_counts() -> None:
    """A type that a level between does not name is still limited."""
    text = levels(
        "{users: [bob], maxresources: {memory: 10}}",
        "{users: [bob], maxresources: {vcore: 1}}",
        "{users: [dan], maxapplications: 1}",
        "{users: [bob], maxresources: §{memory: 11, vcore: 1}}",
    )

    (said,) = errors_at_marks(text)

    assert "ancestor parent maximum resource map[memory:10 vcore:1000]" in said


def test_limits_of_one_queue_are_not_held_against_each_other() -> None:
    """A named user may have more than the wildcard of the same queue."""
    text = levels("{users: [bob], maxresources: {memory: 20}}, {users: ['*'], maxresources: {memory: 10}}")

    assert errors_of(text) == []


@pytest.mark.parametrize(("kind", "who"), [("user", "users: [bob]"), ("group", "groups: [dev]")])
def test_a_name_has_no_more_applications_than_further_up(kind: str, who: str) -> None:
    """Equal is allowed."""
    text = levels(
        f"{{{who}, maxapplications: 2}}", f"{{{who}, maxapplications: 2}}", f"{{{who}, maxapplications: §3}}"
    )

    assert [
        (
            f"{kind} {who[-4:-1]} max applications 3 of queue b is greater than immediate or ancestor parent "
            "max applications 2"
        )
    ] == errors_at_marks(text)


def test_a_name_with_a_number_of_applications_above_has_one_below() -> None:
    """A limit of resources alone would allow any number; reported at the limit."""
    text = levels("{users: [bob], maxapplications: 1}", "§{users: [bob], maxresources: {memory: 1}}")

    assert [
        (
            "user bob max applications 0 of queue a is greater than immediate or ancestor parent "
            "max applications 1"
        )
    ] == errors_at_marks(text)


def test_applications_are_held_against_the_wildcard_too() -> None:
    """For groups as for users."""
    text = levels("{groups: [dev, '*'], maxapplications: 1}", "{groups: [ops], maxapplications: §2}")

    assert [
        (
            "group ops max applications 2 of queue a is greater than wildcard max applications 1 "
            "of immediate or ancestor parent queue"
        )
    ] == errors_at_marks(text)


def test_a_number_of_applications_takes_the_place_of_that_above() -> None:
    """Each level is held against the nearest one that names the same."""
    text = levels(
        "{users: [bob], maxapplications: 5}",
        "{users: [bob], maxapplications: 3}",
        "{users: [bob], maxapplications: §4}",
    )

    (said,) = errors_at_marks(text)

    assert said.endswith("max applications 3")


def test_a_limit_above_without_applications_leaves_them_free() -> None:
    """Resources and applications are held against each other apart."""
    text = levels("{users: [bob], maxresources: {memory: 1}}", "{users: [bob], maxapplications: 9}")

    assert errors_of(text) == []


def test_what_is_allowed_above_is_not_copied_for_each_queue() -> None:
    """There may be thousands of names above thousands of queues."""
    limits = [f"{{users: [{name}], maxapplications: 1}}" for name in ("bob", "eve")]
    (partition,) = load(levels(*limits)).partitions
    above: ChainMap[tuple[str, str], int] = ChainMap({("user", "bob"): 1})
    bare = replace(partition.root, limits=())

    assert limit_applications_fit_levels_above(bare, above, []) is above
    below = limit_applications_fit_levels_above(partition.root.queues[0], above, [])
    assert (below.maps[1] is above.maps[0], below.maps[0]) == (True, {("user", "eve"): 1})
