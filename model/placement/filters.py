"""The filter of a placement rule: for which users and groups the rule applies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..configuration.names import is_group_name, is_user_name
from ..configuration.patterns import Pattern, PatternError, compile_pattern, is_pattern
from ..configuration.schema import FilterConfig
from ..values.users import User


@dataclass(frozen=True, slots=True)
class FilterNames:
    """The users, or the groups, of a filter: names, or one expression that a part of the name matches."""

    names: frozenset[str] = frozenset()
    expression: Pattern | None = None

    @staticmethod
    def of(entries: tuple[str, ...], is_name: Callable[[str], bool]) -> FilterNames:
        """Read the entries; a single one may be an expression, and an invalid name matches no user."""
        if len(entries) == 1 and is_pattern(entries[0]):
            return FilterNames(expression=_compiled(entries[0]))
        return FilterNames(names=frozenset(entry for entry in entries if is_name(entry)))

    def match(self, name: str) -> bool:
        """Return whether a name is meant."""
        return name in self.names or (self.expression is not None and self.expression.search(name))


@dataclass(frozen=True, slots=True)
class Filter:
    """The users and groups that a rule applies to.

    Attributes:
        allow: The rule applies to users that match, and not to others; if false, the reverse.
        is_empty: No user and no group is listed: all users pass an allow filter and none a deny filter.
    """

    allow: bool = True
    is_empty: bool = True
    users: FilterNames = FilterNames()
    groups: FilterNames = FilterNames()

    @staticmethod
    def of(config: FilterConfig) -> Filter:
        """Read a filter of the configuration.

        Only the exact text `deny` denies. `Deny` passes the check of the configuration and allows: odd, but
        recorded (transcript placement/filter-odd), and rules below it may count on it.
        """
        return Filter(
            allow=config.type != "deny",
            is_empty=not (config.users or config.groups),
            users=FilterNames.of(config.users, is_user_name),
            groups=FilterNames.of(config.groups, is_group_name),
        )

    def admits(self, user: User) -> bool:
        """Return whether the rule applies to a user: by name or by any group."""
        if self.is_empty:
            return self.allow
        matched = self.users.match(user.name) or any(self.groups.match(group) for group in user.groups)
        return matched is self.allow


def _compiled(text: str) -> Pattern | None:
    """Return the expression; an invalid one matches no name, and the configuration refuses it."""
    try:
        return compile_pattern(text)
    except PatternError:
        return None
