"""Findings of the checker, as frozen values."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Final

from .evidence import Frame, Kind, Rung
from .witness import SchedulingPoint

_WORDS: Final[Mapping[tuple[Kind | None, Rung], str]] = {
    (Kind.CYCLE, Rung.R1): "No deadlock, since something guards it",
    (Kind.CYCLE, Rung.R2): "Possible deadlock, not seen yet",
    (Kind.CYCLE, Rung.R3): "Predicted deadlock, not seen yet",
    (Kind.CYCLE, Rung.R4): "Deadlock, confirmed",
    (Kind.DEADLOCK, Rung.R4): "Deadlock, confirmed",
    (Kind.DEADLOCK, Rung.R5): "Deadlock, which happened",
    (None, Rung.RB): "May block others",
    (None, Rung.R0): "Broken rule",
    (None, Rung.R1): "Allowed",
    (None, Rung.R2): "Possible fault, not seen yet",
    (None, Rung.R3): "Predicted fault, not seen yet",
    (None, Rung.R4): "Fault, confirmed",
    (None, Rung.R5): "Fault, which happened",
}
"""What a finding is, by kind and rung."""

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

    @property
    def rung_text(self) -> str:
        """The rung and the kind, such as `R2 cycle`."""
        return f"{self.rung.name} {self.kind.value}"

    @property
    def sentence(self) -> str:
        """What it is, in words: `Possible deadlock, not seen yet: a then b in f(), b then a in g()`."""
        what = _WORDS.get((self.kind, self.rung)) or _WORDS[None, self.rung]
        steps = [_step(edge) for edge in self.edges]
        is_cycle = self.kind is Kind.CYCLE and self.text.startswith("a cycle of ") and all(steps)
        return f"{what}: {', '.join(steps) if is_cycle else self.text}"

    def __str__(self) -> str:
        return f"{self.sentence} [{self.rung_text}]"


def _step(edge: Edge) -> str:
    """Return a step of a cycle with its place in the code; the empty text if that is not known."""
    if not edge.want_stack or edge.held is None:
        return ""
    place = edge.want_stack[0]
    is_named = place.function.rpartition(".")[2].isidentifier()
    where = f"in {place.function}()" if is_named else f"at {PurePath(place.file).name}:{place.line}"
    return f"{edge.held} then {edge.wanted} {where}"


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
