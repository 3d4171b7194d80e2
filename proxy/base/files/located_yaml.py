"""A YAML file as plain values, with the place of each, so that strict models can name where they differ."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from ....model.configuration.problems import ConfigurationError, Position, Problem, RuleFinding
from ....model.configuration.yaml_nodes import Node, ScalarNode, ScalarTag, SequenceNode, item_path, key_path
from ....model.configuration.yaml_text import compose
from .input_files import read_text

_FLAGS: Final = {"true": True, "false": False}
_INTEGER: Final = re.compile(r"[-+]?[0-9]{1,40}")
_WITH_LAST_STEP: Final = re.compile(r"(.*)(\.[^.\[\]]*|\[[0-9]+\])", re.DOTALL)
_FLOAT: Final = re.compile(r"[-+]?[0-9]{1,40}\.[0-9]{1,40}")

YamlValue: TypeAlias = "bool | int | float | str | list[YamlValue] | dict[str, YamlValue] | None"


@dataclass(frozen=True, slots=True)
class LocatedYaml:
    """The value of a YAML file, and the place of everything in it.

    `positions` are found by path, such as `nodes[0].count`. `key_positions` are those of keys.
    """

    path: Path
    value: YamlValue
    positions: dict[str, Position]
    key_positions: dict[str, Position]

    def finding(self, way: Iterable[int | str], text: str, *, at_key: bool = False) -> RuleFinding:
        """Return a finding about the value at the end of a way, or about its key."""
        path = ""
        for step in way:
            path = item_path(path, step) if isinstance(step, int) else key_path(path, step)
        finding = self.finding_at(path, text)
        if not at_key or path not in self.key_positions:
            return finding
        position = self.key_positions[path]
        return RuleFinding(Position(position.line, position.column, path), text)

    def finding_at(self, path: str, text: str) -> RuleFinding:
        """Return a finding about the value with a path.

        A missing value has no place: the place is then the nearest mapping or list around it.
        """
        around = path
        while around and around not in self.positions:
            shorter = _WITH_LAST_STEP.fullmatch(around)
            around = shorter[1] if shorter is not None else ""
        position = self.positions.get(around, Position(1, 1))
        return RuleFinding(Position(position.line, position.column, path), text)

    def error(self, findings: Iterable[RuleFinding]) -> ConfigurationError:
        """Return the error that carries findings, in order of the file."""
        return ConfigurationError(self.problems(findings))

    def problems(self, findings: Iterable[RuleFinding]) -> tuple[Problem, ...]:
        """Return findings with the name of the file, in its order."""
        ordered = sorted(findings, key=lambda finding: (finding.position.line, finding.position.column))
        return tuple(Problem.of(finding, str(self.path)) for finding in ordered)


def read_located_yaml(path: Path, text: str | None = None) -> LocatedYaml:
    """Read the first document of a YAML file.

    Args:
        path: The file, or what messages call a text that is in none.
        text: That text; `None` for the text of the file.

    Raises:
        InputError: The file cannot be read.
        ConfigurationError: It is no YAML, or has a key twice; the error has all problems.
    """
    findings: list[RuleFinding] = []
    top = compose(read_text(path) if text is None else text, findings)
    located = LocatedYaml(path, None, {}, {})
    if findings:
        raise located.error(findings)
    value = _value(top, "", located) if top is not None else None
    return LocatedYaml(path, value, located.positions, located.key_positions)


def _value(node: Node, path: str, located: LocatedYaml) -> YamlValue:
    """Return the plain value of a node, and note its place."""
    located.positions[path] = node.position
    if isinstance(node, ScalarNode):
        return _scalar(node)
    if isinstance(node, SequenceNode):
        return [_value(item, item_path(path, index), located) for index, item in enumerate(node.items)]
    values: dict[str, YamlValue] = {}
    for key, entry in node.entries.items():
        located.key_positions[key_path(path, key)] = entry.key_position
        values[key] = _value(entry.value, key_path(path, key), located)
    return values


def _scalar(node: ScalarNode) -> YamlValue:
    """Return a scalar by its tag; a number that Python does not read so stays text."""
    if node.tag is ScalarTag.NULL:
        return None
    if node.tag is ScalarTag.BOOLEAN and node.text.lower() in _FLAGS:
        return _FLAGS[node.text.lower()]
    if node.tag is ScalarTag.INTEGER and _INTEGER.fullmatch(node.text):
        return int(node.text)
    if node.tag is ScalarTag.FLOAT and _FLOAT.fullmatch(node.text):
        return float(node.text)
    return node.text
