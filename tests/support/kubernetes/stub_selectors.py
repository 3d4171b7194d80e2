"""Selectors of labels and fields, as requests to an API server have them."""

from __future__ import annotations

from collections.abc import Callable

from support.kubernetes.stub_store import Document

__all__ = ["matching"]


def matching(labels: str, fields: str) -> Callable[[Document], bool]:
    """Return whether an object matches: `a=b`, `a!=b`, `a`, `!a` of labels, the first two of fields."""
    conditions = [_label_condition(text) for text in labels.split(",") if text]
    conditions += [_comparison(text, _field) for text in fields.split(",") if text]
    return lambda document: all(holds(document) for holds in conditions)


def _label_condition(text: str) -> Callable[[Document], bool]:
    if "=" in text:
        return _comparison(text, _label)
    name, is_there = text.removeprefix("!"), not text.startswith("!")
    return lambda document: (_label(document, name) is not None) is is_there


def _comparison(text: str, value: Callable[[Document, str], str | None]) -> Callable[[Document], bool]:
    """Return whether a value is equal, or is not."""
    name, _, wanted = text.replace("==", "=").partition("=")
    if name.endswith("!"):
        return lambda document: value(document, name[:-1]) != wanted
    return lambda document: value(document, name) == wanted


def _label(document: Document, name: str) -> str | None:
    found: str | None = document["metadata"].get("labels", {}).get(name)
    return found


def _field(document: Document, way: str) -> str:
    """Return a field, an empty text if it is missing."""
    value = document
    for step in way.split("."):
        value = value.get(step, {})
    return value if isinstance(value, str) else ""
