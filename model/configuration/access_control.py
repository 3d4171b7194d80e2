"""Access control: who may submit to a queue or administer it, as the short text in its configuration says.

The text is `users[ groups]`: two lists separated by commas, one blank between them, so a leading blank means
that there are only groups. `*` alone, or as one of the two lists, means everyone. The empty text allows
no one.

The recorded core has two definitions of a valid text: its check of configurations folds white space, the
creation of a queue does not, so that a text can be valid and yet fail. Here there is one definition, the
stricter of both: what a configuration accepts also builds, and nothing is accepted that the recorded core
refuses.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

from ..errors import LicorneError

_EVERYONE: Final = "*"
_USER: Final = re.compile(r"[_a-zA-Z][a-zA-Z0-9_.@-]*[$]?")
_GROUP: Final = re.compile(r"[_a-zA-Z][a-zA-Z0-9_-]*")


class AccessControlError(LicorneError):
    """A text that is no access control list."""


@final
@dataclass(frozen=True, slots=True)
class AccessControlList:
    """Who is allowed; `ignored` are the names in the text that can never match anyone."""

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
            users=frozenset(name for name in users if _USER.fullmatch(name)),
            groups=frozenset(name for name in groups if _GROUP.fullmatch(name)),
            ignored=(
                *(name for name in users if not _USER.fullmatch(name)),
                *(name for name in groups if not _GROUP.fullmatch(name)),
            ),
        )

    def allows(self, user: str, groups: Sequence[str]) -> bool:
        """Return whether a user is allowed, by name or by one of the user's groups."""
        return self.everyone or user in self.users or not self.groups.isdisjoint(groups)


_NO_ONE: Final = AccessControlList()


def _names(text: str) -> list[str]:
    """Return the entries of one of the two lists; an empty text has none."""
    return text.split(",") if text else []
