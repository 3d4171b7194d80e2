"""Regular expressions in configurations: RE2 syntax, as configurations of the recorded core use it.

The texts that are searched come from strangers: names of users, groups and namespaces. So the matcher is RE2
itself, whose time is linear in the text. That of Python backtracks: `^([a-z0-9]+-?)+$` and a name of 40
letters take it exponential time, in which no other thread runs. While RE2 matches they do.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, final

from ..errors import LicorneError

_SPECIAL: Final = frozenset("^$*+?()[{}|")
_LENGTH_MAX: Final = 10_000
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
    """Return whether a filter entry is meant as a regular expression: a name has none of these characters."""
    return not _SPECIAL.isdisjoint(text)


def compile_pattern(text: str) -> Pattern:
    """Compile an expression.

    Raises:
        PatternError: RE2 refuses the text, its program would be too large, or RE2 is not installed.
    """
    if len(text) > _LENGTH_MAX:
        raise PatternError(f"the regular expression has more than {_LENGTH_MAX} characters")
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
