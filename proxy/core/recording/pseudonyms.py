"""Pseudonyms: replacements for the names of one recording.

There are two kinds. Names of nodes, queues, users and groups are compared by the scheduler as the last
criterion: they get labels in the same order, which depend only on the order. Applications, allocations and
all other texts are too many to be kept: they get a hash with a random key for the recording, which is never
written.

Names of queues, users and groups have their pseudonyms; descriptions, comments and properties without effect
are left out. A regular expression in a filter becomes one that matches nothing, since it was not written for
pseudonyms.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import lru_cache, partial
from typing import Final, final

from ....model.configuration.names import is_pattern
from ....model.configuration.queue_properties import PROPERTIES
from ....model.configuration.reader import checksum
from ....model.configuration.yaml_nodes import MappingNode, Node, ScalarNode, ScalarTag, SequenceNode
from ....model.configuration.yaml_text import compose
from ....model.values.allocation import PART_MARK

_KEY_BYTES: Final = 32
_HASH_DIGITS: Final = 20
"""80 bits: the probability that two of a billion names get the same hash is one in a million."""
_NEAR: Final = 1_024
"""A name that follows others of its kind gets this part of the range after them: many come in order."""
_KEPT: Final = frozenset({"root", "default", "recovery", "nobody", "nogroup"})
"""Names with a meaning for the scheduler."""
_RUN: Final = re.compile(r"[\w-]+")
_DOT: Final = "_dot_"
"""The scheduler's replacement of a dot when it makes the name of a queue from a user or a tag."""
_NAME_LENGTH_MAX: Final = 64
"""A longer part cannot be the name of a queue, nor can its pseudonym."""
_CACHED: Final = 100_000
_NAMES: Final = frozenset(
    {("queues", "name"), ("queues", "adminacl"), ("queues", "submitacl")}
    | {(around, names) for around in ("limits", "filter", "for") for names in ("users", "groups")}
    | {("for", "queues")}
)
"""The places of names: the key of the mapping and the key in it."""
_NO_MATCH: Final = "^$"
"""An expression that matches no name, since names are not empty."""


