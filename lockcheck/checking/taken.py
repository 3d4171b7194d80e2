"""What executions took before an end that others may wait for; see `ends`."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final, cast

from ..findings.foreign import ByIdentity
from ..holding.runtime import fails_open, runtime

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..holding.chains import Execution
    from .graph import Dependency
    from .watch import Watch

__all__ = ["forget_taken", "has_room", "note_taken", "taken_by"]

TAKEN_MAX: Final = 64
"""How many acquisitions of an execution are remembered."""
EXECUTIONS_MAX: Final = 256
"""Of how many executions in a session: all that comes after one of them keeps that it does."""

_taken: Final[ByIdentity[list[Dependency]]] = ByIdentity()
"""What each execution took since it last notified others."""


def has_room(watch: Watch, execution: Execution) -> bool:
    """Return whether another acquisition of an execution would be remembered; none is of the main thread."""
    known = _taken.get(execution)
    if known is None:
        main = runtime.threads.get(threading.main_thread())
        return watch.executions_noted < EXECUTIONS_MAX and execution is not main
    return len(known) < TAKEN_MAX


def note_taken(watch: Watch, execution: Execution, dependency: Dependency) -> None:
    """Remember an acquisition of an execution."""
    known = _taken.get(execution)
    if known is None:
        _taken.put(execution, [dependency])
        watch.executions_noted += 1
    else:
        known.append(dependency)


@fails_open(cast("Sequence[Dependency]", ()))
def taken_by(execution: Execution) -> Sequence[Dependency]:
    """Return what an execution took since it last notified others, as far as that is remembered."""
    return tuple(_taken.get(execution) or ())


@fails_open(None)
def forget_taken() -> None:
    """Forget what the calling execution took: it tells others something, who may know then that it did."""
    execution = runtime.running.get(threading.get_ident())  # a new thread has none yet
    known = _taken.get(execution) if execution is not None else None
    if known:
        known.clear()
