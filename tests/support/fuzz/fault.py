"""The form of a planted fault."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: `old`, which occurs once in the file, becomes `new`."""

    name: str
    path: str
    old: str
    new: str
    engines: tuple[str, ...] = ("direct", "actors", "threads", "reference")
    """The engines that search for it."""
