"""The nodes of a YAML document, each with its position: the syntax of the text before its meaning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import ClassVar, NamedTuple, TypeAlias

from ..positions import Position


class ScalarTag(Enum):
    """What a scalar is by the rules of YAML 1.2, or by its explicit tag."""

    NULL = auto()
    BOOLEAN = auto()
    INTEGER = auto()
    FLOAT = auto()
    TEXT = auto()
    MERGE = auto()


@dataclass(frozen=True, slots=True)
class ScalarNode:
    """A single value; `text` is what is in the file without its quotes, `plain` says it had none."""

    text: str
    tag: ScalarTag
    position: Position
    plain: bool = True

    size: ClassVar[int] = 1
    height: ClassVar[int] = 0

    def emptied(self) -> ScalarNode:
        """Return the null that replaces a value that cannot be used."""
        return replace(self, text="", tag=ScalarTag.NULL)


@dataclass(frozen=True, slots=True)
class SequenceNode:
    """A list; `size` counts all nodes in it and itself, `height` the levels below it."""

    items: tuple[Node, ...]
    position: Position
    size: int
    height: int

    def emptied(self) -> ScalarNode:
        """Return the null that replaces a list that cannot be used."""
        return ScalarNode("", ScalarTag.NULL, self.position)


class Entry(NamedTuple):
    """A key's position and its value."""

    key_position: Position
    value: Node


@dataclass(frozen=True, slots=True)
class MappingNode:
    """A mapping in the order of the file, merged entries last; each key occurs once."""

    entries: Mapping[str, Entry]
    position: Position
    size: int
    height: int

    def emptied(self) -> ScalarNode:
        """Return the null that replaces a mapping that cannot be used."""
        return ScalarNode("", ScalarTag.NULL, self.position)


Node: TypeAlias = ScalarNode | SequenceNode | MappingNode


def key_path(parent: str, key: str) -> str:
    """Return the path of a key's value: `queues.name`."""
    return f"{parent}.{key}" if parent else key


def item_path(parent: str, index: int) -> str:
    """Return the path of an item of a list: `queues[0]`."""
    return f"{parent}[{index}]"
