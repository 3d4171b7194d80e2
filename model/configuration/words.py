"""The word that a misspelt one probably means."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Final

_LENGTH_MAX: Final = 80
"""Longer words are no typing errors, and comparing them takes long."""


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
