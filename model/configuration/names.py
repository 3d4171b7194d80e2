"""The syntax of names: of queues, of users and groups in limits, and of placement rules."""

from __future__ import annotations

import re
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
