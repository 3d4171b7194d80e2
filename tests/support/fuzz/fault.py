"""What a planted fault is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: `old`, which stands once in the file, becomes `new`."""

    name: str
    path: str
    old: str
    new: str
    engines: tuple[str, ...] = ("direct", "actors", "threads", "reference")
    """Where it is looked for."""
