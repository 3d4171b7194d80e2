"""The parts of a scheduler by its settings: its engine, and the observers of its partitions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from ....actors.engines.engine import ActorsEngine, DirectEngine, Engine
from ....actors.services.log import Log
from ....model.errors import LicorneError
from ....model.policies.policies import GivenPolicies
from ...base.process import is_compiled
from ..recording.observer import Observer, Unobserved
from ..recording.recording import Recording
from .engine_names import EngineName, engine_named

DEFAULT_THREADS: Final = 2


def make_engine(
    engine: EngineName,
    *,
    stepped: bool,
    threads: int | None,
    share_partitions: bool,
    check_direction: bool,
    log: Log,
) -> Engine:
    """Make an engine.

    Args:
        engine: Its name.
        stepped: Whether nothing runs by itself.
        threads: How many scheduling threads the engine `threads` has; by default two, stepped one.
        share_partitions: Whether several of these threads place in one partition at once.
        check_direction: Refuse asks between actors that go up or sideways; for tests.
        log: Gets what happens to the actors.

    Raises:
        LicorneError: The engine is unknown, or cannot have this number of threads, or share partitions.
    """
    engine = engine_named(engine)
    if threads is not None and engine != "threads":
        raise LicorneError(f"threads={threads} is for the engine threads, not for {engine}")
    if threads is not None and threads < 1:
        raise LicorneError(f"threads={threads}: there must be one thread at least")
    if share_partitions and engine != "threads":
        raise LicorneError(f"share_partitions=True is for the engine threads, not for {engine}")
    if share_partitions and (stepped or threads == 1):
        raise LicorneError(
            "share_partitions=True takes a scheduler that runs by itself, on two threads or more"
        )
    if share_partitions and is_compiled():
        raise LicorneError("share_partitions=True takes pure Python, and this build of licorne is compiled")
    if engine == "threads":
        from ....actors.locks.threads_engine import ThreadsEngine  # noqa: PLC0415 - loads its locks

        count = threads or (1 if stepped else DEFAULT_THREADS)
        return ThreadsEngine(threads=count, automatic=not stepped, share_partitions=share_partitions, log=log)
    if engine == "direct":
        return DirectEngine()
    workers = 0 if stepped else 2
    return ActorsEngine(workers=workers, automatic=not stepped, check_direction=check_direction, log=log)


def observer_for(
    record: Recording | Path | str | None,
    engine_name: EngineName,
    engine: Engine,
    *,
    now_ns: Callable[[], int],
    log: Log,
    stepped: bool,
    reservations_on: bool,
    policies: GivenPolicies,
) -> Observer:
    """Return a recorder if one is asked for; if there can be none, the engine is closed.

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
            policies=policies,
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
