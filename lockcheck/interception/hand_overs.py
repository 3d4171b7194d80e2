"""Orders of threads that hold in every run, by what they hand over to each other.

Only what holds by construction counts, in whichever order threads run: what set an event that is set once
comes before what waited for it without a limit; the first items of a queue with one producer come before
the first gets of a consumer; all that is done before a barrier of that many threads comes before all that is
done after it; tasks come before what follows the end of their pool or a wait for all of them, and before the
callbacks of their futures. If a second thread sets the event, or puts an item, the order no longer counts.

Each hand-over begins a new segment, so only the first of each object are noted: programs hand over millions.
"""

from __future__ import annotations

import sys
import threading
from types import FrameType
from typing import Final, final

from ..findings.foreign import ByIdentity
from ..holding.chains import Segment, together
from ..holding.runtime import LATCH, Interpreter, fails_open, local, may_follow, next_segment

_ROOM: Final = __name__.rpartition(".")[0]
_OWN: Final = ("threading", "concurrent", "pykka")
"""Packages whose own events and queues order nothing here: which thread sets them is chance, or an ask."""

_PROGRAM: Final = "the program"
_CHECKER: Final = "the checker"
_LIBRARY: Final = "a library"


class _Kinds(dict[str, str]):
    """To what modules belong, by their names; each is looked at once, as calls of hooks are many."""

    def __missing__(self, module: str) -> str:
        if module.startswith(_ROOM):
            kind = _CHECKER
        else:
            kind = _LIBRARY if module.partition(".")[0] in _OWN else _PROGRAM
        self[module] = kind
        return kind


_kinds: Final = _Kinds()

HAND_OVERS_MAX: Final = 16
"""How many items of a queue, and rounds of a barrier, are noted."""

_ends: Final[ByIdentity[Segment]] = ByIdentity()
"""The segment that comes before the result of each future."""


def end_of(future: object) -> Segment | None:
    """Return the segment that comes before the result of a future, if it is known."""
    return _ends.get(future)


@fails_open(None)
def note_end(future: object, segment: Segment) -> None:
    """Note the segment that comes before the result of a future."""
    _ends.put(future, segment)


@fails_open(False)
def is_checked() -> bool:
    """Return whether the program calls a hook, on a thread that has an execution."""
    if Interpreter.thread_number() not in threading._active:  # type: ignore[attr-defined] # noqa: SLF001 - a new thread wakes its starter before it is known
        return False
    frame: FrameType | None = sys._getframe(2)  # noqa: SLF001 - the documented way to the caller
    while frame is not None and (kind := _kinds[frame.f_globals.get("__name__", "")]) is not _PROGRAM:
        if kind is _LIBRARY:
            return False
        frame = frame.f_back
    return not local.execution.inside


# ---------------------------------------------------------------------------------- what may order them


@final
class _Channel:
    """What executions may be ordered by: who gives something through it, in whatever order."""

    def __init__(self) -> None:
        self.given: list[Segment] = []
        self.times = 0


_channels: Final[ByIdentity[_Channel]] = ByIdentity()


def may_give(thing: object) -> None:
    """Note that the calling execution gives something through a thing that may order others after it."""
    with LATCH:
        channel = _channels.get(thing)
        if channel is None:
            channel = _Channel()
            _channels.put(thing, channel)
        channel.given = [together([*channel.given, local.execution.segment])]
        channel.times += 1
    if channel.times <= HAND_OVERS_MAX:
        next_segment(local.execution)


def may_get(thing: object) -> None:
    """Note that the calling execution got something through such a thing."""
    channel = _channels.get(thing)
    if channel is not None:
        may_follow(local.execution, channel.given[0], anew=channel.times <= HAND_OVERS_MAX)
