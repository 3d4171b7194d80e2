"""Filters of placement rules."""

from __future__ import annotations

from typing import Final

import pytest

from licorne.model.configuration.schema import FilterConfig
from licorne.model.placement.rules import Filter
from licorne.model.values.messages import User
from licorne.proxy.core.documents.queues import filter_document

BOB = User("bob", ("x", "dev"))


def a_filter(kind: str = "", *, users: tuple[str, ...] = (), groups: tuple[str, ...] = ()) -> Filter:
    return Filter.of(FilterConfig(type=kind, users=users, groups=groups))


FILTERS: Final = {
    "an empty filter admits everybody": (a_filter(""), [BOB], []),
    "an empty filter that allows admits everybody": (a_filter("allow"), [BOB], []),
    "an empty filter that denies admits no user": (a_filter("deny"), [], [BOB]),
    "listed users are allowed, and no others": (
        a_filter("allow", users=("bob", "carol")),
        [BOB],
        [User("bobby")],
    ),
    "all but the listed users pass a filter that denies": (
        a_filter("deny", users=("bob", "carol")),
        [User("dan")],
        [BOB],
    ),
    "a group that is not the first of a user counts": (
        a_filter(groups=("dev", "ops")),
        [BOB],
        [User("dan", ("devs",))],
    ),
    "a single entry without special characters is matched in full": (
        a_filter(users=("bob",)),
        [BOB],
        [User("bobby")],
    ),
    "an expression matches any part of the name": (a_filter(users=("b+",)), [User("xbx")], [User("dan")]),
    "expressions are those of RE2, as in the recorded core": (
        a_filter(users=("^[[:alpha:]]+$",)),
        [BOB],
        [User("b0b")],
    ),
    "the expression of the groups is tried on each group": (
        a_filter(groups=("^dev[0-9]+",)),
        [User("dan", ("x", "dev1"))],
        [BOB],
    ),
    "entries of two that are no names are skipped": (a_filter(users=("b.*", "bob")), [BOB], [User("bab")]),
    "a list of nothing but bad names matches no user": (a_filter(users=("b b", "!x")), [], [BOB]),
    "an expression that cannot be read matches no user": (a_filter(users=("*",)), [], [BOB]),
    **{
        f"only the exact word denies: {kind} allows, as recorded": (a_filter(kind, users=("bob",)), [BOB], [])
        for kind in ("Deny", "DENY", "ALLOW")
    },
}


@pytest.mark.parametrize(("tried", "admitted", "refused"), FILTERS.values(), ids=FILTERS)
def test_a_filter_admits_users_by_name_or_group(
    tried: Filter, admitted: list[User], refused: list[User]
) -> None:
    """It allows unless it says that it denies."""
    assert admitted == [user for user in admitted + refused if tried.admits(user)]


def test_the_document_shows_names_and_expressions() -> None:
    """Names are listed in order, expressions as written."""
    lists = a_filter(users=("bob", "alice"), groups=("dev",))
    expressions = a_filter("deny", users=("^[[:alpha:]]+$",), groups=("x|y",))

    assert {"type": "allow", "userList": ["alice", "bob"], "groupList": ["dev"]} == filter_document(lists)
    assert {"type": "deny", "userExp": "^[[:alpha:]]+$", "groupExp": "x|y"} == filter_document(expressions)
