"""From nodes to documents, whatever errors they have: errors are noted, everything else is read."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from ..documents import Reading, SchedulerDocument
from ..positions import NOWHERE, Position
from ..problems import RuleFinding
from ..words import did_you_mean
from .nodes import MappingNode, Node, ScalarNode, ScalarTag, SequenceNode, key_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic_core import ErrorDetails

__all__ = ["read_document"]

_UNKNOWN_KEY: Final = "extra_forbidden"
_NOTHING: Final = ScalarNode("", ScalarTag.NULL, NOWHERE)


def read_document(
    node: Node | None, errors: list[RuleFinding], warnings: list[RuleFinding]
) -> SchedulerDocument:
    """Read the document of a file.

    A value of the wrong kind is noted in `errors` and read as null, an unknown key is noted and left out. So
    the rules about values can be applied to everything else.

    Args:
        node: The top node, or `None` for a file without a document.
        errors: Findings that make the configuration unusable are appended here.
        warnings: Findings about spellings are appended here.
    """
    top: Node = node or _NOTHING
    reading = Reading()
    try:
        document = SchedulerDocument.model_validate(top, context=reading)
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False)
        errors.extend(_finding(top, detail, reading) for detail in details)
        top = _without(top, [(detail["loc"], detail["type"] == _UNKNOWN_KEY) for detail in details])
        reading = Reading()
        document = SchedulerDocument.model_validate(top, context=reading)
    warnings.extend(reading.warnings)
    return document


def _finding(top: Node, detail: ErrorDetails, reading: Reading) -> RuleFinding:
    """Return the finding about an error, with its position."""
    way = detail["loc"]
    if detail["type"] != _UNKNOWN_KEY:
        return RuleFinding(_follow(top, way).position, detail["msg"])
    owner, key = _follow(top, way[:-1]), str(way[-1])
    known = reading.known_keys.get(id(owner), ())
    where = owner.entries[key].key_position if isinstance(owner, MappingNode) else owner.position
    position = Position(where.line, where.column, key_path(owner.position.path, key))
    return RuleFinding(position, f"unknown key {key!r}{did_you_mean(key, known)}")


def _follow(node: Node, way: Sequence[int | str]) -> Node:
    """Return the node at a path of keys and indices."""
    for step in way:
        if isinstance(node, SequenceNode):
            node = node.items[int(step)]
        elif isinstance(node, MappingNode):
            node = node.entries[str(step)].value
    return node


def _without(node: Node, ways: Sequence[tuple[Sequence[int | str], bool]]) -> Node:
    """Return a node in which the values at the paths are null, or removed when their keys are unknown."""
    if any(not way and not gone for way, gone in ways):
        return node.emptied()
    by_step: dict[int | str, list[tuple[Sequence[int | str], bool]]] = {}
    for way, gone in ways:
        by_step.setdefault(way[0], []).append((way[1:], gone))
    if isinstance(node, SequenceNode):
        items = (_without(item, by_step.get(index, ())) for index, item in enumerate(node.items))
        return replace(node, items=tuple(items))
    if isinstance(node, MappingNode):
        gone_keys = {step for step, rest in by_step.items() if any(not way and gone for way, gone in rest)}
        entries = {
            key: replace(entry, value=_without(entry.value, by_step.get(key, ())))
            for key, entry in node.entries.items()
            if key not in gone_keys
        }
        return replace(node, entries=entries)
    return node
