"""Files whose top level is another one than that of a configuration: what is meant is read all the same."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from .problems import Position, RuleFinding
from .yaml_nodes import Entry, MappingNode, Node, ScalarNode, ScalarTag, SequenceNode
from .yaml_text import compose

_PARTITIONS: Final = re.compile(r"^[ \t]*partitions:", re.MULTILINE)
_KIND_MAX: Final = 60


def with_partitions(top: Node | None, text: str, errors: list[RuleFinding]) -> Node | None:
    """Return the node of the partitions where the top level of a file is another one, which is an error.

    That is a manifest of Kubernetes or the values of a Helm chart, with the configuration as a text in it, a
    list of partitions, or the contents of one partition. Their contents are read at their places in the file.
    Of a manifest without such a text nothing is read.

    Args:
        top: The top node of the file, or `None` for a file without a document.
        text: The text of the file.
        errors: Errors of the top level, and of an embedded text, are appended here.
    """
    if top is None or (isinstance(top, MappingNode) and "partitions" in top.entries):
        return top
    if isinstance(top, SequenceNode):
        errors.append(RuleFinding(top.position, "partitions are listed under the key 'partitions'"))
        return _mapping("partitions", top)
    if not isinstance(top, MappingNode):
        return top
    kind = _kind_of(top)
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


def _kind_of(top: MappingNode) -> str:
    """Return the kind of a manifest of Kubernetes, empty if it is not one."""
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
    """Return an embedded text alone, with its lines of the file; an empty one if it is not a block."""
    lines = embedded.text.rstrip().splitlines()
    first = embedded.position.line  # That of the sign `|`: the text begins in the next one.
    there = text.splitlines()[first : first + len(lines)]
    if [line.strip() for line in there] != [line.strip() for line in lines]:
        return ""
    return "\n" * first + "\n".join(there) + "\n"
