"""Errors of a configuration, with positions: findings of rules, and the error that carries them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from ..errors import LicorneError, shortened

_DOCUMENT: Final = "document"


@dataclass(frozen=True, slots=True)
class RuleFinding:
    """The finding of one rule about one place of the configuration."""

    position: Position
    text: str


@dataclass(frozen=True, slots=True)
class Problem:
    """A finding in a named source; its text form is `file:line:column: path: text`."""

    source: str
    line: int
    column: int
    path: str
    text: str

    @classmethod
    def of(cls, finding: RuleFinding, source: str) -> Problem:
        """Make the problem of a finding in a source; a finding without a path is about the document."""
        position = finding.position
        path = shortened(position.path or _DOCUMENT)
        return cls(source, position.line, position.column, path, shortened(finding.text))

    def __str__(self) -> str:
        return f"{self.source}:{self.line}:{self.column}: {self.path}: {self.text}"


class ConfigurationError(LicorneError):
    """A configuration that cannot be used; the text has one line for each problem, in order of the file."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        assert problems, "a configuration is refused for a reason"
        super().__init__(problems)
        self.problems: Final = problems

    def __str__(self) -> str:
        return "\n".join(str(problem) for problem in self.problems)


class Position(NamedTuple):
    """A position in the file; lines and columns count from 1, `path` is the YAML path."""

    line: int
    column: int
    path: str = ""

    def __str__(self) -> str:
        return f"{self.line}:{self.column}"


NOWHERE: Final = Position(1, 1)
"""The position of what was made by a program and is in no file."""
