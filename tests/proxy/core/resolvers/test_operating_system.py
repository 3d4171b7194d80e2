"""The resolver that asks the operating system: this one."""

from __future__ import annotations

import grp
import os
import pwd
import sys

import pytest

from licorne.proxy.core.resolvers.partition_resolvers import OperatingSystemResolver
from licorne.proxy.core.resolvers.resolver import ResolverSettingsError, UserResolutionError

ROOT = pwd.getpwuid(0)
UNNAMED = 4_000_123_456


def test_the_primary_group_comes_first() -> None:
    """Each system has the user with number 0, whose primary group has a name."""
    assert grp.getgrgid(ROOT.pw_gid).gr_name == OperatingSystemResolver().groups_of(ROOT.pw_name)[0]


def test_all_groups_of_a_user_are_found_and_each_once() -> None:
    """They are those that a process of the user would run with."""
    for account in pwd.getpwall()[:20]:
        numbers = set(os.getgrouplist(account.pw_name, account.pw_gid))
        groups = OperatingSystemResolver().groups_of(account.pw_name)

        assert {grp.getgrgid(number).gr_name for number in numbers} == set(groups)
        assert len(set(groups)) == len(groups)


def test_a_group_without_a_name_is_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """A group that has been deleted still separates its members from others."""
    monkeypatch.setattr(os, "getgrouplist", lambda _, primary: [primary, UNNAMED])

    assert str(UNNAMED) == OperatingSystemResolver().groups_of(ROOT.pw_name)[-1]


@pytest.mark.parametrize("user", ["no-such-user-here", "zero\0byte", "\ud800", ""])
def test_a_user_who_is_not_known_is_refused_by_name(user: str) -> None:
    """Also a text that can be no name at all."""
    with pytest.raises(UserResolutionError) as caught:
        OperatingSystemResolver().groups_of(user)

    assert f"user {user!r} is not known to the operating system" == str(caught.value)


def test_a_system_without_such_databases_cannot_have_the_resolver(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what is missing, when the resolver is made."""
    monkeypatch.setitem(sys.modules, "pwd", None)

    with pytest.raises(ResolverSettingsError, match=r"has no database of users \(module 'pwd'\)"):
        OperatingSystemResolver()
