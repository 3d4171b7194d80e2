"""What executions took before an end that others may wait for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, cast, final

from ..holding.chains import Execution
from ..holding.runtime import Interpreter, fails_open, runtime
from .active import current
from .graph import Dependency
from .watch import Watch

TAKEN_MAX: Final = 64
"""How many acquisitions of an execution are remembered."""
EXECUTIONS_MAX: Final = 256
"""Of how many executions in a session: all that comes after one of them keeps that it does."""


@final
class Notes:
    """What is known of an execution since it last notified others, in a session."""

    __slots__ = ("ends", "taken")

    def __init__(self) -> None:
        self.taken: list[Dependency] = []
        self.ends: list[Callable[[], None]] = []
        """By which to note of ends that others know that they have come."""


def has_room(watch: Watch, execution: Execution) -> bool:
    """Return whether another acquisition of an execution would be remembered."""
    known = watch.notes.get(execution)
    return len(known.taken) < TAKEN_MAX if known is not None else watch.executions_noted < EXECUTIONS_MAX


def note_taken(watch: Watch, execution: Execution, dependency: Dependency) -> None:
    """Remember an acquisition of an execution."""
    known = watch.notes.get(execution)
    if known is None:
        known = Notes()
        watch.notes.put(execution, known)
        watch.executions_noted += 1
    known.taken.append(dependency)


def _notes(execution: Execution | None) -> Notes | None:
    watch = current()
    return watch.notes.get(execution) if watch is not None and execution is not None else None


def note_come(execution: Execution, noticed: Callable[[], None]) -> None:
    """Remember an end that has come by an execution: when it notifies others, they may know that."""
    known = _notes(execution)
    if known is not None:
        known.ends.append(noticed)


@fails_open(cast("Sequence[Dependency]", ()))
def taken_by(execution: Execution) -> Sequence[Dependency]:
    """Return what an execution took since it last notified others, as far as that is remembered."""
    known = _notes(execution)
    return tuple(known.taken) if known is not None else ()


@fails_open(None)
def forget_taken() -> None:
    """Forget what the calling execution took: it notifies others, who may know then that it did."""
    known = _notes(runtime.running.get(Interpreter.thread_number()))  # a new thread has none yet
    if known is not None and (known.taken or known.ends):
        ends, known.ends = known.ends, []
        known.taken = []
        for noticed in ends:
            noticed()
