"""Words for true and false in settings, tags and variables of the environment; YAML has words of its own."""

from __future__ import annotations

from typing import Final

_FLAGS: Final = {
    **dict.fromkeys(("1", "t", "T", "true", "True", "TRUE"), True),
    **dict.fromkeys(("0", "f", "F", "false", "False", "FALSE"), False),
}


def flag_of(text: str) -> bool | None:
    """Return what a word says, `None` for any other text: the words of Go, as in the recorded core."""
    return _FLAGS.get(text)
