"""What watches the partitions of a scheduler: nothing, or the recorder that its program asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...model.errors import LicorneError
from ..recording.observer import Unobserved

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ...actors.engine import Engine
    from ...actors.log import Log
    from ..recording.observer import Observer
    from ..recording.recording import Recording
    from .engine_names import EngineName

__all__ = ["observer_for"]


def observer_for(
    record: Recording | Path | str | None,
    engine_name: EngineName,
    engine: Engine,
    *,
    now_ns: Callable[[], int],
    log: Log,
    stepped: bool,
    reservations_on: bool,
) -> Observer:
    """Return a recorder if one is wanted; if there can be none, the engine is closed.

    Raises:
        LicorneError: nothing can be recorded with this engine, or into this folder.
    """
    if record is None:
        return Unobserved()
    from ..recording.recorder import TurnRecorder  # noqa: PLC0415 - few schedulers are recorded
    from ..recording.recording import recording_of  # noqa: PLC0415 - likewise

    try:
        _check_engine(engine_name)
        return TurnRecorder(
            recording_of(record),
            now_ns=now_ns,
            log=log,
            may_hold=not stepped,
            reservations_on=reservations_on,
        )
    except LicorneError:
        engine.close()
        raise


def _check_engine(engine_name: EngineName) -> None:
    """Refuse an engine whose cycles may begin anew when others have changed something.

    Raises:
        LicorneError: it is one.
    """
    if engine_name == "threads":
        raise LicorneError("record is for the engines actors and direct, not for threads")