@final
class _Labels:
    """Labels in the order of the names, whenever each is added: a number between those of its neighbours."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._places: dict[str, Fraction] = {}

    def label(self, name: str) -> str:
        """Return the label of a name: digits that compare like the names."""
        place = self._places.get(name)
        if place is None:
            index = bisect_left(self._names, name)
            before = self._names[index - 1] if index else ""
            after = self._names[index] if index < len(self._names) else ""
            place = self._places[name] = self._between(before, name, after)
            self._names.insert(index, name)
        return _digits(place)

    def _between(self, before: str, name: str, after: str) -> Fraction:
        low = self._places.get(before, Fraction(0))
        high = self._places.get(after, Fraction(1))
        likeness = _common(name, before) - _common(name, after)
        share = Fraction(1, 2) if not likeness else Fraction(1, _NEAR)
        wanted = low + (high - low) * share if likeness >= 0 else high - (high - low) * share
        return _shortest_between(low, wanted, high)


def _common(one: str, other: str) -> int:
    """Return the length of the common prefix of two names."""
    for place, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return place
    return min(len(one), len(other))


def _shortest_between(low: Fraction, wanted: Fraction, high: Fraction) -> Fraction:
    """Return a number near the wanted one, between two others, with few hexadecimal digits."""
    room = min(wanted - low, high - wanted)
    unit = Fraction(1, 16)
    while True:
        rounded = Fraction(wanted // unit) * unit
        for candidate in (rounded, rounded + unit):
            if low < candidate < high and abs(candidate - wanted) <= room:
                return candidate
        unit /= 16


def _digits(place: Fraction) -> str:
    """Return the hexadecimal digits of a number below one: as texts they compare like the numbers."""
    digits = ""
    while place:
        place *= 16
        digits += f"{int(place):x}"
        place -= int(place)
    return digits


@final
class Pseudonyms:
    """The pseudonyms of one recording. One thread at a time may use them.

    Args:
        key: The key of the hashes; by default a random one.
    """

    def __init__(self, key: bytes | None = None) -> None:
        self._key = secrets.token_bytes(_KEY_BYTES) if key is None else key
        self._nodes = _Labels()
        self._parts = _Labels()
        self._texts = _Labels()
        self.hashed = lru_cache(_CACHED)(self._hashed)
        """Return the hash of a text; the same text gets another hash as another kind of name."""

    def _hashed(self, kind: str, text: str) -> str:
        if not text:
            return ""
        said = f"{kind}\0{text}".encode("utf-8", errors="surrogatepass")
        return f"{kind}-{hmac.new(self._key, said, hashlib.sha256).hexdigest()[:_HASH_DIGITS]}"

    def key(self, allocation_key: str) -> str:
        """Return the pseudonym of an allocation key; that of a part of an ask contains that of the ask."""
        ask_key, mark, part = allocation_key.partition(PART_MARK)
        if mark and part.startswith(":"):
            return f"{self.key(ask_key)}{mark}:{self.key(part[1:])}"
        if mark and part.startswith("-") and part[1:].isdecimal():
            return f"{self.key(ask_key)}{mark}{part}"
        return self.hashed("key", allocation_key)

    def node(self, node_id: str) -> str:
        """Return the pseudonym of a node; pseudonyms are in the order of the ids."""
        return f"node-{self._nodes.label(node_id)}" if node_id else ""

    def ordered(self, text: str) -> str:
        """Return the pseudonym of a text that is compared with others of its kind, in their order."""
        return self._texts.label(text)

    def name(self, text: str) -> str:
        """Return the pseudonym of a queue, a path of queues, a user, a group, or an access control list.

        Each part between other characters has its own, so that a path consists of the pseudonyms of its
        queues, and the queue made for a user has the name that the scheduler gives it. A text that cannot be
        a name is unchanged.
        """
        return _RUN.sub(lambda run: _DOT.join(map(self._part, run[0].split(_DOT))), text)

    def _part(self, part: str) -> str:
        lower = part.lower()
        if not part or lower in _KEPT:
            return part
        # Users' names do not begin with a digit: a text that does is not a name, nor is its pseudonym.
        first = "n" if part[0].isalpha() or part[0] == "_" else "0n"
        if part != lower:
            first = first.upper()  # Two users, but one queue.
        rest = "" if part.isascii() else "é"
        too_long = "-" * _NAME_LENGTH_MAX if len(part) > _NAME_LENGTH_MAX else ""
        return first + self._parts.label(lower) + rest + too_long


def anonymous_configuration(text: str, pseudonyms: Pseudonyms) -> str:
    """Return an equivalent configuration with other names; its text is YAML on one line.

    Equal configurations give equal texts, and different ones different texts. A reload with the present text
    changes nothing, so a comment has a hash of the text.
    """
    top = compose(text, []) if text else None
    if top is None:
        return ""
    return f"{_Rewriting(pseudonyms).written(top, '', '')} # {pseudonyms.hashed('text', checksum(text))}\n"


def tags_of_rules(text: str) -> frozenset[str]:
    """Return the names of the tags, in lower case, whose values are queues by a placement rule."""
    rules = (node for node in _mappings(text) if _text(node, "name").lower() == "tag")
    return frozenset(_text(rule, "value").lower() for rule in rules)


def levels_of(text: str) -> frozenset[str]:
    """Return the attributes of nodes that name their domains in a configuration, or those of its windows."""
    found: set[str] = set()
    for node in _mappings(text):
        for key, entry in node.entries.items():
            value = entry.value
            if key == "topology" and isinstance(value, SequenceNode):
                found |= {level.text for level in value.items if isinstance(level, ScalarNode)}
            elif key == "attributes" and isinstance(value, MappingNode):
                found |= {*value.entries}
    return frozenset(found)


def _mappings(text: str) -> Iterator[MappingNode]:
    """Walk all mappings of a configuration."""
    nodes = [compose(text, [])] if text else []
    while nodes:
        node = nodes.pop()
        if isinstance(node, SequenceNode):
            nodes += node.items
        elif isinstance(node, MappingNode):
            yield node
            nodes += [entry.value for entry in node.entries.values()]


def _text(node: MappingNode, key: str) -> str:
    entry = node.entries.get(key)
    return entry.value.text if entry is not None and isinstance(entry.value, ScalarNode) else ""


@final
class _Rewriting:
    """Writes the nodes of one configuration with pseudonyms."""

    def __init__(self, pseudonyms: Pseudonyms) -> None:
        self._pseudonyms = pseudonyms
        self._others: Mapping[tuple[str, str], Callable[[str], str]] = {
            ("windows", "name"): partial(pseudonyms.hashed, "window"),
            ("windows", "nodes"): pseudonyms.node,
            ("for", "applications"): partial(pseudonyms.hashed, "app"),
        }

    def written(self, node: Node, key: str, around: str) -> str:
        """Return the text of a node.

        Args:
            node: The node.
            key: The key of the node, or of the list that contains it.
            around: The key of the mapping that contains it.
        """
        if isinstance(node, MappingNode):
            return self._mapping(node, key)
        if isinstance(node, SequenceNode):
            if around == "filter" and len(node.items) == 1 and _is_expression(node.items[0]):
                return json.dumps([_NO_MATCH])
            return f"[{', '.join(self.written(item, key, around) for item in node.items)}]"
        if node.tag is ScalarTag.NULL:
            return "null"
        if (around, key) in _NAMES:
            return json.dumps(self._pseudonyms.name(node.text))
        if (around, key) in self._others:
            return json.dumps(self._others[around, key](node.text))
        if around == "attributes":
            return json.dumps(f"domain-{self._pseudonyms.ordered(node.text)}")
        return json.dumps(node.text) if node.tag is ScalarTag.TEXT else node.text

    def _mapping(self, node: MappingNode, key: str) -> str:
        kept = {name: entry.value for name, entry in node.entries.items() if not _is_left_out(name, key)}
        written = {name: self.written(value, name, key) for name, value in kept.items()}
        if key in {"placementrules", "parent"} and _text(node, "name").lower() == "fixed" and "value" in kept:
            written["value"] = json.dumps(self._pseudonyms.name(_text(node, "value")))
        return "{" + ", ".join(f"{json.dumps(name)}: {value}" for name, value in written.items()) + "}"


def _is_left_out(name: str, around: str) -> bool:
    """Return whether a key of a mapping under another key has no effect on the scheduler."""
    if around == "properties":
        return name not in PROPERTIES
    return (around, name) in {("limits", "limit"), ("", "checksum")}


def _is_expression(node: Node) -> bool:
    return isinstance(node, ScalarNode) and is_pattern(node.text)
