"""Which texts of a request are secrets, by the names they have: a recording never holds those."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["is_secret", "without_secrets"]

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_SECRET_WORDS: Final = frozenset(
    {"apikey", "credential", "credentials", "key", "passphrase", "passwd", "password", "secret", "token"}
) | {"keys", "passwords", "pwd", "secrets", "tokens"}
_KEYS_KEPT: Final = 10_000
"""For how many names the answer is kept; those that requests use are few."""


@lru_cache(_KEYS_KEPT)
def is_secret(name: str) -> bool:
    """Return whether a value may be a secret: one word of its name is `password`, `token`, `key`, ..."""
    return any(word.lower() in _SECRET_WORDS for word in _WORD.findall(name))


def without_secrets(texts: Mapping[str, str]) -> Mapping[str, str]:
    """Return the texts with an empty one in the place of each that may be a secret."""
    if not any(map(is_secret, texts)):
        return texts
    return {name: "" if is_secret(name) else text for name, text in texts.items()}
