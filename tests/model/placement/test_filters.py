"""Filters of placement rules."""

from __future__ import annotations

import pytest

from licorne.model.configuration.schema import FilterConfig
from licorne.model.placement.filters import Filter
from licorne.model.values.users import User
from licorne.proxy.documents.rules import filter_document

BOB = User("bob", ("x", "dev"))


def a_filter(kind: str = "", *, users: tuple[str, ...] = (), groups: tuple[str, ...] = ()) -> Filter:
    return Filter.of(FilterConfig(type=kind, users=users, groups=groups))


@pytest.mark.parametrize("kind", ["", "allow"])
def test_an_empty_filter_lets_everybody_through(kind: str) -> None:
    """Without users and groups there is nothing to fail."""
    assert a_filter(kind).admits(BOB)


def test_an_empty_deny_filter_admits_no_user() -> None:
    """Denying without saying whom denies everybody."""
    assert not a_filter("deny").admits(BOB)


def test_an_allow_filter_is_for_the_listed_users() -> None:
    """Listed users pass, and no others."""
    users = a_filter("allow", users=("bob", "carol"))

    assert [True, False] == [users.admits(BOB), users.admits(User("bobby"))]


def test_a_deny_filter_is_for_all_but_the_listed_users() -> None:
    """Who is listed does not pass, everybody else does."""
    users = a_filter("deny", users=("bob", "carol"))

    assert [False, True] == [users.admits(BOB), users.admits(User("dan"))]


def test_any_group_of_a_user_counts() -> None:
    """A user passes by a group that is not the first."""
    groups = a_filter(groups=("dev", "ops"))

    assert [True, False] == [groups.admits(BOB), groups.admits(User("dan", ("devs",)))]


def test_one_name_is_enough_of_a_list() -> None:
    """A single entry without special characters is a name, and is matched in full."""
    users = a_filter(users=("bob",))

    assert [True, False] == [users.admits(BOB), users.admits(User("bobby"))]


def test_a_single_entry_with_special_characters_is_an_expression() -> None:
    """An expression matches any part of the name, unless it says otherwise."""
    users = a_filter(users=("b+",))

    assert [True, False] == [users.admits(User("xbx")), users.admits(User("dan"))]


def test_an_expression_is_written_as_in_the_recorded_core() -> None:
    """Expressions are those of RE2, and are shown as they are written."""
    users = a_filter(users=("^[[:alpha:]]+$",))

    assert [True, False] == [users.admits(BOB), users.admits(User("b0b"))]
    assert {"type": "allow", "userExp": "^[[:alpha:]]+$"} == filter_document(users)


def test_groups_may_be_an_expression_too() -> None:
    """The expression of the groups is tried on each group."""
    groups = a_filter(groups=("^dev[0-9]+",))

    assert [True, False] == [groups.admits(User("dan", ("x", "dev1"))), groups.admits(BOB)]


def test_two_entries_are_names_whatever_they_look_like() -> None:
    """Entries that are no names are skipped, the others count."""
    users = a_filter(users=("b.*", "bob"))

    assert [True, False] == [users.admits(BOB), users.admits(User("bab"))]


def test_a_list_of_nothing_but_bad_names_matches_no_user() -> None:
    """A filter with names is not empty, even if no user can have such a name."""
    assert not a_filter(users=("b b", "!x")).admits(BOB)


def test_an_expression_that_cannot_be_read_matches_no_user() -> None:
    """The star alone is such an expression."""
    assert not a_filter(users=("*",)).admits(BOB)


@pytest.mark.parametrize("kind", ["Deny", "DENY", "ALLOW"])
def test_only_the_exact_word_denies(kind: str) -> None:
    """Any other spelling allows, as recorded (placement/filter-odd)."""
    assert a_filter(kind, users=("bob",)).admits(BOB)


def test_the_document_shows_names_and_expressions() -> None:
    """Names are listed in order, expressions as written."""
    lists = a_filter(users=("bob", "alice"), groups=("dev",))
    expressions = a_filter("deny", users=("^bad.*",), groups=("x|y",))

    assert {"type": "allow", "userList": ["alice", "bob"], "groupList": ["dev"]} == filter_document(lists)
    assert {"type": "deny", "userExp": "^bad.*", "groupExp": "x|y"} == filter_document(expressions)
