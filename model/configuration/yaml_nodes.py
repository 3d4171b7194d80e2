"""The nodes of a YAML document with their positions, and the meaning of scalars in it.

A plain `on`, `no` or `10:30` is text, as in YAML 1.2, and a text field accepts any scalar literally. A
flag or a number may also have a few plain spellings of YAML 1.1 that the recorded core accepts there, each
with a warning: configurations that work there work here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import ClassVar, Final, NamedTuple, TypeAlias

from .problems import Position

UINT64_MAX: Final = 2**64 - 1
_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE: Final = frozenset({"true", "True", "TRUE"})
_FALSE: Final = frozenset({"false", "False", "FALSE"})
_OLD_TRUE: Final = frozenset({"y", "Y", "yes", "on"})
_OLD_FALSE: Final = frozenset({"n", "N", "no", "off"})
_INTEGER: Final = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE: Final = re.compile(r"[-+]?(\.inf|\.Inf|\.INF)|\.nan|\.NaN|\.NAN")
_OLD_INTEGER: Final = re.compile(r"[-+]?(0b[01]+|0o[0-7]+|0x[0-9a-fA-F]+|[0-9]+)")
"""Signs with every base, and a base of two; underscores were allowed anywhere but at the front."""
_LEADING_ZERO: Final = re.compile(r"[-+]?0[0-9]+")
_BASES: Final = {"0b": 2, "0o": 8, "0x": 16}
_LENGTH_MAX: Final = 100
"""No number in range needs more characters, and converting this many is cheap."""


class ScalarTag(Enum):
    """The type of a scalar by the rules of YAML 1.2, or by its explicit tag."""

    NULL = auto()
    BOOLEAN = auto()
    INTEGER = auto()
    FLOAT = auto()
    TEXT = auto()
    MERGE = auto()


@dataclass(frozen=True, slots=True)
class ScalarNode:
    """A single value; `text` is that in the file without quotes, `plain` whether it had none."""

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


class ScalarError(ValueError):
    """A value that a field does not accept; the text has the expected and the found value."""


def plain_tag(text: str) -> ScalarTag:
    """Return the tag of a scalar without quotes and explicit tag."""
    if text in _NULLS:
        return ScalarTag.NULL
    if text in _TRUE or text in _FALSE:
        return ScalarTag.BOOLEAN
    if _INTEGER.fullmatch(text):
        return ScalarTag.INTEGER
    if _FLOAT.fullmatch(text) or _NOT_FINITE.fullmatch(text):
        return ScalarTag.FLOAT
    return ScalarTag.MERGE if text == "<<" else ScalarTag.TEXT


def kind_of(node: Node) -> str:
    """Return the description of a node for a message: `the text 'maybe'`, `a list`."""
    if not isinstance(node, ScalarNode):
        return "a mapping" if isinstance(node, MappingNode) else "a list"
    if node.tag is ScalarTag.NULL:
        return "nothing"
    return node.text if node.plain and node.tag is not ScalarTag.TEXT else f"the text {node.text!r}"


def read_text(node: Node) -> str:
    """Return a scalar literally; null is the empty text.

    Raises:
        ScalarError: The node is a list or a mapping.
    """
    if not isinstance(node, ScalarNode):
        raise ScalarError(f"expected a text, not {kind_of(node)}")
    return "" if node.tag is ScalarTag.NULL else node.text


def read_flag(node: Node) -> tuple[bool, str | None]:
    """Read `true` or `false`; null is false.

    Returns:
        The flag, and a warning where the spelling is one of YAML 1.1.

    Raises:
        ScalarError: The node is nothing of that kind.
    """
    text = node.text if isinstance(node, ScalarNode) else None
    if text is None or not isinstance(node, ScalarNode):
        raise ScalarError(f"expected true or false, not {kind_of(node)}")
    if node.tag is ScalarTag.NULL:
        return False, None
    if node.tag is ScalarTag.BOOLEAN and text in _TRUE | _FALSE:
        return text in _TRUE, None
    if node.tag is ScalarTag.TEXT and node.plain and text in _OLD_TRUE | _OLD_FALSE:
        word = "true" if text in _OLD_TRUE else "false"
        return text in _OLD_TRUE, f"{text!r} is text in YAML 1.2; it is taken for {word}, better write that"
    hint = f"; did you mean {text.lower()}, without quotes?" if text.lower() in _TRUE | _FALSE else ""
    raise ScalarError(f"expected true or false, not {kind_of(node)}{hint}")


def read_count(node: Node) -> tuple[int, str | None]:
    """Read a whole number from 0 to 2^64-1; null is 0.

    Returns:
        The number, and a warning where a fraction is dropped or other readers would read another number.

    Raises:
        ScalarError: The node is not such a number.
    """
    if isinstance(node, ScalarNode):
        if node.tag is ScalarTag.NULL:
            return 0, None
        count, warning = _whole(node)
        if count is not None and 0 <= count <= UINT64_MAX:
            return count, warning
        if not node.plain and re.fullmatch("[0-9]+", node.text):
            raise ScalarError(f"expected a whole number, not {kind_of(node)}: write it without quotes")
    raise ScalarError(f"expected a whole number from 0 to {UINT64_MAX}, not {kind_of(node)}")


def read_number(node: Node) -> float:
    """Read a finite number; null is 0.

    Raises:
        ScalarError: The node is not such a number.
    """
    if isinstance(node, ScalarNode):
        if node.tag is ScalarTag.NULL:
            return 0.0
        whole = _integer(node.text) if _is_integer(node) else None
        if whole is not None:
            return float(whole)
        number = float(node.text) if node.tag is ScalarTag.FLOAT and _FLOAT.fullmatch(node.text) else math.nan
        if math.isfinite(number):
            return number
    raise ScalarError(f"expected a finite number, not {kind_of(node)}")


def _whole(node: ScalarNode) -> tuple[int | None, str | None]:
    """Return a scalar as a whole number if it can be taken for one, and a warning about its spelling."""
    text = node.text
    if _is_integer(node):
        count = _integer(text)
        if _LEADING_ZERO.fullmatch(text):
            return count, f"{text} is the decimal number {count} in YAML 1.2: drop the leading zero"
        return count, None
    if node.tag is ScalarTag.FLOAT and _FLOAT.fullmatch(text) and math.isfinite(float(text)):
        count = math.trunc(float(text))
        return count, f"{text} is not written as a whole number; it is taken for {count}"
    old = text[:1] + text[1:].replace("_", "")
    if node.tag is ScalarTag.TEXT and node.plain and _OLD_INTEGER.fullmatch(old):
        count = _integer(old)
        return count, f"{text!r} is text in YAML 1.2; it is taken for {count}, better write that"
    return None, None


def _is_integer(node: ScalarNode) -> bool:
    """Return whether a scalar is an integer and is written as one; an explicit tag may be on any text."""
    return node.tag is ScalarTag.INTEGER and _INTEGER.fullmatch(node.text) is not None


def _integer(text: str) -> int | None:
    """Convert a text in the form of an integer; `None` when it is far out of range or has no digits."""
    digits = text.lstrip("+-")
    base = _BASES.get(digits[:2], 10)
    digits = (digits if base == 10 else digits[2:]).lstrip("0") or "0"
    if len(digits) > _LENGTH_MAX:
        return None
    return int(digits, base) * (-1 if text.startswith("-") else 1)
