"""Pseudonyms: what stands for the names of one recording.

There are two kinds. Names of nodes, queues, users and groups are compared by the scheduler where nothing else
decides: they get labels that are in the same order, and that come from the order alone. Applications,
allocations and all other texts are too many to be kept: they get a hash with a key that is drawn for the
recording and never written.

Names of queues, users and groups have their pseudonyms; descriptions, comments and properties that mean
nothing are left out. A regular expression in a filter becomes one that matches nothing, since pseudonyms are
not what it was written for.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
from bisect import bisect_left
from fractions import Fraction
from functools import lru_cache
from typing import Final, final

from ....model.configuration.names import is_pattern
from ....model.configuration.queue_properties import PROPERTIES
from ....model.configuration.reader import checksum
from ....model.configuration.yaml_nodes import MappingNode, Node, ScalarNode, ScalarTag, SequenceNode
from ....model.configuration.yaml_text import compose
from ....model.values.allocation import PART_MARK

_KEY_BYTES: Final = 32
_HASH_DIGITS: Final = 20
"""80 bits: two of a billion names are the same with a probability of one in a million."""
_NEAR: Final = 1_024
"""A name that follows others of its kind gets this part of the room behind them: many come in order."""
_KEPT: Final = frozenset({"root", "default", "recovery", "nobody", "nogroup"})
"""Names that mean something to the scheduler."""
_RUN: Final = re.compile(r"[\w-]+")
_DOT: Final = "_dot_"
"""What the scheduler writes for a dot where it makes the name of a queue from a user or a tag."""
_NAME_LENGTH_MAX: Final = 64
"""A longer part cannot be the name of a queue, nor can its pseudonym."""
_CACHED: Final = 100_000
_NAMES: Final = frozenset(
    {("queues", "name"), ("queues", "adminacl"), ("queues", "submitacl")}
    | {(around, names) for around in ("limits", "filter") for names in ("users", "groups")}
)
"""Where names stand: the key of the mapping and the key in it."""
_NO_MATCH: Final = "^$"
"""An expression that matches no name: none is empty."""


@final
class _Labels:
    """Labels that are in the order of the names, whenever each comes: a number between its neighbours'."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._places: dict[str, Fraction] = {}

    def label(self, name: str) -> str:
        """Return the label of a name: digits that compare as the names do."""
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
    """Return how many characters two names begin with in common."""
    for place, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return place
    return min(len(one), len(other))


