"""The engines that a scheduler can be made on, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from ..actors.engine import ActorsEngine, DirectEngine
from ..actors.threads_engine import ThreadsEngine
from ..model.errors import LicorneError

if TYPE_CHECKING:
    from ..actors.engine import Engine
    from ..actors.log import Log

__all__ = ["ENGINES", "EngineName", "make_engine"]

EngineName: TypeAlias = Literal["actors", "direct", "threads"]
ENGINES: Final[tuple[EngineName, ...]] = ("actors", "direct", "threads")
DEFAULT_THREADS: Final = 2


def make_engine(
    engine: EngineName, *, stepped: bool, threads: int | None, check_direction: bool, log: Log
) -> Engine:
    """Make an engine.

    Args:
        engine: Its name.
        stepped: Nothing runs by itself.
        threads: How many scheduling threads the engine `threads` has.
        check_direction: Refuse asks between actors that go up or sideways; for tests.
        log: Where actors say what happens to them.

    Raises:
        LicorneError: There is no engine of that name, or it does not have so many threads.
    """
    if engine not in ENGINES:
        raise LicorneError(f"engine {engine!r} is unknown, there are {', '.join(ENGINES)}")
    if threads is not None and (engine != "threads" or stepped):
        name = f"stepped {engine}" if stepped else engine
        raise LicorneError(f"threads={threads} is for the engine threads that runs by itself, not for {name}")
    if threads is not None and threads < 1:
        raise LicorneError(f"threads={threads}: there must be one thread at least")
    if engine == "threads":
        return ThreadsEngine(threads=threads or DEFAULT_THREADS, automatic=not stepped, log=log)
    if engine == "direct":
        return DirectEngine()
    workers = 0 if stepped else 2
    return ActorsEngine(workers=workers, automatic=not stepped, check_direction=check_direction, log=log)
