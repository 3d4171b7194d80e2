"""Texts of errors about values of a scenario: those of pydantic are for programmers."""

from __future__ import annotations

from typing import Final

from pydantic_core import ErrorDetails

_WANTED: Final = {
    "int_type": "expected a whole number",
    "bool_type": "expected true or false",
    "string_type": "expected a text",
    "list_type": "expected a list",
    "dict_type": "expected a mapping",
    "model_type": "expected a mapping",
    "too_short": "expected at least one entry",
    "string_too_short": "expected a text",
    "literal_error": "expected {expected}",
    "greater_than_equal": "expected a number from {ge:,} on",
    "less_than_equal": "expected a number up to {le:,}",
}
_SHOWN_MAX: Final = 60


def text_of(detail: ErrorDetails) -> str:
    """Return the expected kind of a value, and the value that is there."""
    value = detail["input"]
    wanted = _WANTED.get(detail["type"], "expected something else").format(**detail.get("ctx", {}))
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
