"""A file with the groups of users, so that a replay or a simulation is the same everywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..files.located_yaml import read_located_yaml
from .static_list import StaticResolver

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ...model.configuration.problems import RuleFinding
    from ..files.located_yaml import LocatedYaml, YamlValue

__all__ = ["read_users"]


def read_users(path: Path) -> StaticResolver:
    """Read a mapping from the name of each user to a list of groups, as YAML or JSON.

    Raises:
        InputError: The file cannot be read.
        ConfigurationError: It is no such mapping; the error has all problems, with their places.
    """
    located = read_located_yaml(path)
    groups: dict[str, list[str]] = {}
    findings: list[RuleFinding] = []
    if not isinstance(located.value, dict):
        raise located.error([located.finding([], "users with lists of groups are wanted")])
    for user, value in located.value.items():
        if not isinstance(value, list):
            findings.append(located.finding([user], f"a list of groups is wanted: {value!r}"))
            continue
        findings += _no_names(located, user, value)
        groups[user] = [name for name in value if isinstance(name, str)]
    if findings:
        raise located.error(findings)
    return StaticResolver(groups)


def _no_names(located: LocatedYaml, user: str, groups: list[YamlValue]) -> Iterator[RuleFinding]:
    """Yield the groups that are no names."""
    for index, name in enumerate(groups):
        if not isinstance(name, str) or not name:
            text = f"the name of a group is wanted, in quotes if need be: {name!r}"
            yield located.finding([user, index], text)
