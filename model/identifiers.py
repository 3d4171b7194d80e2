"""The ids and names that resource managers give to things: how long they may be, and of which characters."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

ID_LENGTH_MAX: Final = 1_024
"""How many characters an id, key or name may have; Kubernetes needs 253."""
_QUOTED_MAX: Final = 64
_DIRECTIONAL: Final = re.compile(r"[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Characters that change the direction of the text around them: a name with one reads as another one."""
UNPRINTABLE: Final = re.compile(rf"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]|{_DIRECTIONAL.pattern}")
"""Control characters, line separators, directional marks, and halves of characters."""


def id_refusal(what: str, text: str) -> str | None:
    """Return why a text is not an id or name, `None` if it is; whether it may be empty is asked elsewhere.

    Args:
        what: The kind of id, such as `the id of a node`.
        text: The id.
    """
    if len(text) > ID_LENGTH_MAX:
        return f"{what} has {len(text):,} characters, more than {ID_LENGTH_MAX:,}: {text[:_QUOTED_MAX]!r}..."
    found = None if text.isprintable() else UNPRINTABLE.search(text)
    if found is None:
        return None
    which = "directional marks" if _DIRECTIONAL.fullmatch(found[0]) else "control characters"
    shown = ascii(text) if len(text) <= _QUOTED_MAX else f"{text[:_QUOTED_MAX]!a}..."
    return f"{what} has {which}: {shown}"


def names_refusal(what: str, names: Iterable[str]) -> str | None:
    """Return why one of some texts is not a name, `None` if all are.

    Args:
        what: The kind of name, such as `a resource type of the ask`.
        names: The names, such as the keys of a mapping; they are walked twice.
    """
    joined = "".join(names)
    if len(joined) <= ID_LENGTH_MAX and joined.isprintable():  # Of all of them at once: an ask has some.
        return None
    for name in names:
        refusal = id_refusal(what, name)
        if refusal is not None:
            return refusal
    return None
