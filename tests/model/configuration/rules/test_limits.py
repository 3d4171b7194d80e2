"""Rules about the limits of one queue; `§` marks where an error is reported."""

from __future__ import annotations

from typing import Final

import pytest
from support.model.configurations import below_root, errors_at_marks

WILDCARD_ALONE: Final = (
    "should not specify only one group limit that is using the wildcard. "
    "There must be at least one limit with a group name defined"
)
NOTHING_LIMITED: Final = "invalid resource combination for limit x all resource limits are null"


def a_queue_with(*limits: str, queue: str = "") -> str:
    """Return a configuration with one queue that has these limits."""
    return below_root("- name: a\n" + queue + "  limits:\n" + "\n".join(f"  - {limit}" for limit in limits))


@pytest.mark.parametrize("name", ["9bob", "", "bob smith", "b$b", "-bob", "dev*"])
def test_a_limit_names_possible_users(name: str) -> None:
    """Reported at the name."""
    text = a_queue_with(f"{{users: [dan, §'{name}'], maxapplications: 1}}")

    assert [f"invalid limit user name {name!r} in limit definition"] == errors_at_marks(text)


@pytest.mark.parametrize("name", ["9dev", "", "dev@x", "dev$", "dev/ops", "dev#1"])
def test_a_limit_names_possible_groups(name: str) -> None:
    """Groups have fewer signs than users."""
    text = a_queue_with(f"{{groups: [ops, §'{name}'], maxapplications: 1}}")

    assert [f"invalid limit group name {name!r} in limit definition"] == errors_at_marks(text)


@pytest.mark.parametrize(("kind", "key"), [("user", "users"), ("group", "groups")])
def test_a_queue_limits_each_name_once(kind: str, key: str) -> None:
    """In one limit or in two."""
    text = a_queue_with(
        f"{{{key}: [bob, §bob, '*'], maxapplications: 1}}", f"{{{key}: [§'*'], maxapplications: 2}}"
    )

    assert [f"duplicated {kind} name '{name}', already exists" for name in ("bob", "*")] == errors_at_marks(
        text
    )


@pytest.mark.parametrize(("kind", "key"), [("user", "users"), ("group", "groups")])
def test_no_user_is_named_after_the_wildcard(kind: str, key: str) -> None:
    """In the same list or in a later limit."""
    text = a_queue_with(
        f"{{{key}: [ann, '*', §bob], maxapplications: 1}}", f"{{{key}: [§dan], maxapplications: 2}}"
    )

    assert [
        f"should not set no wildcard {kind} {name} after wildcard {kind} limit" for name in ("bob", "dan")
    ] == errors_at_marks(text)


LIMITS: Final[dict[str, tuple[str, ...]]] = {
    "a limit without users and groups is refused": (
        a_queue_with("§{limit: x, maxapplications: 1}", "§{users: [], groups: ~, maxapplications: 1}"),
        "empty user and group lists defined in limit 'x'",
        "empty user and group lists defined in limit ''",
    ),
    "unusual names of users are allowed": (
        a_queue_with("{users: [machine$, bob@x.y, b/c#d:e-f, _x, '*'], maxapplications: 1}"),
    ),
    "unusual names of groups are allowed": (
        a_queue_with("{groups: [dev-x, a.b:c, _y, '*'], maxapplications: 1}"),
    ),
    "a user and a group may have one name": (
        a_queue_with("{users: [bob], groups: [bob], maxapplications: 1}"),
    ),
    "two queues may limit the same name": (
        below_root(
            "- {name: a, limits: [{users: [bob], maxapplications: 1}]}\n"
            "- {name: b, limits: [{users: [bob], maxapplications: 1}]}"
        ),
    ),
    "the wildcard group alone is refused": (
        a_queue_with("{groups: [§'*'], maxapplications: 1}"),
        WILDCARD_ALONE,
    ),
    "the wildcard group without a group before it and a group after it are both refused": (
        a_queue_with("{groups: [§'*'], maxapplications: 1}", "{groups: [§dev], maxapplications: 2}"),
        WILDCARD_ALONE,
        "should not set no wildcard group dev after wildcard group limit",
    ),
    "the wildcard group may follow a group, with limits of users between them": (
        a_queue_with(
            "{groups: [dev], maxapplications: 1}",
            "{users: [bob], maxapplications: 1}",
            "{groups: ['*'], maxapplications: 2}",
        ),
    ),
    **{
        f"resources that are all zero are refused {what}": (
            a_queue_with(f"{{limit: x, users: [bob], maxresources: §{{memory: 0, vcore: 0}}{more}}}"),
            "MaxResources should be greater than zero in 'x' limit",
        )
        for what, more in (("alone", ""), ("with a number of applications", ", maxapplications: 2"))
    },
    "one positive quantity among zeros is enough": (
        a_queue_with("{users: [bob], maxresources: {memory: 0, vcore: 1}}"),
    ),
    "a limit without resources and applications is refused": (
        a_queue_with("§{limit: x, users: [bob]}"),
        NOTHING_LIMITED,
    ),
    "a limit of no applications is refused": (
        a_queue_with("{limit: x, users: [bob], maxapplications: §0}"),
        NOTHING_LIMITED,
    ),
    "a limit may only give a weight": (a_queue_with("{users: [bob, '*'], weight: 1000000}"),),
    **{
        f"a weight of {text!r} is refused": (
            a_queue_with(f"{{limit: x, users: [bob], weight: §{text}}}"),
            f"weight is {text!r} in limit 'x', and must be a number from 1 to 1000000",
        )
        for text in ("0", "-1", "1000001", "heavy", "1.5")
    },
    "a weight of groups alone is refused": (
        a_queue_with("{limit: x, groups: [dev], maxapplications: 1, weight: §2}"),
        "limit 'x' has a weight, and names no user: only users have weights",
    ),
    "a limit of empty resources is refused": (
        a_queue_with("{limit: x, users: [bob], maxresources: §{}}"),
        NOTHING_LIMITED,
    ),
    "resources that cannot be read are not reported as absent too": (
        a_queue_with("{users: [bob], maxresources: {memory: §x, vcore: 0}}"),
        "invalid quantity: 'x'",
    ),
    "a limit has as many applications as its queue, and no more": (
        a_queue_with(
            "{limit: x, users: [bob], maxapplications: §5}",
            "{limit: y, users: [dan], maxapplications: 4}",
            queue="  maxapplications: 4\n",
        ),
        "invalid MaxApplications settings for limit x: 5 exceed the current queue MaxApplications 4",
    ),
    "a limit has as much of the types that its queue limits, and no more": (
        a_queue_with(
            "{limit: x, users: [bob], maxresources: §{memory: 20}}",
            "{limit: y, users: [dan], maxresources: {memory: 10, vcore: 20}}",
            queue="  resources: {max: {memory: 10}}\n",
        ),
        "invalid MaxResources settings for limit x: they exceed the current queue MaxResources",
    ),
}


@pytest.mark.parametrize("case", LIMITS)
def test_limits_of_one_queue_are_checked(case: str) -> None:
    """Each limit alone, with the others and with its queue."""
    text, *said = LIMITS[case]

    assert said == errors_at_marks(text)
