"""The ids and keys by which resource managers name things: how long they may be, and of which characters."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["ID_LENGTH_MAX", "id_refusal"]

ID_LENGTH_MAX: Final = 1_024
"""How many characters an id or key may have; Kubernetes needs 253."""
_QUOTED_MAX: Final = 64
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def id_refusal(what: str, text: str) -> str | None:
    """Return why a text is no id, `None` if it is one; whether it may be empty is asked elsewhere.

    Args:
        what: What it is the id of, such as `the id of a node`.
        text: The id.
    """
    if len(text) > ID_LENGTH_MAX:
        return f"{what} has {len(text):,} characters, more than {ID_LENGTH_MAX:,}: {text[:_QUOTED_MAX]!r}..."
    if text.isprintable() or _CONTROL.search(text) is None:
        return None
    shown = repr(text) if len(text) <= _QUOTED_MAX else f"{text[:_QUOTED_MAX]!r}..."
    return f"{what} has control characters: {shown}"
