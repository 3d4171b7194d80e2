"""Findings, and their texts that a person can act on."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Final, final

from .terms import Frame, Kind, Mode, Rung

_WORDS: Final[Mapping[tuple[Kind | None, Rung], str]] = {
    (Kind.CYCLE, Rung.R1): "No deadlock, since something guards it",
    (Kind.RECURSION, Rung.R1): "Advice",
    (Kind.CYCLE, Rung.R2): "Possible deadlock, not seen yet",
    (Kind.CYCLE, Rung.R4): "Deadlock, confirmed",
    (Kind.DEADLOCK, Rung.R4): "Deadlock, confirmed",
    (Kind.DEADLOCK, Rung.R5): "Deadlock, which happened",
    (None, Rung.RB): "May block others",
    (None, Rung.R0): "Broken rule",
    (None, Rung.R1): "Allowed",
    (None, Rung.R2): "Possible fault, not seen yet",
    (None, Rung.R4): "Fault, confirmed",
    (None, Rung.R5): "Fault, which happened",
}
"""Names of findings, by kind and rung."""
_LINE: Final = re.compile(r"(\.pyw?):\d+")
"""The line in the name of a lock that was named after its place."""
_NUMBERED: Final = re.compile(r"^Thread-\d+(?: \((?P<target>.*)\))?$|^(?P<pool>.*?)(?:[-_]\d+)+$")
"""Names that `threading` and pools make: `Thread-3 (work)`, `ThreadPoolExecutor-0_1`."""
_PLACED: Final = re.compile(r"^(.*\.pyw?):\d+$")
"""Names of locks whose line does not show what they are assigned to."""


@dataclass(frozen=True, slots=True)
class Edge:
    """An execution held one lock and requested another: a step of a cycle, or the place of a broken rule."""

    execution: str
    """The name of the execution: of a thread, or the one given to `unit`."""
    held: str | None
    """The lock that was held, with key and mode; `None` without one."""
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
    def rung_text(self) -> str:
        """The rung and the kind, such as `R2 cycle`."""
        return f"{self.rung.name} {self.kind.value}"

    @property
    def sentence(self) -> str:
        """A summary in words: `Possible deadlock, not seen yet: a then b in f(), b then a in g()`."""
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


def role_of(name: str) -> str:
    """Return the name of an execution without the numbers that differ from run to run."""
    found = _NUMBERED.match(name)
    if found is None:
        return name
    return found["target"] or found["pool"] or "Thread"


def class_text(name: str) -> str:
    """Return the class of a lock for comparisons: a name that was made from a place loses the line."""
    return _PLACED.sub(r"\1", name)


@final
@dataclass(frozen=True, slots=True)
class SourcePlace:
    """A place in the code; its line number is for people alone."""

    file: str
    function: str
    source: str
    """The text of the line."""
    line: int

    def is_at(self, frame: Frame, *, same_source: bool) -> bool:
        """Return whether a frame is at this place; the folder of the file and the line may differ."""
        return (
            PurePath(self.file).name == PurePath(frame.file).name
            and self.function == frame.function
            and (not same_source or not self.source or self.source == frame.source)
        )

    def __str__(self) -> str:
        return f"{self.file}:{self.line} in {self.function}"


@final
@dataclass(frozen=True, slots=True)
class WitnessLock:
    """A lock that is taken in one mode, and where."""

    number: int
    """The number of the lock in the witness, since two of one class may have no keys."""
    lock: str
    """Its class."""
    key: str | None
    mode: Mode
    place: SourcePlace

    def excludes(self, other: WitnessLock) -> bool:
        """Return whether both are of the same lock, in modes that exclude each other."""
        return self.number == other.number and "W" in {self.mode, other.mode}

    def __str__(self) -> str:
        named = self.lock if self.key is None else f"{self.lock} {self.key}"
        return f"{named} [{self.mode}]"


@final
@dataclass(frozen=True, slots=True)
class Ending:
    """The end of a thread that is waited for, or what the thread signals later, and where."""

    role: str
    place: SourcePlace
    what: str | None = None
    """The signal of the thread, in words, such as an event; `None` for its end."""

    def __str__(self) -> str:
        return f"the end of {self.role}" if self.what is None else f"{self.what}, from {self.role}"


@final
@dataclass(frozen=True, slots=True)
class SchedulingPoint:
    """A scheduling point, at which a thread gets stuck: what it holds, and what it wants."""

    execution: str
    """The name of the thread."""
    role: str
    """Its name without numbers."""
    held: tuple[WitnessLock, ...]
    """Outermost first."""
    wanted: WitnessLock | Ending
    occurrence: int | None = None
    """How often the thread comes to the place until it is stuck there; `None` if that is not known."""
    late: bool = False
    """Whether the others are at their points before it takes what it holds."""

    def shared_lock(self, before: SchedulingPoint) -> WitnessLock | None:
        """Return the lock that it holds and the point before wants; `None` if that waits for its end."""
        wanted = before.wanted
        if isinstance(wanted, Ending):
            return None
        return next((held for held in self.held if held.number == wanted.number), None)

    @property
    def holds_and_wants(self) -> str:
        """The locks that it holds and requests, in words."""
        return f"holds {', '.join(map(str, self.held)) or 'nothing'} and wants {self.wanted}"

    def __str__(self) -> str:
        return f"{self.role} {self.holds_and_wants}"


@final
@dataclass(frozen=True, slots=True)
class Witness:
    """A deadlock and how to reach it: each point waits for the next one, and the last for the first."""

    fingerprint: str
    """The fingerprint of the finding."""
    rung: Rung
    """How strong the evidence for it is."""
    kind: Kind
    text: str
    points: tuple[SchedulingPoint, ...]
    order: tuple[int, ...]
    """The indexes of the points, in the order in which they begin to wait."""
    aside: tuple[str, ...] = ()
    """Roles of other threads that have to be kept off the locks until then."""

    @property
    def steps(self) -> tuple[tuple[int, WitnessLock | Ending, bool], ...]:
        """The forced schedule: index of the point, lock or end, and whether it is taken or waited for."""
        by_time = sorted(range(len(self.points)), key=lambda at: self.points[at].late)
        takes = ((at, held, True) for at in by_time for held in self.points[at].held)
        return (*takes, *((at, self.points[at].wanted, False) for at in self.order))


def waiting_order(points: tuple[SchedulingPoint, ...]) -> tuple[int, ...]:
    """Return an order in which points can begin to wait: a writer before the readers that wait for it."""
    order: list[int] = []
    while len(order) < len(points):
        left = [at for at in range(len(points)) if at not in order]
        free = [at for at in left if _is_held(points, at) or (at + 1) % len(points) in order]
        order.append((free or left)[0])
    return tuple(order)


def _is_held(points: tuple[SchedulingPoint, ...], at: int) -> bool:
    """Return whether the next one holds what a point wants, so that it waits in any case."""
    wanted = points[at].wanted
    following = points[(at + 1) % len(points)]
    return (
        isinstance(wanted, Ending)
        or wanted.mode == "W"
        or any(held.excludes(wanted) for held in following.held)
    )


FRAMES_MAX: Final = 8


def finding_text(finding: Finding, sites: Mapping[str, int]) -> str:
    """Yield the lines of a finding: a summary, where each lock was taken and requested, and the reasons.

    Args:
        finding: what was found.
        sites: how many places in the code make each edge, for the suggestion which one to reverse.
    """
    return "\n".join(_lines(finding, sites))


def _lines(finding: Finding, sites: Mapping[str, int]) -> Iterator[str]:
    times = f", {finding.count} times" if finding.count > 1 else ""
    test = f", first in {finding.test}" if finding.test else ""
    yield f"{finding.sentence}  [{finding.rung_text}, {finding.fingerprint}{times}{test}]"
    if finding.clause is not None:
        yield f"  declared: {finding.clause}"
    for edge in finding.edges:
        yield from _edge_lines(edge)
    drawn = scenario(finding)
    if drawn:
        safe = finding.rung is Rung.R1
        yield "  how it would come to a standstill:" if safe else "  how it comes to a standstill:"
        yield from (f"    {line}" for line in drawn)
    if finding.why:
        yield "  what speaks against it:" if finding.rung is Rung.R1 else "  why:"
        yield from (f"    - {reason}" for reason in finding.why)
    if finding.replay is not None:
        yield f"  replay file: {finding.replay}"
    advice = suggestion(finding, sites)
    if advice is not None:
        yield f"  suggestion: {advice}"


def suggestion(finding: Finding, sites: Mapping[str, int]) -> str | None:
    """Return which step of a cycle to reverse, in words; `None` if the finding is not a cycle."""
    if finding.kind not in {Kind.CYCLE, Kind.DEADLOCK}:
        return None
    # An actor that runs as a separate execution holds itself, and cannot release that.
    holding = [edge for edge in finding.edges if edge.held not in {None, edge.execution}]
    if not holding:
        return None
    edge = suggested(holding, sites)
    wanted = edge.wanted.partition(", in the way is ")[0]
    if edge.class_edge is None:  # not a lock, so it cannot be taken before
        return f"have {edge.execution} release {edge.held} before it waits for {wanted}"
    count = sites.get(edge.class_edge, 0)
    places = f" ({count} {'place' if count == 1 else 'places'} in the code)" if count else ""
    return f"let {edge.execution} take {wanted} before {edge.held}{places}, or release {edge.held} first"


def suggested(edges: Sequence[Edge], sites: Mapping[str, int]) -> Edge:
    """Return the edge to reverse: that of the fewest places, and of equals the one that holds least."""
    return min(
        edges, key=lambda edge: (sites.get(edge.class_edge, 1) if edge.class_edge else 1, len(edge.all_held))
    )


def _edge_lines(edge: Edge) -> Iterator[str]:
    if edge.held is not None:
        yield f"  {edge.execution} held {edge.held}, taken at"
        yield from _stack(edge.hold_stack)
    if edge.wanted != "None":
        yield f"  {edge.execution} wanted {edge.wanted} at"
        yield from _stack(edge.want_stack)
    elif edge.want_stack:
        yield f"  {edge.execution} was at"
        yield from _stack(edge.want_stack)
    if len(edge.all_held) > 1:
        yield f"    all that it held: {', '.join(edge.all_held)}"


def _stack(frames: tuple[Frame, ...]) -> Iterator[str]:
    if not frames:
        yield "    (no stack: the level `order` keeps none)"
    yield from (f"    {frame}" for frame in frames[:FRAMES_MAX])


def scenario(finding: Finding) -> list[str]:
    """Yield the executions of a cycle side by side: first each takes what it holds, then each waits."""
    if finding.kind not in {Kind.CYCLE, Kind.DEADLOCK}:
        return []
    edges = finding.edges
    rows: list[tuple[int, str]] = []
    rows += [(place, f"takes {edge.held}") for place, edge in enumerate(edges) if edge.held is not None]
    rows += [(place, f"waits for {edge.wanted}") for place, edge in enumerate(edges)]
    widths = [
        max(len(edge.execution), *(len(text) for at, text in rows if at == place))
        for place, edge in enumerate(edges)
    ]
    drawn = [_row([edge.execution for edge in edges], widths)]
    for place, text in rows:
        drawn.append(_row([text if at == place else "" for at in range(len(edges))], widths))
    return drawn


def _row(cells: list[str], widths: list[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def counted(count: int, one: str, many: str = "") -> str:
    """Return a number with what it counts: `1 edge`, `2 edges`; `many` is a plural without `s`."""
    return f"{count} {one if count == 1 else many or one + 's'}"
