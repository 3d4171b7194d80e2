"""Words in configurations: names of queues, users and groups, flags, access lists, regular expressions.

**An access list** tells who may submit to a queue or administer it. The text is `users[ groups]`: two lists
separated by commas, one blank between them, so a leading blank means that there are only groups. `*` alone,
or as one of the two lists, means everyone. The empty text allows no one.

The recorded core has two definitions of a valid text: its check of configurations folds white space, the
creation of a queue does not, so that a text can be valid and yet fail. Here there is one definition, the
stricter of both: what a configuration accepts also builds, and nothing is accepted that the recorded core
refuses.

**Regular expressions** are in RE2 syntax, as configurations of the recorded core use it. The texts that are
searched come from strangers: names of users, groups and namespaces. So the matcher is RE2 itself, whose time
is linear in the text. The one of Python backtracks: `^([a-z0-9]+-?)+$` and a name of 40 letters take it
exponential time, in which no other thread runs. While RE2 matches, other threads run.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, final

from ..errors import LicorneError

WILDCARD: Final = "*"
"""In limits: every user, or every group, that has no limit by name."""
QUEUE_NAME_RULE: Final = (
    "invalid queue name, max 64 characters consisting of alphanumeric characters and "
    "'-', '_', '#', '@', '/', ':' allowed"
)
_QUEUE: Final = re.compile(r"[a-zA-Z0-9_:#/@-]{1,64}")
_USER: Final = re.compile(r"[_a-zA-Z][a-zA-Z0-9:#/_.@-]*[$]?")
_GROUP: Final = re.compile(r"[_a-zA-Z][a-zA-Z0-9:_.-]*")
_RULE: Final = re.compile(r"[_a-zA-Z][a-zA-Z0-9_]*")
_LENGTH_MAX: Final = 80
"""Longer words are not typing errors, and comparing them takes long."""
_FLAGS: Final = {
    **dict.fromkeys(("1", "t", "T", "true", "True", "TRUE"), True),
    **dict.fromkeys(("0", "f", "F", "false", "False", "FALSE"), False),
}


def is_queue_name(text: str) -> bool:
    """Return whether a text can be the name of a queue (not its path: dots are refused)."""
    return _QUEUE.fullmatch(text) is not None


def is_user_name(text: str) -> bool:
    """Return whether a text can be a user in limits and filters; those of access lists are stricter."""
    return _USER.fullmatch(text) is not None


def is_group_name(text: str) -> bool:
    """Return whether a text can be a group in limits and filters; those of access lists are stricter."""
    return _GROUP.fullmatch(text) is not None


def is_rule_name(text: str) -> bool:
    """Return whether a text can be the name of a placement rule, known or not."""
    return _RULE.fullmatch(text) is not None


def did_you_mean(word: str, known: Sequence[str], *, likeness: float = 0.6) -> str:
    """Return the end of a message that names the nearest known word, or nothing without a near one.

    Args:
        word: The word in the configuration.
        known: The valid words.
        likeness: How similar a word must be, from 0 for any to 1 for the same but for capitals.
    """
    if len(word) > _LENGTH_MAX:
        return ""
    by_spelling = {candidate.lower(): candidate for candidate in known}
    near = difflib.get_close_matches(word.strip().lower(), list(by_spelling), n=1, cutoff=likeness)
    return f"; did you mean {by_spelling[near[0]]!r}?" if near and by_spelling[near[0]] != word else ""


def flag_of(text: str) -> bool | None:
    """Return the meaning of a word, `None` for any other text: the words of Go, as in the recorded core."""
    return _FLAGS.get(text)


_EVERYONE: Final = "*"
_ACL_USER: Final = re.compile(r"[_a-zA-Z][a-zA-Z0-9_.@-]*[$]?")
_ACL_GROUP: Final = re.compile(r"[_a-zA-Z][a-zA-Z0-9_-]*")


class AccessControlError(LicorneError):
    """A text that is not an access control list."""


@final
@dataclass(frozen=True, slots=True)
class AccessControlList:
    """The allowed users and groups; `ignored` are names in the text that can never match anyone."""

    users: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    everyone: bool = False
    ignored: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> AccessControlList:
        """Read the text form.

        Names that cannot be names of users or groups are ignored, and so is `*` among other names. The
        groups are ignored where the users are everyone, the users where the groups are.

        Raises:
            AccessControlError: The text has more than two parts.
        """
        if not text:  # That of most queues.
            return _NO_ONE
        if text.count(" ") > 1 or len(text.split()) > 2:
            raise AccessControlError(f"multiple spaces found in ACL: {text!r}")
        user_text, _, group_text = text.partition(" ")
        if user_text == _EVERYONE:
            return cls(everyone=True, ignored=tuple(_names(group_text)))
        if group_text == _EVERYONE:
            return cls(everyone=True, ignored=tuple(_names(user_text)))
        users, groups = _names(user_text), _names(group_text)
        return cls(
            users=frozenset(name for name in users if _ACL_USER.fullmatch(name)),
            groups=frozenset(name for name in groups if _ACL_GROUP.fullmatch(name)),
            ignored=(
                *(name for name in users if not _ACL_USER.fullmatch(name)),
                *(name for name in groups if not _ACL_GROUP.fullmatch(name)),
            ),
        )

    def allows(self, user: str, groups: Sequence[str]) -> bool:
        """Return whether a user is allowed, by name or by one of the user's groups."""
        return self.everyone or user in self.users or not self.groups.isdisjoint(groups)


_NO_ONE: Final = AccessControlList()


def _names(text: str) -> list[str]:
    """Return the entries of one of the two lists; for an empty text nothing."""
    return text.split(",") if text else []


_SPECIAL: Final = frozenset("^$*+?()[{}|")
_PATTERN_LENGTH_MAX: Final = 10_000
_BYTES_MAX: Final = 128 * 1024
"""The memory of one expression. It bounds its program, and so the time for a character, to some 40 µs."""


class PatternError(LicorneError):
    """A text that is not a regular expression which can be used."""


@final
@dataclass(frozen=True, slots=True)
class Pattern:
    """A compiled expression; two of the same text are equal."""

    text: str
    _compiled: Any = field(repr=False, compare=False)  # RE2 has no types

    def search(self, text: str) -> bool:
        """Return whether some part of a text matches; an expression without anchors may match anywhere."""
        # A lone surrogate has no place in UTF-8, and so in no expression.
        return self._compiled.search(text.encode(errors="replace")) is not None


def is_pattern(text: str) -> bool:
    """Return whether a filter entry is a regular expression: names do not contain its characters."""
    return not _SPECIAL.isdisjoint(text)


def compile_pattern(text: str) -> Pattern:
    """Compile an expression.

    Raises:
        PatternError: RE2 refuses the text, its program would be too large, or RE2 is not installed.
    """
    if len(text) > _PATTERN_LENGTH_MAX:
        raise PatternError(f"the regular expression has more than {_PATTERN_LENGTH_MAX} characters")
    try:
        import re2  # noqa: PLC0415 - there are platforms without it, and most configurations need none
    except ImportError as error:
        raise PatternError(
            f"{text!r} is a regular expression, which needs RE2: pip install google-re2"
        ) from error
    options = re2.Options()
    options.max_mem = _BYTES_MAX
    options.never_capture = True
    options.log_errors = False
    try:
        return Pattern(text, re2.compile(text.encode(), options))
    except re2.error as error:
        said = error.args[0].decode(errors="replace")
        raise PatternError(f"{text!r} is not a regular expression: {said}") from error
    except UnicodeEncodeError as error:
        raise PatternError(f"{text!r} is not a regular expression: it has a lone surrogate") from error
