"""Access control lists."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from licorne.model.configuration.names import AccessControlError, AccessControlList
from licorne.model.errors import LicorneError


@pytest.mark.parametrize("text", ["", " "])
def test_an_empty_list_allows_no_user(text: str) -> None:
    """Access is given, never assumed."""
    acl = AccessControlList.parse(text)

    assert AccessControlList() == acl
    assert not acl.allows("bob", ["dev"])
    assert not acl.allows("", [""])


@pytest.mark.parametrize("text", ["*", "* ", " *", "bob *", "* dev", "bob,dan *"])
def test_a_star_as_one_of_the_lists_allows_everyone(text: str) -> None:
    """Whatever the other list says."""
    assert AccessControlList.parse(text).allows("anyone", [])


@pytest.mark.parametrize(
    ("user", "groups", "allowed"),
    [
        ("bob", [], True),
        ("dan", ["x"], True),
        ("eve", ["ops", "dev"], True),
        ("eve", ["x"], False),
        ("dev", [], False),
        ("eve", ["bob"], False),
    ],
)
def test_users_and_groups_are_separate_lists(user: str, groups: list[str], *, allowed: bool) -> None:
    """A user is allowed by name or by any group."""
    assert allowed is AccessControlList.parse("bob,dan dev,qa").allows(user, groups)


def test_a_leading_blank_means_groups_only() -> None:
    """The first list is empty."""
    acl = AccessControlList.parse(" dev")

    assert (frozenset(), frozenset({"dev"})) == (acl.users, acl.groups)


def test_a_trailing_blank_means_users_only() -> None:
    """The second list is empty."""
    acl = AccessControlList.parse("bob ")

    assert (frozenset({"bob"}), frozenset()) == (acl.users, acl.groups)


@pytest.mark.parametrize("text", ["a b c", "a  b", "  ", " a b", "a b ", "a\tb\tc", " * ", "a b\n c"])
def test_a_list_of_more_than_two_parts_is_refused(text: str) -> None:
    """Each single blank separates two parts."""
    with pytest.raises(AccessControlError) as refused:
        AccessControlList.parse(text)

    assert f"multiple spaces found in ACL: {text!r}" == str(refused.value)
    assert isinstance(refused.value, LicorneError)


@pytest.mark.parametrize("name", ["bob", "_x", "a.b", "a@b", "a-b", "machine$", "A9"])
def test_possible_users_are_allowed(name: str) -> None:
    """The signs of user names."""
    assert AccessControlList.parse(name).allows(name, [])


@pytest.mark.parametrize("name", ["9a", "b!b", "system:x", "a$b", "*", "", "é", "a\n"])
def test_impossible_users_are_ignored(name: str) -> None:
    """They are kept for a warning and match no user, not even one called so."""
    acl = AccessControlList.parse(f"bob,{name}")

    assert not acl.allows(name, [])
    assert (name,) == acl.ignored


@pytest.mark.parametrize("name", ["a.b", "a@b", "dev$", "9", "*", "a:b"])
def test_impossible_groups_are_ignored(name: str) -> None:
    """Groups have fewer signs than users; a star among names is no star."""
    acl = AccessControlList.parse(f" dev,{name}")

    assert not acl.allows("bob", [name])
    assert (name,) == acl.ignored


@given(st.text(alphabet="ab*, $\t", max_size=10), st.text(alphabet="ab*", max_size=2))
def test_no_user_is_allowed_who_is_not_named(text: str, user: str) -> None:
    """Unless everyone is; a text that is no list is refused."""
    try:
        acl = AccessControlList.parse(text)
    except AccessControlError:
        acl = AccessControlList()

    named = user in text.partition(" ")[0].split(",")
    assert acl.everyone or named or not acl.allows(user, [])
