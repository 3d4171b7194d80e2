"""The engines that a scheduler can use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...actors.engine import ActorsEngine, DirectEngine
from ...actors.threads_engine import ThreadsEngine
from ...model.build_kind import is_compiled
from ...model.errors import LicorneError
from .engine_names import engine_named

if TYPE_CHECKING:
    from ...actors.engine import Engine
    from ...actors.log import Log
    from .engine_names import EngineName

__all__ = ["make_engine"]

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
        LicorneError: There is no engine of that name, or it cannot have this number of threads, or share one.
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
        count = threads or (1 if stepped else DEFAULT_THREADS)
        return ThreadsEngine(threads=count, automatic=not stepped, share_partitions=share_partitions, log=log)
    if engine == "direct":
        return DirectEngine()
    workers = 0 if stepped else 2
    return ActorsEngine(workers=workers, automatic=not stepped, check_direction=check_direction, log=log)
