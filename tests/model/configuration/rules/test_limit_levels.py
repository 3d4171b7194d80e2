"""Rules about limits of queues above each other; `§` marks where an error is reported."""

from __future__ import annotations

from collections import ChainMap
from dataclasses import replace
from typing import Final

import pytest
from support.model.configurations import errors_at_marks

from licorne.model.configuration.reader import load
from licorne.model.configuration.rules.limits import limit_applications_fit_levels_above

GREATER: Final = "is greater than immediate or ancestor parent"
NAMES: Final = (("user", "bob", "users: [bob]"), ("group", "dev", "groups: [dev]"))


def levels(*limits: str) -> str:
    """Return a configuration in which each queue below the root stands in the one before."""
    queues = ""
    for name, limit in reversed(list(zip(("root", "a", "b", "c"), limits, strict=False))):
        below = f", queues: [{queues}]" if queues else ""
        queues = f"{{name: {name}, limits: [{limit}]{below}}}"
    return f"partitions: [{{queues: [{queues}]}}]"


LEVELS: Final[dict[str, tuple[str, ...]]] = {
    **{
        f"a {kind} has no more resources than its limit above": (
            levels(f"{{{who}, maxresources: {{memory: 10}}}}", f"{{{who}, maxresources: §{{memory: 11}}}}"),
            f"{kind} {name} max resource map[memory:11] of queue a {GREATER} maximum resource map[memory:10]",
        )
        for kind, name, who in NAMES
    },
    "a name without a limit above has no more resources than the wildcard above": (
        levels("{users: ['*'], maxresources: {memory: 10}}", "{users: [bob], maxresources: §{memory: 11}}"),
        (
            "user bob max resource map[memory:11] of queue a is greater than wildcard maximum resource "
            "map[memory:10] of immediate or ancestor parent queue"
        ),
    ),
    "a name with a limit above may have more than the wildcard above": (
        levels(
            "{users: [bob], maxresources: {memory: 20}}, {users: ['*'], maxresources: {memory: 10}}",
            "{users: [bob], maxresources: {memory: 15}}",
        ),
    ),
    "the wildcard may have more than a user above": (
        levels("{users: [bob], maxresources: {memory: 10}}", "{users: ['*'], maxresources: {memory: 11}}"),
    ),
    "a type that a level between does not name is limited by the levels above it": (
        levels(
            "{users: [bob], maxresources: {memory: 10}}",
            "{users: [bob], maxresources: {vcore: 1}}",
            "{users: [dan], maxapplications: 1}",
            "{users: [bob], maxresources: §{memory: 11, vcore: 1}}",
        ),
        (
            f"user bob max resource map[memory:11 vcore:1000] of queue c {GREATER} maximum resource "
            "map[memory:10 vcore:1000]"
        ),
    ),
    "a user may have more than the wildcard of the same queue": (
        levels("{users: [bob], maxresources: {memory: 20}}, {users: ['*'], maxresources: {memory: 10}}"),
    ),
    **{
        f"a {kind} has as many applications as its limit above, and no more": (
            levels(*(f"{{{who}, maxapplications: {count}}}" for count in ("2", "2", "§3"))),
            f"{kind} {name} max applications 3 of queue b {GREATER} max applications 2",
        )
        for kind, name, who in NAMES
    },
    "a name whose applications are limited above has a limit of applications below": (
        levels("{users: [bob], maxapplications: 1}", "§{users: [bob], maxresources: {memory: 1}}"),
        f"user bob max applications 0 of queue a {GREATER} max applications 1",
    ),
    "a group without a limit above has no more applications than the wildcard above": (
        levels("{groups: [dev, '*'], maxapplications: 1}", "{groups: [ops], maxapplications: §2}"),
        (
            "group ops max applications 2 of queue a is greater than wildcard max applications 1 "
            "of immediate or ancestor parent queue"
        ),
    ),
    "the nearest level above that names the user limits its applications": (
        levels(*(f"{{users: [bob], maxapplications: {count}}}" for count in ("5", "3", "§4"))),
        f"user bob max applications 4 of queue b {GREATER} max applications 3",
    ),
    "a limit of resources above does not limit applications": (
        levels("{users: [bob], maxresources: {memory: 1}}", "{users: [bob], maxapplications: 9}"),
    ),
}


@pytest.mark.parametrize("case", LEVELS)
def test_limits_fit_those_of_the_queues_above(case: str) -> None:
    """A name is compared with its limit above, or with that of the wildcard where it has none."""
    text, *said = LEVELS[case]

    assert said == errors_at_marks(text)


def test_what_is_allowed_above_is_not_copied_for_each_queue() -> None:
    """There may be thousands of names above thousands of queues."""
    limits = [f"{{users: [{name}], maxapplications: 1}}" for name in ("bob", "eve")]
    (partition,) = load(levels(*limits)).partitions
    above: ChainMap[tuple[str, str], int] = ChainMap({("user", "bob"): 1})
    bare = replace(partition.root, limits=())

    assert limit_applications_fit_levels_above(bare, above, []) is above
    below = limit_applications_fit_levels_above(partition.root.queues[0], above, [])
    assert (below.maps[1] is above.maps[0], below.maps[0]) == (True, {("user", "eve"): 1})
