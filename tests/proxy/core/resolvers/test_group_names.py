"""From the distinguished name of a group to its name."""

from __future__ import annotations

import time

import pytest

from licorne.proxy.core.resolvers.ldap import group_name


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("CN=dev,OU=groups,DC=example,DC=com", "dev"),
        ("cn=dev,ou=groups,dc=example,dc=com", "dev"),
        ("Cn = dev , ou=groups", "dev"),
        ("2.5.4.3=dev,ou=groups", "dev"),
        ("cn=dev", "dev"),
        ("cn=Domain Users,cn=Users,dc=example", "Domain Users"),
        ("ou=x+cn=dev,dc=example", "dev"),
        ("cn=dev+ou=x,dc=example", "dev"),
        (r"cn=Smith\, Joe,dc=example", "Smith, Joe"),
        (r"cn=M\C3\BCller,dc=example", "Müller"),
        (r"cn=a\+b\=c,dc=example", "a+b=c"),
        ("cn=a=b,dc=example", "a=b"),
        ("cn=end\\ ,dc=example", "end "),
        ("cn=end\\   ,dc=example", "end "),
        ("cn=two  blanks  ,dc=example", "two  blanks"),
        ("ou = x + cn = dev ,dc=example", "dev"),
        ("dev", "dev"),
        (" Domain Users ", "Domain Users"),
    ],
)
def test_the_first_component_names_the_group(value: str, name: str) -> None:
    """Whatever the case of its type, with escaped characters resolved; a plain name is a name."""
    assert name == group_name(value)


@pytest.mark.parametrize(
    "value",
    [
        *("ou=dev,dc=example", "uid=dev", "", "cn=", "cn=,dc=x", "=x", ",", "xcn=dev"),
        "ou=people,cn=dev,dc=example",  # A folder that is called like a group.
    ],
)
def test_what_is_no_common_name_is_no_group(value: str) -> None:
    """Only the first component counts; the recorded core crashed on these."""
    assert group_name(value) is None


@pytest.mark.parametrize("value", ["a=    +" * 40, "cn=" + " " * 5_000 + "\\", "cn=x" + " " * 5_000 + "x\\,"])
def test_no_name_takes_long(value: str) -> None:
    """A directory is written by many: a value that could be matched in many ways would stop all threads."""
    began = time.thread_time()
    group_name(value)

    assert time.thread_time() - began < 1
