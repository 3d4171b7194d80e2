"""From nodes to documents, whatever errors they have: errors are noted, everything else is read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from ..documents import Reading, YamlScheduler
from ..positions import NOWHERE, Position
from ..problems import RuleFinding
from ..words import did_you_mean
from .composing import compose
from .nodes import Entry, MappingNode, Node, ScalarNode, ScalarTag, SequenceNode, key_path

_UNKNOWN_KEY: Final = "extra_forbidden"
_PARTITIONS: Final = re.compile(r"^[ \t]*partitions:", re.MULTILINE)
_KIND_MAX: Final = 60
_NOTHING: Final = ScalarNode("", ScalarTag.NULL, NOWHERE)

# What reads all of them, made here, where Python lets one thread in: the models below it need none alone.
YamlScheduler.model_rebuild()


def read_document(node: Node | None, errors: list[RuleFinding], warnings: list[RuleFinding]) -> YamlScheduler:
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
        document = YamlScheduler.model_validate(top, context=reading)
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False)
        errors.extend(_finding(top, detail, reading) for detail in details)
        top = _without(top, [(detail["loc"], detail["type"] == _UNKNOWN_KEY) for detail in details])
        reading = Reading()
        document = YamlScheduler.model_validate(top, context=reading)
    warnings.extend(reading.warnings)
    return document


def with_partitions(top: Node | None, text: str, errors: list[RuleFinding]) -> Node | None:
    """Return the node of the partitions where the top level of a file is another one, which is an error.

    That is a manifest of Kubernetes or the values of a Helm chart, with the configuration as a text in it, a
    list of partitions, or the contents of one partition. What they hold is read on, at its place in the file.
    Of a manifest without such a text nothing is read.

    Args:
        top: The top node of the file, or `None` for a file without a document.
        text: The text of the file.
        errors: What is wrong with the top level, and with an embedded text, is appended here.
    """
    if top is None or (isinstance(top, MappingNode) and "partitions" in top.entries):
        return top
    if isinstance(top, SequenceNode):
        errors.append(RuleFinding(top.position, "partitions are listed under the key 'partitions'"))
        return _mapping("partitions", top)
    if not isinstance(top, MappingNode):
        return top
    kind = _kind(top)
    embedded = next(_embedded(top), None)
    if embedded is not None:
        what = f"a {kind} of Kubernetes" if kind else "a file of installation settings"
        place = embedded.position
        errors.append(
            RuleFinding(top.position, f"this is {what}: the configuration is the text of {place.path} alone")
        )
        alone = _alone(embedded, text)
        return compose(alone, errors) if alone else None
    if kind:
        text = (
            f"this is a {kind} of Kubernetes, and not a configuration of queues: that has a list 'partitions'"
        )
        errors.append(RuleFinding(top.position, text))
        return None
    if "queues" in top.entries:
        position = top.entries["queues"].key_position
        errors.append(RuleFinding(position, "queues belong to a partition, in the list 'partitions'"))
        one = MappingNode({"name": _named(position), **top.entries}, top.position, top.size + 1, top.height)
        return _mapping("partitions", SequenceNode((one,), top.position, one.size + 1, top.height + 1))
    return top


def _kind(top: MappingNode) -> str:
    """Return the kind of a manifest of Kubernetes, empty if it is none."""
    entry = top.entries.get("kind")
    if entry is None or not isinstance(entry.value, ScalarNode):
        return ""
    return " ".join(entry.value.text.split())[:_KIND_MAX]


def _mapping(key: str, value: Node) -> MappingNode:
    entry = Entry(value.position, value)
    return MappingNode({key: entry}, value.position, value.size + 1, value.height + 1)


def _named(position: Position) -> Entry:
    return Entry(position, ScalarNode("default", ScalarTag.TEXT, position))


def _embedded(node: Node) -> Iterator[ScalarNode]:
    """Yield the texts below a node that are configurations."""
    if isinstance(node, ScalarNode) and _PARTITIONS.search(node.text):
        yield node
    for entry in node.entries.values() if isinstance(node, MappingNode) else ():
        yield from _embedded(entry.value)
    for item in node.items if isinstance(node, SequenceNode) else ():
        yield from _embedded(item)


def _alone(embedded: ScalarNode, text: str) -> str:
    """Return an embedded text alone, each line where it is in the file; an empty one where it is no block."""
    lines = embedded.text.rstrip().splitlines()
    first = embedded.position.line  # That of the sign `|`: the text begins in the next one.
    there = text.splitlines()[first : first + len(lines)]
    if [line.strip() for line in there] != [line.strip() for line in lines]:
        return ""
    return "\n" * first + "\n".join(there) + "\n"


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
            key: entry._replace(value=_without(entry.value, by_step.get(key, ())))
            for key, entry in node.entries.items()
            if key not in gone_keys
        }
        return replace(node, entries=entries)
    return node
