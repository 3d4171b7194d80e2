"""Rules about the limits of one queue; `§` marks where an error is reported."""

from __future__ import annotations

import pytest
from support.model.configurations import below_root, errors_at_marks, errors_of

WILDCARD_ALONE = (
    "should not specify only one group limit that is using the wildcard. "
    "There must be at least one limit with a group name defined"
)


def a_queue_with(*limits: str, queue: str = "") -> str:
    """Return a configuration with one queue that has these limits."""
    return below_root("- name: a\n" + queue + "  limits:\n" + "\n".join(f"  - {limit}" for limit in limits))


def test_a_limit_is_for_someone() -> None:
    """Reported at the limit."""
    text = a_queue_with("§{limit: x, maxapplications: 1}", "§{users: [], groups: ~, maxapplications: 1}")

    assert [
        "empty user and group lists defined in limit 'x'",
        "empty user and group lists defined in limit ''",
    ] == errors_at_marks(text)


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


@pytest.mark.parametrize(
    "limit", ["users: [machine$, bob@x.y, b/c#d:e-f, _x, '*']", "groups: [dev-x, a.b:c, _y, '*']"]
)
def test_unusual_names_in_limits_are_allowed(limit: str) -> None:
    """Signs that occur in names of users and groups."""
    assert errors_of(a_queue_with(f"{{{limit}, maxapplications: 1}}")) == []


@pytest.mark.parametrize(("kind", "key"), [("user", "users"), ("group", "groups")])
def test_a_queue_limits_each_name_once(kind: str, key: str) -> None:
    """In one limit or in two."""
    text = a_queue_with(
        f"{{{key}: [bob, §bob, '*'], maxapplications: 1}}", f"{{{key}: [§'*'], maxapplications: 2}}"
    )

    assert [
        f"duplicated {kind} name 'bob', already exists",
        f"duplicated {kind} name '*', already exists",
    ] == errors_at_marks(text)


def test_a_user_and_a_group_may_have_one_name() -> None:
    """They are different lists."""
    assert errors_of(a_queue_with("{users: [bob], groups: [bob], maxapplications: 1}")) == []


def test_other_queues_may_limit_the_same_name() -> None:
    """Each queue has its own limits."""
    limits = "limits: [{users: [bob], maxapplications: 1}]"

    assert errors_of(below_root(f"- {{name: a, {limits}}}\n- {{name: b, {limits}}}")) == []


@pytest.mark.parametrize(("kind", "key"), [("user", "users"), ("group", "groups")])
def test_no_user_is_named_after_the_wildcard(kind: str, key: str) -> None:
    """In the same list or in a later limit."""
    text = a_queue_with(
        f"{{{key}: [ann, '*', §bob], maxapplications: 1}}", f"{{{key}: [§dan], maxapplications: 2}}"
    )

    assert [
        f"should not set no wildcard {kind} {name} after wildcard {kind} limit" for name in ("bob", "dan")
    ] == errors_at_marks(text)


def test_the_wildcard_group_is_not_alone() -> None:
    """It comes after a group with a name."""
    assert [WILDCARD_ALONE] == errors_at_marks(a_queue_with("{groups: [§'*'], maxapplications: 1}"))


def test_a_group_after_the_wildcard_group_comes_too_late() -> None:
    """Both are reported: the wildcard that is alone so far, and the name after it."""
    text = a_queue_with("{groups: [§'*'], maxapplications: 1}", "{groups: [§dev], maxapplications: 2}")

    assert [
        WILDCARD_ALONE,
        "should not set no wildcard group dev after wildcard group limit",
    ] == errors_at_marks(text)


def test_the_wildcard_group_may_follow_a_group() -> None:
    """Limits without groups between do not matter."""
    text = a_queue_with(
        "{groups: [dev], maxapplications: 1}",
        "{users: [bob], maxapplications: 1}",
        "{groups: ['*'], maxapplications: 2}",
    )

    assert errors_of(text) == []


@pytest.mark.parametrize("applications", ["", ", maxapplications: 2"])
def test_resources_of_a_limit_are_not_all_zero(applications: str) -> None:
    """That would allow nothing, and is not how a queue is closed."""
    text = a_queue_with(f"{{limit: x, users: [bob], maxresources: §{{memory: 0, vcore: 0}}{applications}}}")

    assert ["MaxResources should be greater than zero in 'x' limit"] == errors_at_marks(text)


def test_some_resources_of_a_limit_may_be_zero() -> None:
    """One positive quantity is enough."""
    assert errors_of(a_queue_with("{users: [bob], maxresources: {memory: 0, vcore: 1}}")) == []


@pytest.mark.parametrize(
    "limit",
    [
        "§{limit: x, users: [bob]}",
        "{limit: x, users: [bob], maxapplications: §0}",
        "{limit: x, users: [bob], maxresources: §{}}",
    ],
)
def test_a_limit_limits_something(limit: str) -> None:
    """Resources, applications or both."""
    assert ["invalid resource combination for limit x all resource limits are null"] == errors_at_marks(
        a_queue_with(limit)
    )


def test_resources_that_cannot_be_read_are_not_reported_as_absent() -> None:
    """One error is reported once."""
    text = a_queue_with("{users: [bob], maxresources: {memory: §x, vcore: 0}}")

    assert ["invalid quantity: 'x'"] == errors_at_marks(text)


def test_a_limit_has_no_more_applications_than_its_queue() -> None:
    """Equal is allowed."""
    text = a_queue_with(
        "{limit: x, users: [bob], maxapplications: §5}",
        "{limit: y, users: [dan], maxapplications: 4}",
        queue="  maxapplications: 4\n",
    )

    assert [
        "invalid MaxApplications settings for limit x: 5 exceed the current queue MaxApplications 4"
    ] == errors_at_marks(text)


def test_a_limit_has_no_more_resources_than_its_queue() -> None:
    """Only types that the queue's maximum names are compared."""
    text = a_queue_with(
        "{limit: x, users: [bob], maxresources: §{memory: 20}}",
        "{limit: y, users: [dan], maxresources: {memory: 10, vcore: 20}}",
        queue="  resources: {max: {memory: 10}}\n",
    )

    assert [
        "invalid MaxResources settings for limit x: they exceed the current queue MaxResources"
    ] == errors_at_marks(text)
