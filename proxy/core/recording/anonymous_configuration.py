"""The queue configuration of a registration or reload without the names in it.

Names of queues, users and groups have their pseudonyms; descriptions, comments and properties that mean
nothing are left out. A regular expression in a filter becomes one that matches nothing, since pseudonyms are
not what it was written for.
"""

from __future__ import annotations

import json
from typing import Final, final

from ....model.configuration.patterns import is_pattern
from ....model.configuration.queue_properties import PROPERTIES
from ....model.configuration.reader import checksum
from ....model.configuration.yaml_nodes import MappingNode, Node, ScalarNode, ScalarTag, SequenceNode
from ....model.configuration.yaml_text import compose
from .pseudonyms import Pseudonyms

_NAMES: Final = frozenset(
    {("queues", "name"), ("queues", "adminacl"), ("queues", "submitacl")}
    | {(around, names) for around in ("limits", "filter") for names in ("users", "groups")}
)
"""Where names stand: the key of the mapping and the key in it."""
_NO_MATCH: Final = "^$"
"""An expression that matches no name: none is empty."""


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
