r"""Regular expressions in placement filters: RE2 syntax, as configurations of the recorded core use it.

Python's expressions have more: look-around, back-references, possessive repeats. These are refused here,
because the recorded core refuses the configuration, and because an expression would mean something else
there. Syntax that only RE2 has is translated. Two parts of RE2 are not supported: Unicode classes (`\pL`) and
flags in the middle of an expression.
"""

from __future__ import annotations

import re
from typing import Final

from ..errors import LicorneError

__all__ = ["PatternError", "compile_pattern", "is_pattern"]

_SPECIAL: Final = frozenset("^$*+?()[{}|")
_REPEAT: Final = re.compile(r"\{([0-9]+)(,([0-9]*))?\}")
_GROUP: Final = re.compile(r"\(\?(?:P?<[A-Za-z_][A-Za-z0-9_]*>|[ims]*(?:-[ims]+)?:)")
_LEADING_FLAGS: Final = re.compile(r"\(\?[ims]+\)")
_ESCAPE: Final = re.compile(
    r"\\(?:x[0-9A-Fa-f]{2}|x\{[0-9A-Fa-f]{1,6}\}|[AbBdDsSwWafnrtvz]|[^A-Za-z0-9])", re.DOTALL
)
_CLASS_NAME: Final = re.compile(r"\[:(\^?)([a-z]+):\]")
_REPEAT_MAX: Final = 1000
_LENGTH_MAX: Final = 10_000

_CLASSES: Final = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7F",
    "blank": r"\t ",
    "cntrl": r"\x00-\x1F\x7F",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\n\v\f\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}


class PatternError(LicorneError):
    """A text that is no supported regular expression."""


def is_pattern(text: str) -> bool:
    """Return whether a filter entry is meant as a regular expression: a name has none of these characters."""
    return not _SPECIAL.isdisjoint(text)


def compile_pattern(text: str) -> re.Pattern[str]:
    """Compile an expression; search with it, it is not anchored.

    Raises:
        PatternError: The text is no RE2 expression, or uses what is not supported here.
    """
    if len(text) > _LENGTH_MAX:
        raise PatternError(f"the regular expression has more than {_LENGTH_MAX} characters")
    try:
        return re.compile(_Translation(text).run(), re.ASCII)
    except (re.error, OverflowError, RecursionError) as error:
        raise PatternError(f"{text!r} is no regular expression: {error}") from error


class _Translation:
    """One walk over an expression, from RE2's syntax to Python's."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._done: list[str] = []
        self._after_repeat = False

    def run(self) -> str:
        flags = _LEADING_FLAGS.match(self._text)
        if flags:
            self._take(flags[0])
        while self._at < len(self._text):
            self._step(self._text[self._at])
        return "".join(self._done)

    def _take(self, source: str, translated: str | None = None) -> None:
        self._at += len(source)
        self._done.append(source if translated is None else translated)

    def _match(self, pattern: re.Pattern[str], problem: str) -> re.Match[str]:
        found = pattern.match(self._text, self._at)
        if found is None:
            raise PatternError(f"{self._text!r} is no regular expression: {problem} at position {self._at}")
        return found

    def _step(self, character: str) -> None:
        repeated, self._after_repeat = self._after_repeat, False
        match character:
            case "\\":
                self._escape()
            case "[":
                self._class()
            case "(" if self._text.startswith("(?", self._at):
                group = self._match(_GROUP, "unknown kind of group")[0]
                self._take(group, group.replace("(?<", "(?P<"))
            case "$" if not self._is_multiline():
                self._take("$", r"\Z")
            case "*" | "+" | "?" | "{":
                self._repeat(character, repeated)
            case _:
                self._take(character)

    def _is_multiline(self) -> bool:
        return "(?" in self._text and re.search(r"\(\?[is]*m", self._text) is not None

    def _escape(self) -> None:
        if self._text.startswith(r"\Q", self._at):
            quoted = self._text[self._at + 2 :].partition(r"\E")[0]
            self._at += 2 + len(quoted) + 2
            self._done.append(re.escape(quoted))
            return
        escape = self._match(_ESCAPE, "unknown escape")[0]
        self._take(escape, _python_escape(escape))

    def _repeat(self, character: str, repeated: bool) -> None:  # noqa: FBT001 - what stood before
        bounds = _REPEAT.match(self._text, self._at)
        if character == "{" and bounds is None:
            self._take("{", r"\{")
            return
        # A question mark after a repeat makes it lazy, anything else would repeat a repeat.
        if repeated and character != "?":
            raise PatternError(f"{self._text!r} is no regular expression: a repeat of a repeat")
        if bounds and any(
            len(bound) > 4 or int(bound or "0") > _REPEAT_MAX for bound in bounds.group(1, 3) if bound
        ):
            raise PatternError(f"{self._text!r} repeats more than {_REPEAT_MAX} times")
        self._take(bounds[0] if bounds and character == "{" else character)
        self._after_repeat = not (repeated and character == "?")

    def _class(self) -> None:
        start = re.compile(r"\[\^?\]?").match(self._text, self._at)
        assert start is not None, "a class begins with a bracket"
        self._take(start[0], start[0].replace("]", r"\]"))
        if self._text.startswith("--", self._at):
            self._take("-", r"\-")
        while self._at < len(self._text):
            character = self._text[self._at]
            if character == "]":
                self._take("]")
                return
            self._class_member(character)
        raise PatternError(f"{self._text!r} is no regular expression: a bracket is not closed")

    def _class_member(self, character: str) -> None:
        if character == "\\":
            escape = self._match(_ESCAPE, "unknown escape")[0]
            self._take(escape, _python_escape(escape))
        elif self._text.startswith("[:", self._at):
            named = self._match(_CLASS_NAME, "unknown class")
            members = _CLASSES.get(named[2])
            if members is None or named[1]:
                raise PatternError(
                    f"{self._text!r} is no regular expression: the class {named[0]} is not known"
                )
            self._take(named[0], members)
        elif character in "[&|~":
            # Python reserves these in classes for a later meaning and warns until then.
            self._take(character, f"\\{character}")
        elif self._text.startswith("--", self._at):
            self._take("--", r"-\-")
        else:
            self._take(character)


def _python_escape(escape: str) -> str:
    """Return an escape as Python writes it."""
    if escape == r"\z":
        return r"\Z"
    if escape.startswith(r"\x{"):
        code = int(escape[3:-1], 16)
        if code > 0x10FFFF:
            raise PatternError(f"{escape} is no character")
        return f"\\U{code:08x}"
    return escape
