"""From the submitted user to the user of an application."""

from __future__ import annotations

from typing import Final

import pytest

from licorne.model.requests.applications import resolve
from licorne.model.values.messages import LookedUp, LookUpFailure, User

INVALID = "invalid username, it contains invalid characters"
FOUND = ("staff", "dev")
NOBODY = User("nobody", ("nogroup",))
DOWN = "the directory is down"
FAILED = LookUpFailure(DOWN)
EMPTY_USER = "empty user cannot resolve"


# The user and the groups that the RM submits, whether the application is forced, and what was looked up.
RESOLVED: Final = {
    "submitted groups count, not those that were looked up": (
        ("bob", ("b", "a"), False, FOUND),
        User("bob", ("b", "a")),
    ),
    "a user without submitted groups has those that were looked up": (
        ("alice", (), False, FOUND),
        User("alice", FOUND),
    ),
    "a user may be in no group": (("alice", (), False, ()), User("alice")),
    "without a look-up a user is in the group of the same name": (
        ("joe", (), False, None),
        User("joe", ("joe",)),
    ),
    "an application without a user is refused": (("", (), False, FOUND), EMPTY_USER),
    "groups without a user are refused": (("", ("dev",), False, FOUND), EMPTY_USER),
    "a forced application without a user runs for nobody": (("", (), True, FOUND), NOBODY),
    "groups that come without a user are not believed": (("", ("admin",), True, FOUND), NOBODY),
    "a user whose look-up failed is refused with its words": (("zed", (), False, FAILED), DOWN),
    "a forced application of an unknown user has no group": (
        ("zed", (), True, FAILED),
        User("zed", ("nogroup",)),
    ),
    "known groups of a forced application are used": (("alice", (), True, FOUND), User("alice", FOUND)),
    "a user who was looked up may have any name": (("NT\\carol", (), False, FOUND), User("NT\\carol", FOUND)),
    "the name of a forced application is checked, as recorded": (("NT\\carol", (), True, FOUND), INVALID),
}


@pytest.mark.parametrize(("submitted", "expected"), RESOLVED.values(), ids=RESOLVED)
def test_a_user_has_submitted_groups_or_those_that_were_looked_up(
    submitted: tuple[str, tuple[str, ...], bool, LookedUp], expected: User | str
) -> None:
    """Or is refused, with the reason."""
    user, groups, forced, looked_up = submitted

    assert expected == resolve(user, groups, forced=forced, looked_up=looked_up)


@pytest.mark.parametrize("user", ["9digit", "with space", "a$b", "bob\n", "ünal"])
def test_a_submitted_name_must_look_like_one(user: str) -> None:
    """With submitted groups no look-up has found the name, so its characters are checked."""
    assert resolve(user, ("dev",), forced=False, looked_up=FOUND) == INVALID


@pytest.mark.parametrize("user", ["machine$", "a#b", "a/b", "_under", "al.ice", "system:account:x@y"])
def test_names_of_machines_and_services_are_names(user: str) -> None:
    """Names may have the characters of service accounts, and one dollar sign at the end."""
    assert User(user, ("dev",)) == resolve(user, ("dev",), forced=False, looked_up=FOUND)
