"""From the submitted user to the user of an application."""

from __future__ import annotations

import pytest

from licorne.model.requests.applications import resolve
from licorne.model.values.users import LookedUp, LookUpFailure, User

INVALID = "invalid username, it contains invalid characters"
FOUND = ("staff", "dev")
FAILED = LookUpFailure("the directory is down")


def resolved(user: str, *groups: str, forced: bool = False, looked_up: LookedUp = FOUND) -> User | str:
    return resolve(user, groups, forced=forced, looked_up=looked_up)


def test_submitted_groups_are_taken_as_they_are() -> None:
    """What was looked up does not count when the RM names the groups."""
    assert User("bob", ("b", "a")) == resolved("bob", "b", "a")


def test_a_user_without_groups_gets_those_that_were_looked_up() -> None:
    """Without submitted groups the look-up decides."""
    assert User("alice", FOUND) == resolved("alice")


def test_a_user_may_be_found_to_be_in_no_group() -> None:
    """No groups is an answer like others, and no failure."""
    assert User("alice") == resolved("alice", looked_up=())


def test_without_a_look_up_a_user_is_in_the_group_of_the_same_name() -> None:
    """A partition without a resolver puts each user into a group of one."""
    assert User("nosuchuser", ("nosuchuser",)) == resolved("nosuchuser", looked_up=None)


def test_no_user_is_refused() -> None:
    """An application needs a user, groups or not."""
    assert ("empty user cannot resolve",) * 2 == (resolved(""), resolved("", "dev"))


def test_a_forced_application_without_user_runs_for_nobody() -> None:
    """A forced application gets a user; what groups came with no user is not believed."""
    assert User("nobody", ("nogroup",)) == resolved("", forced=True)
    assert User("nobody", ("nogroup",)) == resolved("", "admin", forced=True)


def test_a_user_whose_look_up_failed_is_refused() -> None:
    """The words of the failure are the words of the refusal."""
    assert resolved("zed", looked_up=FAILED) == "the directory is down"


def test_a_forced_application_of_an_unknown_user_has_no_group() -> None:
    """A forced application is not refused for want of groups."""
    assert User("zed", ("nogroup",)) == resolved("zed", forced=True, looked_up=FAILED)


def test_a_forced_application_has_its_groups_resolved() -> None:
    """Forced or not, known groups are used."""
    assert User("alice", FOUND) == resolved("alice", forced=True)


@pytest.mark.parametrize("user", ["9digit", "with space", "a$b", "bob\n", "ünal"])
def test_a_submitted_name_must_look_like_one(user: str) -> None:
    """With submitted groups no look-up has found the name, so its characters are checked."""
    assert resolved(user, "dev") == INVALID


@pytest.mark.parametrize("user", ["machine$", "a#b", "a/b", "_under", "al.ice", "system:account:x@y"])
def test_names_of_machines_and_services_are_names(user: str) -> None:
    """Names may have the characters of service accounts, and one dollar sign at the end."""
    assert User(user, ("dev",)) == resolved(user, "dev")


def test_who_was_looked_up_may_have_any_name() -> None:
    """A name that a resolver vouches for is not checked."""
    assert User("DOMAIN\\carol", FOUND) == resolved("DOMAIN\\carol")


def test_a_forced_name_is_checked() -> None:
    """Only for forced applications is a resolved name checked too, as recorded."""
    assert resolved("DOMAIN\\carol", forced=True) == INVALID
