"""Rules for two locks of one class in one execution: by path, by key, by try only, or never.

A rule gets two different instances, the one that is held and the one that is requested, and returns what is
wrong, or nothing. A rule that allows waiting has to be a strict order of the keys: then there is no
deadlock within the class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

from ..findings.foreign import shown


class SameRule(Protocol):
    """A rule for locks of one class that are held together."""

    @property
    def nests(self) -> bool:
        """Whether one instance may be waited for while another one is held."""

    def describe(self, name: str) -> str:
        """Return the rule of a class as one sentence."""

    def objection(self, held: object, wanted: object) -> str | None:
        """Return what is wrong with holding one key and wanting another, or `None`."""


@dataclass(frozen=True, slots=True)
class _TreeRule:
    what: str
    separator: str
    siblings: bool
    nests: bool = True

    def describe(self, name: str) -> str:
        others = f"unrelated ones by {self.what}" if self.siblings else "unrelated ones never together"
        return f"Of two {name} locks the ancestor's comes first, by {self.what}; {others}."

    def objection(self, held: object, wanted: object) -> str | None:
        if not isinstance(held, str) or not isinstance(wanted, str):
            return _missing(self.what, held, wanted)
        if wanted.startswith(held + self.separator):
            return None
        outer, inner = held.split(self.separator), wanted.split(self.separator)
        if outer[: len(inner)] == inner:
            return f"{wanted} is above {held}, not below it"
        if not self.siblings:
            return f"{wanted} is not below {held}"
        return None if outer < inner else f"{wanted} comes before {held}"


@dataclass(frozen=True, slots=True)
class _Key:
    what: str
    nests: bool = True

    def describe(self, name: str) -> str:
        return f"Of two {name} locks the one with the smaller {self.what} comes first."

    def objection(self, held: object, wanted: object) -> str | None:
        if held is None or wanted is None:
            return _missing(self.what, held, wanted)
        try:
            smaller = bool(held < wanted)  # type: ignore[operator] # what cannot be compared is reported
        except TypeError:
            return f"{shown(held, repr)} and {shown(wanted, repr)} cannot be compared"
        return None if smaller else f"{shown(wanted, repr)} does not come after {shown(held, repr)}"


@dataclass(frozen=True, slots=True)
class _Never:
    advice: str
    nests: bool = False

    def describe(self, name: str) -> str:
        return f"While one {name} lock is held, {self.advice}."

    def objection(self, held: object, wanted: object) -> str | None:
        return f"{shown(held, repr)} is held and {shown(wanted, repr)} is requested, but {self.advice}"


FORBID: Final[SameRule] = _Never("no other one is taken")
TRY_ONLY: Final[SameRule] = _Never("another one is only tried, never waited for")


def tree(what: str = "path", *, separator: str = ".", siblings: bool = False) -> SameRule:
    """Return the rule "ancestor before descendant"; the keys of the locks are their paths.

    Args:
        what: the name of the paths in messages.
        separator: the text between the names of a path.
        siblings: whether unrelated ones may be held together too, in the order of their paths.
    """
    return _TreeRule(what, separator, siblings)


def key(what: str = "key") -> SameRule:
    """Return the rule "smaller key first"."""
    return _Key(what)


def try_only() -> SameRule:
    """Return the rule that a second one may be tried but never waited for."""
    return TRY_ONLY


def forbid() -> SameRule:
    """Return the rule that two are never held together; it is the default."""
    return FORBID


def _missing(what: str, held: object, wanted: object) -> str:
    return f"a {what} is missing: {shown(held, repr)} is held, {shown(wanted, repr)} is requested"
