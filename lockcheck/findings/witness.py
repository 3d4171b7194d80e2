"""A witness of a deadlock: which threads stand where, holding what and wanting what.

It is told in terms that are the same in every run: classes and keys of locks, roles of threads, and places
in the code by file, function and what the line says. So it can be kept in a file and tried again after
edits elsewhere, in another process and on another version of Python (`witness_file`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Final, final

if TYPE_CHECKING:
    from .evidence import Frame, Kind, Mode, Rung

__all__ = [
    "Ending",
    "SchedulingPoint",
    "SourcePlace",
    "Witness",
    "WitnessLock",
    "class_text",
    "role_of",
    "waiting_order",
]

_NUMBERED: Final = re.compile(r"^Thread-\d+(?: \((?P<target>.*)\))?$|^(?P<pool>.*?)(?:[-_]\d+)+$")
"""Names that `threading` and pools make: `Thread-3 (work)`, `ThreadPoolExecutor-0_1`."""
_PLACED: Final = re.compile(r"^(.*\.pyw?):\d+$")
"""Names that locks get whose line does not say what they are assigned to."""


def role_of(name: str) -> str:
    """Return the name of a unit without the numbers that differ from run to run."""
    found = _NUMBERED.match(name)
    if found is None:
        return name
    return found["target"] or found["pool"] or "Thread"


def class_text(name: str) -> str:
    """Return the class of a lock as it can be compared: one that was called after its place has no line."""
    return _PLACED.sub(r"\1", name)


@final
@dataclass(frozen=True, slots=True)
class SourcePlace:
    """A place in the code; its line only tells a person where to look first."""

    file: str
    function: str
    source: str
    """What the line says."""
    line: int

    def is_at(self, frame: Frame, *, same_source: bool) -> bool:
        """Tell whether a frame is at this place, whatever the folder of the file and the line are now."""
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
    """Which of the witness's locks it is: two of one class may have no keys."""
    lock: str
    """Its class."""
    key: str | None
    mode: Mode
    place: SourcePlace

    def excludes(self, other: WitnessLock) -> bool:
        """Tell whether both are of the same lock, in modes that exclude each other."""
        return self.number == other.number and "W" in {self.mode, other.mode}

    def __str__(self) -> str:
        named = self.lock if self.key is None else f"{self.lock} {self.key}"
        return f"{named} [{self.mode}]"


@final
@dataclass(frozen=True, slots=True)
class Ending:
    """The end of a thread that is waited for, and where."""

    role: str
    place: SourcePlace

    def __str__(self) -> str:
        return f"the end of {self.role}"


@final
@dataclass(frozen=True, slots=True)
class SchedulingPoint:
    """Where a thread is stuck: what it holds, and what it wants."""

    execution: str
    """What the thread was called."""
    role: str
    """What it does: its name without numbers."""
    held: tuple[WitnessLock, ...]
    """Outermost first."""
    wanted: WitnessLock | Ending
    occurrence: int | None = None
    """How often the thread comes to the place until it is stuck there; nothing where nobody knows."""
    late: bool = False
    """Whether the others stand at their places before it takes what it holds."""

    def shared_lock(self, before: SchedulingPoint) -> WitnessLock | None:
        """Return what it holds of what the one before wants; nothing where that waits for itself."""
        wanted = before.wanted
        if isinstance(wanted, Ending):
            return None
        return next((held for held in self.held if held.number == wanted.number), None)

    @property
    def holds_and_wants(self) -> str:
        """What it holds and wants, in words."""
        return f"holds {', '.join(map(str, self.held)) or 'nothing'} and wants {self.wanted}"

    def __str__(self) -> str:
        return f"{self.role} {self.holds_and_wants}"


@final
@dataclass(frozen=True, slots=True)
class Witness:
    """A deadlock, and how to get there: each stop waits for the next one, and the last one for the first."""

    fingerprint: str
    """That of the finding."""
    rung: Rung
    """How strong the evidence for it is."""
    kind: Kind
    text: str
    points: tuple[SchedulingPoint, ...]
    order: tuple[int, ...]
    """The places of the stops, in the order in which they begin to wait."""
    aside: tuple[str, ...] = ()
    """Roles of other threads that have to be kept off the locks until then."""

    @property
    def steps(self) -> tuple[tuple[int, WitnessLock | Ending, bool], ...]:
        """The forced schedule: which stop, what lock or end, and whether it is taken or only waited for."""
        by_time = sorted(range(len(self.points)), key=lambda at: self.points[at].late)
        takes = ((at, held, True) for at in by_time for held in self.points[at].held)
        return (*takes, *((at, self.points[at].wanted, False) for at in self.order))


def waiting_order(points: tuple[SchedulingPoint, ...]) -> tuple[int, ...]:
    """Return an order in which stops can begin to wait: a writer before the readers that stand behind it."""
    order: list[int] = []
    while len(order) < len(points):
        left = [at for at in range(len(points)) if at not in order]
        free = [at for at in left if _is_held(points, at) or (at + 1) % len(points) in order]
        order.append((free or left)[0])
    return tuple(order)


def _is_held(points: tuple[SchedulingPoint, ...], at: int) -> bool:
    """Tell whether the next one holds what a stop wants, so that it waits whoever else waits."""
    wanted = points[at].wanted
    following = points[(at + 1) % len(points)]
    return (
        isinstance(wanted, Ending)
        or wanted.mode == "W"
        or any(held.excludes(wanted) for held in following.held)
    )
