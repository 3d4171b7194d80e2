r"""The name of a group, from the value that a directory has for it.

A directory lists the groups of a user as distinguished names: `CN=dev,OU=groups,DC=example,DC=com`. The
name of the group is the value of `CN` in the first component, whatever the case of the letters. The recorded
core looked for `CN=` in capitals and crashed where there was none; here a component that is no common name,
such as `ou=…`, is no group. A value without an equals sign is a plain name and taken as it is.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["group_name"]

_PLAIN: Final = re.compile(r"[^=\\,+]+")
_COMMON_NAME: Final = re.compile(
    r"""(?:[A-Za-z0-9.-]+ \s* = \s* (?:\\. | [^\\,+])* \+ \s*)*?   # other parts of the first component
        (?:cn | 2\.5\.4\.3) \s* = \s*
        (?P<value> (?:\\. | [^\\,+])*)
        (?: [,+] | \Z)""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
_ESCAPED: Final = re.compile(r"(?:\\[0-9A-Fa-f]{2})+|\\.|(?<!\\) +\Z", re.DOTALL)


def group_name(value: str) -> str | None:
    """Return the name of a group, `None` if the value names none."""
    value = value.strip()
    if _PLAIN.fullmatch(value):
        return value
    match = _COMMON_NAME.match(value)
    name = _unescaped(match["value"]) if match else ""
    return name or None


def _unescaped(value: str) -> str:
    r"""Resolve `\,` and the bytes of `\C3\BC`; blanks at the end count only where they are escaped."""

    def character(match: re.Match[str]) -> str:
        text = match[0]
        if not text.startswith("\\"):
            return ""
        if len(text) == 2:
            return text[1]
        return bytes.fromhex(text.replace("\\", "")).decode("utf-8", "replace")

    return _ESCAPED.sub(character, value)
