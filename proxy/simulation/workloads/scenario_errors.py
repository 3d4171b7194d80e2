"""Texts of errors about values of a scenario: those of pydantic are for programmers."""

from __future__ import annotations

from typing import Final

from pydantic_core import ErrorDetails

__all__ = ["shown", "text_of"]

_WANTED: Final = {
    "int_type": "a whole number is wanted here",
    "string_type": "a text is wanted here",
    "list_type": "a list is wanted here",
    "dict_type": "a mapping is wanted here",
    "model_type": "a mapping is wanted here",
    "too_short": "at least one entry is wanted here",
    "string_too_short": "a text is wanted here",
    "literal_error": "{expected} is wanted here",
    "greater_than_equal": "a number from {ge:,} on is wanted here",
    "less_than_equal": "a number up to {le:,} is wanted here",
}
_SHOWN_MAX: Final = 60


def text_of(detail: ErrorDetails) -> str:
    """Return the expected kind of a value, and the value that is there."""
    value = detail["input"]
    wanted = _WANTED.get(detail["type"], "something else is wanted here").format(**detail.get("ctx", {}))
    needs_quotes = detail["type"] == "string_type" and isinstance(value, bool | int | float)
    return f"{wanted}, not {shown(value)}" + (": write it in quotes" if needs_quotes else "")


def shown(value: object) -> str:
    """Return a value as it is in the file, or its kind."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    if isinstance(value, dict):
        return "a mapping"
    text = repr(value)
    return text if len(text) <= _SHOWN_MAX else f"{text[: _SHOWN_MAX - 3]}..."
