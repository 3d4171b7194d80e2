"""Words in configurations: names of queues, users and groups, true and false, and misspelt ones."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from typing import Final

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
"""Longer words are no typing errors, and comparing them takes long."""
_FLAGS: Final = {
    **dict.fromkeys(("1", "t", "T", "true", "True", "TRUE"), True),
    **dict.fromkeys(("0", "f", "F", "false", "False", "FALSE"), False),
}


def is_queue_name(text: str) -> bool:
    """Return whether a text can be the name of a queue (not its path: there are no dots)."""
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
    """Return the end of a message that names the nearest known word, or nothing when none is near.

    Args:
        word: What was written.
        known: What could have been meant.
        likeness: How similar a word must be, from 0 for any to 1 for the same but for capitals.
    """
    if len(word) > _LENGTH_MAX:
        return ""
    by_spelling = {candidate.lower(): candidate for candidate in known}
    near = difflib.get_close_matches(word.strip().lower(), list(by_spelling), n=1, cutoff=likeness)
    return f"; did you mean {by_spelling[near[0]]!r}?" if near and by_spelling[near[0]] != word else ""


def flag_of(text: str) -> bool | None:
    """Return what a word says, `None` for any other text: the words of Go, as in the recorded core."""
    return _FLAGS.get(text)
