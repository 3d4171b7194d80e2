"""From the text to nodes: YAML syntax, duplicate keys, anchors, merges, and the position of everything.

PyYAML supplies the events, from libyaml when it was built with it, as all its wheels are; the recorded core
uses a descendant of libyaml too. PyYAML's own parser, which replaces it elsewhere, differs in rare cases
only: it refuses tabs as blanks and a question mark in plain text within brackets.

The nodes are composed here, without recursion, because PyYAML's own composer follows YAML 1.1, accepts
duplicate keys and overflows the stack where lists nest deeply.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import yaml

from ..identifiers import ID_LENGTH_MAX, UNPRINTABLE
from .problems import Position, RuleFinding
from .yaml_nodes import (
    Entry,
    MappingNode,
    Node,
    ScalarNode,
    ScalarTag,
    SequenceNode,
    item_path,
    key_path,
    plain_tag,
)

DEPTH_MAX: Final = 200
"""How deep lists and mappings may nest; a level of queues takes two."""
ALIASED_NODES_MAX: Final = 100_000
"""How many nodes aliases may stand for in all: a few lines of aliases of aliases would fill any memory."""
_Parser: TypeAlias = type[yaml.BaseLoader | yaml.CBaseLoader]
_PARSER: Final[_Parser] = yaml.CBaseLoader if yaml.__with_libyaml__ else yaml.BaseLoader
_UNPRINTABLE: Final = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LINE_BREAK: Final = re.compile("\r\n|[\r\n\x85\u2028\u2029]")
_QUOTED_MAX: Final = 64
_PREFIX: Final = "tag:yaml.org,2002:"
_SCALAR_TAGS: Final = {
    f"{_PREFIX}null": ScalarTag.NULL,
    f"{_PREFIX}bool": ScalarTag.BOOLEAN,
    f"{_PREFIX}int": ScalarTag.INTEGER,
    f"{_PREFIX}float": ScalarTag.FLOAT,
    f"{_PREFIX}str": ScalarTag.TEXT,
    "!": ScalarTag.TEXT,
}


def compose(text: str, findings: list[RuleFinding], *, parser: _Parser = _PARSER) -> Node | None:
    """Compose the document of a text; that there is another one is a finding.

    Args:
        text: The YAML text.
        findings: Errors of the text are appended here.
        parser: The PyYAML class that supplies the events.

    Returns:
        The top node, or `None` for a text without a document or one that cannot be read.
    """
    composer = _Composer(findings)
    try:
        for event in _events(text, parser):
            composer.take(event)
    except _UnreadableError as error:
        findings.append(error.finding)
        return None
    return composer.top


class _UnreadableError(Exception):
    """The text cannot be read any further."""

    def __init__(self, line: int, column: int, text: str) -> None:
        super().__init__(text)
        self.finding = RuleFinding(Position(line, column), text)


def _events(text: str, parser: _Parser) -> Iterator[yaml.Event]:
    """Yield the events of the first document, and refuse another one: it may be the one that was meant."""
    wrong = _UNPRINTABLE.search(text)
    if wrong:
        raise _UnreadableError(
            *_line_and_column(text, wrong.start()), f"the character {wrong[0]!r} is not allowed in YAML"
        )
    try:
        events = yaml.parse(text, Loader=parser)
        for event in events:
            yield event
            if isinstance(event, yaml.DocumentEndEvent):
                break
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent) and not _is_nothing(next(events)):
                mark = event.start_mark
                line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
                raise _UnreadableError(line, column, "a second document begins here: a file has one")
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        said = ": ".join(part for part in (error.context, error.problem) if part)
        raise _UnreadableError(line, column, f"not YAML: {said}") from error
    except yaml.YAMLError as error:
        raise _UnreadableError(1, 1, f"not YAML: {error}") from error


def _is_nothing(event: yaml.Event) -> bool:
    """Return whether a document has nothing in it, as behind dashes in the last line."""
    return isinstance(event, yaml.ScalarEvent) and not event.value and not event.style


def _line_and_column(text: str, offset: int) -> tuple[int, int]:
    """Return the line and column of a character, both counted from 1."""
    breaks = [match.end() for match in _LINE_BREAK.finditer(text, 0, offset)]
    return len(breaks) + 1, offset - (breaks[-1] if breaks else 0) + 1


@dataclass(slots=True)
class _OpenSequence:
    """A list whose end has not come yet."""

    position: Position
    anchor: str | None
    items: list[Node] = field(default_factory=list)

    def path_of_next(self) -> str:
        return item_path(self.position.path, len(self.items))

    def take(self, node: Node, findings: list[RuleFinding]) -> None:  # noqa: ARG002 - as in _OpenMapping
        self.items.append(node)

    def close(self) -> SequenceNode:
        height = 1 + max((node.height for node in self.items), default=0)
        return SequenceNode(tuple(self.items), self.position, 1 + sum(n.size for n in self.items), height)


@dataclass(slots=True)
class _OpenMapping:
    """A mapping whose end has not come yet; it takes keys and values in turn."""

    position: Position
    anchor: str | None
    entries: dict[str, Entry] = field(default_factory=dict)
    merged: list[MappingNode] = field(default_factory=list)
    key: ScalarNode | None = None
    wants_key: bool = True

    def path_of_next(self) -> str:
        return self.position.path if self.key is None else key_path(self.position.path, self.key.text)

    def take(self, node: Node, findings: list[RuleFinding]) -> None:
        self.wants_key = not self.wants_key
        if not self.wants_key:
            self._take_key(node, findings)
            return
        key, self.key = self.key, None
        if key is None:
            return
        if key.tag is ScalarTag.MERGE:
            self._merge(node, findings)
        elif key.text not in self.entries:
            self.entries[key.text] = Entry(key.position, node)

    def _take_key(self, node: Node, findings: list[RuleFinding]) -> None:
        if not isinstance(node, ScalarNode):
            findings.append(RuleFinding(node.position, "a key must be a text"))
            return
        self.key = node
        if len(node.text) > ID_LENGTH_MAX:
            said = f"the key has {len(node.text):,} characters, more than {ID_LENGTH_MAX:,}"
            findings.append(RuleFinding(node.position, said))
        first = self.entries.get(node.text)
        if first is not None and node.tag is not ScalarTag.MERGE:
            where = f"first on line {first.key_position.line}"
            position = Position(node.position.line, node.position.column, self.path_of_next())
            findings.append(RuleFinding(position, f"the key {node.text!r} stands here twice, {where}"))

    def _merge(self, node: Node, findings: list[RuleFinding]) -> None:
        sources = node.items if isinstance(node, SequenceNode) else (node,)
        for source in sources:
            if isinstance(source, MappingNode):
                self.merged.append(source)
            else:
                findings.append(RuleFinding(source.position, "only a mapping can be merged with <<"))

    def close(self) -> MappingNode:
        for source in self.merged:
            for name, entry in source.entries.items():
                self.entries.setdefault(name, entry)
        values = [entry.value for entry in self.entries.values()]
        height = 1 + max((node.height for node in values), default=0)
        return MappingNode(self.entries, self.position, 1 + sum(n.size for n in values), height)


class _Composer:
    """Composes nodes from events; unfinished ones are on a stack."""

    def __init__(self, findings: list[RuleFinding]) -> None:
        self.top: Node | None = None
        self._findings = findings
        self._open: list[_OpenSequence | _OpenMapping] = []
        self._anchors: dict[str, Node] = {}
        self._aliased_nodes = 0

    def take(self, event: yaml.Event) -> None:
        """Take the next event."""
        match event:
            case yaml.ScalarEvent():
                self._finish(self._scalar(event), event.anchor)
            case yaml.AliasEvent():
                self._finish(self._alias(event), None)
            case yaml.SequenceStartEvent() | yaml.MappingStartEvent():
                self._begin(event)
            case yaml.SequenceEndEvent() | yaml.MappingEndEvent():
                closed = self._open.pop()
                self._finish(closed.close(), closed.anchor)

    def _position(self, event: yaml.Event) -> Position:
        path = self._open[-1].path_of_next() if self._open else ""
        mark = event.start_mark
        return Position(mark.line + 1, mark.column + 1, path) if mark else Position(1, 1, path)

    def _finish(self, node: Node, anchor: str | None) -> None:
        if anchor is not None:
            self._anchors[anchor] = node
        if self._open:
            self._open[-1].take(node, self._findings)
        else:
            self.top = node

    def _scalar(self, event: yaml.ScalarEvent) -> ScalarNode:
        position = self._position(event)
        plain = not event.style
        if event.tag is None:
            tag = plain_tag(event.value) if plain else ScalarTag.TEXT
        else:
            tag = self._explicit_tag(event.tag, position)
        value: str = event.value
        if not value.isprintable() and UNPRINTABLE.search(value.replace("\n", "").replace("\t", "")):
            shown = ascii(value[:_QUOTED_MAX])
            said = f"control characters and directional marks are not allowed: {shown}"
            self._findings.append(RuleFinding(position, said))
        return ScalarNode(value, tag, position, plain)

    def _explicit_tag(self, tag: str, position: Position) -> ScalarTag:
        if tag not in _SCALAR_TAGS:
            self._findings.append(RuleFinding(position, f"the tag {tag!r} is not known here"))
        return _SCALAR_TAGS.get(tag, ScalarTag.TEXT)

    def _begin(self, event: yaml.SequenceStartEvent | yaml.MappingStartEvent) -> None:
        position = self._position(event)
        is_sequence = isinstance(event, yaml.SequenceStartEvent)
        if event.tag not in {None, "!", f"{_PREFIX}seq" if is_sequence else f"{_PREFIX}map"}:
            self._findings.append(RuleFinding(position, f"the tag {event.tag!r} is not known here"))
        self._check_depth(1, position)
        if event.anchor is not None:
            self._anchors.pop(event.anchor, None)
        opened = _OpenSequence if is_sequence else _OpenMapping
        self._open.append(opened(position, event.anchor))

    def _alias(self, event: yaml.AliasEvent) -> Node:
        position = self._position(event)
        node = self._anchors.get(event.anchor or "")
        if node is None:
            inside = any(opened.anchor == event.anchor for opened in self._open)
            text = f"the anchor {event.anchor!r} " + (
                "contains itself" if inside else "is not defined before"
            )
            self._findings.append(RuleFinding(position, text))
            return ScalarNode("", ScalarTag.NULL, position)
        self._aliased_nodes += node.size
        if self._aliased_nodes > ALIASED_NODES_MAX:
            text = f"aliases stand for more than {ALIASED_NODES_MAX} values"
            raise _UnreadableError(position.line, position.column, text)
        self._check_depth(node.height, position)
        return node

    def _check_depth(self, added: int, position: Position) -> None:
        if len(self._open) + added > DEPTH_MAX:
            text = f"lists and mappings nest deeper than {DEPTH_MAX} levels"
            raise _UnreadableError(position.line, position.column, text)