def _shortest_between(low: Fraction, wanted: Fraction, high: Fraction) -> Fraction:
    """Return a number near the wanted one that has few hexadecimal digits, between two others."""
    room = min(wanted - low, high - wanted)
    unit = Fraction(1, 16)
    while True:
        rounded = Fraction(wanted // unit) * unit
        for candidate in (rounded, rounded + unit):
            if low < candidate < high and abs(candidate - wanted) <= room:
                return candidate
        unit /= 16


def _digits(place: Fraction) -> str:
    """Return the hexadecimal digits of a number below one: as texts they compare as the numbers do."""
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
        key: the key of the hashes; drawn if it is not given.
    """

    def __init__(self, key: bytes | None = None) -> None:
        self._key = secrets.token_bytes(_KEY_BYTES) if key is None else key
        self._nodes = _Labels()
        self._parts = _Labels()
        self._texts = _Labels()
        self.hashed = lru_cache(_CACHED)(self._hashed)
        """Return the hash of a text; the same text gives another one for another kind of name."""

    def _hashed(self, kind: str, text: str) -> str:
        if not text:
            return ""
        said = f"{kind}\0{text}".encode("utf-8", errors="surrogatepass")
        return f"{kind}-{hmac.new(self._key, said, hashlib.sha256).hexdigest()[:_HASH_DIGITS]}"

    def key(self, allocation_key: str) -> str:
        """Return the pseudonym of an allocation key; that of a part of an ask is made of that of the ask."""
        ask_key, mark, part = allocation_key.partition(PART_MARK)
        if mark and part.startswith(":"):
            return f"{self.key(ask_key)}{mark}:{self.key(part[1:])}"
        if mark and part.startswith("-") and part[1:].isdecimal():
            return f"{self.key(ask_key)}{mark}{part}"
        return self.hashed("key", allocation_key)

    def node(self, node_id: str) -> str:
        """Return the pseudonym of a node; they are in the order of the ids."""
        return f"node-{self._nodes.label(node_id)}" if node_id else ""

    def ordered(self, text: str) -> str:
        """Return the pseudonym of a text that is compared with others of its kind: they are in its order."""
        return self._texts.label(text)

    def name(self, text: str) -> str:
        """Return the pseudonym of a queue, a path of queues, a user, a group, or an access control list.

        Each part between other characters has its own, so that a path is that of its queues, and the queue
        that is made for a user has the name that the scheduler gives it. What cannot be a name stays so.
        """
        return _RUN.sub(lambda run: _DOT.join(map(self._part, run[0].split(_DOT))), text)

    def _part(self, part: str) -> str:
        lower = part.lower()
        if not part or lower in _KEPT:
            return part
        # A user's name begins with no digit: one that does is not a name, and neither is its pseudonym.
        first = "n" if part[0].isalpha() or part[0] == "_" else "0n"
        if part != lower:
            first = first.upper()  # Two users, but one queue.
        rest = "" if part.isascii() else "é"
        too_long = "-" * _NAME_LENGTH_MAX if len(part) > _NAME_LENGTH_MAX else ""
        return first + self._parts.label(lower) + rest + too_long


def anonymous_configuration(text: str, pseudonyms: Pseudonyms) -> str:
    """Return a configuration that means the same with other names; its text is that of YAML on one line.

    Equal configurations give equal texts, and others other ones: a reload with the text that is in effect
    changes nothing, so a comment has a hash of the text.
    """
    top = compose(text, []) if text else None
    if top is None:
        return ""
    return f"{_Rewriting(pseudonyms).written(top, '', '')} # {pseudonyms.hashed('text', checksum(text))}\n"


def tags_of_rules(text: str) -> frozenset[str]:
    """Return the names of the tags, in lower case, whose values are queues by a placement rule."""
    top = compose(text, []) if text else None
    return frozenset() if top is None else frozenset(_tags(top))


def _tags(node: Node) -> list[str]:
    if isinstance(node, SequenceNode):
        return [tag for item in node.items for tag in _tags(item)]
    if not isinstance(node, MappingNode):
        return []
    own = [_text(node, "value").lower()] if _text(node, "name").lower() == "tag" else []
    return own + [tag for entry in node.entries.values() for tag in _tags(entry.value)]


def _text(node: MappingNode, key: str) -> str:
    entry = node.entries.get(key)
    return entry.value.text if entry is not None and isinstance(entry.value, ScalarNode) else ""


@final
class _Rewriting:
    """Writes the nodes of one configuration with pseudonyms."""

    def __init__(self, pseudonyms: Pseudonyms) -> None:
        self._pseudonyms = pseudonyms

    def written(self, node: Node, key: str, around: str) -> str:
        """Return the text of a node.

        Args:
            node: the node.
            key: the key that it, or the list that it is in, stands under.
            around: the key of the mapping that it is in.
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
        return json.dumps(node.text) if node.tag is ScalarTag.TEXT else node.text

    def _mapping(self, node: MappingNode, key: str) -> str:
        kept = {name: entry.value for name, entry in node.entries.items() if not _is_left_out(name, key)}
        written = {name: self.written(value, name, key) for name, value in kept.items()}
        if key in {"placementrules", "parent"} and _text(node, "name").lower() == "fixed" and "value" in kept:
            written["value"] = json.dumps(self._pseudonyms.name(_text(node, "value")))
        return "{" + ", ".join(f"{json.dumps(name)}: {value}" for name, value in written.items()) + "}"


def _is_left_out(name: str, around: str) -> bool:
    """Return whether a key of a mapping under another key means nothing to the scheduler."""
    if around == "properties":
        return name not in PROPERTIES
    return (around, name) in {("limits", "limit"), ("", "checksum")}


def _is_expression(node: Node) -> bool:
    return isinstance(node, ScalarNode) and is_pattern(node.text)
