"""Findings of the checker, as frozen values."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .evidence import Frame, Kind, Rung
    from .witness import SchedulingPoint

__all__ = ["Edge", "Finding", "fingerprint_of", "fingerprint_of_cycle", "fingerprint_of_steps", "place_text"]

_LINE: Final = re.compile(r"(\.pyw?):\d+")
"""The line in the name of a lock that was named after its place."""


@dataclass(frozen=True, slots=True)
class Edge:
    """An execution held one lock and wanted another: one step of a cycle, or the place of a broken rule."""

    execution: str
    """The name of the execution: of a thread, or the one given to `unit`."""
    held: str | None
    """The lock that was held, with key and mode; `None` if there was none."""
    wanted: str
    all_held: tuple[str, ...]
    """Everything that was held, outermost first."""
    hold_stack: tuple[Frame, ...]
    """Where the held lock was taken, innermost frame first."""
    want_stack: tuple[Frame, ...]
    class_edge: str | None = None
    """Classes and modes of both locks, such as `queue[W] -> application[R]`."""

    @property
    def place(self) -> Frame | None:
        """The place that wants the second lock; if that is not known, the one that took the first."""
        return next(iter((*self.want_stack, *self.hold_stack)), None)

    @property
    def unit(self) -> str:
        """The execution, under its name in documents, which is kept."""
        return self.execution

    @property
    def nesting(self) -> str | None:
        """The classes and modes, likewise."""
        return self.class_edge


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault, or one that would be a fault if it were not guarded."""

    rung: Rung
    kind: Kind
    text: str
    """One sentence: what, by which execution."""
    edges: tuple[Edge, ...]
    why: tuple[str, ...] = ()
    """At R1 why it is safe; above, why no filter applies; at R0 what would be right."""
    clause: str | None = None
    """The clause of the declaration that was broken."""
    fingerprint: str = ""
    count: int = 1
    test: str | None = None
    """The name of the session that saw it first: the test, under pytest."""
    points: tuple[SchedulingPoint, ...] = ()
    """From R2 on, where the executions would be stuck, in terms by which another run finds the places."""
    replay: str | None = None
    """At R4, and at R5 over locks, the file that `replay` forces the deadlock with."""

    @property
    def stops(self) -> tuple[SchedulingPoint, ...]:
        """The points, under their name in documents, which is kept."""
        return self.points

    def __str__(self) -> str:
        return f"{self.rung.name} {self.kind.value}: {self.text}"


def fingerprint_of(*parts: str) -> str:
    """Return a short name for what the parts describe, the same in every run."""
    text = _LINE.sub(r"\1", "\0".join(parts))
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:12]


def fingerprint_of_cycle(kind: str, steps: Sequence[str]) -> str:
    """Return the fingerprint of a cycle, the same from whichever step it was found."""
    return fingerprint_of(kind, *min((*steps[at:], *steps[:at]) for at in range(len(steps))))


def fingerprint_of_steps(edges: Sequence[Edge]) -> str:
    """Return the fingerprint of a deadlock that can happen or has: the same at every rung.

    A step is made of classes, modes and places, so that two cycles over the same classes differ.
    """
    return fingerprint_of_cycle(
        "deadlock",
        [
            f"{edge.class_edge or ''} {place_text(edge.hold_stack)} {place_text(edge.want_stack)}"
            for edge in edges
        ],
    )


def place_text(stack: Sequence[Frame]) -> str:
    """Return the innermost place of a stack in terms that edits elsewhere do not change."""
    if not stack:
        return ""
    return f"{PurePath(stack[0].file).name}:{stack[0].function}:{stack[0].source}"
