"""Nodes in racks, and these in blocks: those of the worked examples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

LEVELS: Final = ("block", "rack")
NODES: Final[Mapping[str, tuple[str, str, int]]] = {
    "n1": ("b1", "r1", 4),
    "n2": ("b1", "r1", 4),
    "n3": ("b1", "r2", 4),
    "n4": ("b1", "r2", 2),
    "n5": ("b2", "r3", 4),
    "n6": ("b2", "r3", 4),
    "n7": ("b2", "r4", 8),
}
"""The block and the rack of each node, and how many members of size one it has room for."""
