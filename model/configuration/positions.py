"""The position of a value in the text of a configuration."""

from __future__ import annotations

from typing import Final, NamedTuple


class Position(NamedTuple):
    """A position in the file; lines and columns count from 1, `path` is the YAML path."""

    line: int
    column: int
    path: str = ""

    def __str__(self) -> str:
        return f"{self.line}:{self.column}"


NOWHERE: Final = Position(1, 1)
"""The position of what was made by a program and is in no file."""
