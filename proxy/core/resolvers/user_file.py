"""A file with the groups of users, so that a replay or a simulation is the same everywhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import final

from ....model.configuration.problems import RuleFinding
from ...base.files.located_yaml import LocatedYaml, YamlValue, read_located_yaml
from .resolver import UserResolutionError


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
        raise located.error([located.finding([], "expected users with lists of groups")])
    for user, value in located.value.items():
        if not isinstance(value, list):
            findings.append(located.finding([user], f"expected a list of groups, not {value!r}"))
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
            text = f"expected the name of a group, in quotes if need be, not {name!r}"
            yield located.finding([user, index], text)


@final
class StaticResolver:
    """A resolver with a fixed list.

    Args:
        groups: The groups of each user that is known; copied.
    """

    __slots__ = ("_groups",)

    def __init__(self, groups: Mapping[str, Sequence[str]]) -> None:
        self._groups = {user: tuple(names) for user, names in groups.items()}

    def groups_of(self, user: str) -> tuple[str, ...]:
        """Return the groups of the list.

        Raises:
            UserResolutionError: The user is not in the list.
        """
        try:
            return self._groups[user]
        except KeyError:
            raise UserResolutionError(f"user {user!r} is not in the list of users") from None
