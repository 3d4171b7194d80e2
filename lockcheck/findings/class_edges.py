"""Edges by class: one class of locks wanted while another one is held, in which modes.

Declared, learned and summed up edges are compared by their text.
"""

from __future__ import annotations

from dataclasses import dataclass

from .evidence import Mode


@dataclass(frozen=True, slots=True)
class ClassEdge:
    """An edge of two classes of locks."""

    held: str
    held_mode: Mode
    wanted: str
    wanted_mode: Mode

    def __str__(self) -> str:
        return f"{self.held}[{self.held_mode}] -> {self.wanted}[{self.wanted_mode}]"
