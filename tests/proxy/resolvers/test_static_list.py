"""The resolver with a fixed list."""

from __future__ import annotations

import pytest

from licorne.proxy.resolvers.resolver import UserResolutionError
from licorne.proxy.resolvers.user_file import StaticResolver


def test_a_user_of_the_list_has_the_groups_of_the_list() -> None:
    """The order is that of the list."""
    assert ("staff", "dev") == StaticResolver({"bob": ["staff", "dev"]}).groups_of("bob")


def test_a_user_who_is_not_in_the_list_is_not_known() -> None:
    """The error names the user."""
    with pytest.raises(UserResolutionError, match=r"^user 'zed' is not in the list of users$"):
        StaticResolver({"bob": ["dev"]}).groups_of("zed")


def test_a_static_list_does_not_follow_the_list_it_was_made_from() -> None:
    """The resolver keeps a copy."""
    source = {"bob": ["dev"]}
    resolver = StaticResolver(source)

    source["bob"].append("admin")

    assert ("dev",) == resolver.groups_of("bob")
