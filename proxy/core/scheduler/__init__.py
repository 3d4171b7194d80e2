"""The embedded scheduler: calls of `si.v1` in, callbacks out, on an engine that the program chooses.

It owns the registered resource managers (RMs), their links and partitions, registrations and reloads, and the
end. It may import `proxy.si`, `proxy.core.resolvers`, `actors` and `model`. `Scheduler` is loaded when it is
used: reading the names of the engines loads no engine.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from licorne.proxy.core.scheduler.scheduler import Scheduler

__all__ = ["Scheduler"]


def __getattr__(name: str) -> object:
    """Load the scheduler when it is used first.

    By its full name: mypy also finds this folder as the parent of the tests that mirror it.
    """
    if name == "Scheduler":
        from licorne.proxy.core.scheduler.scheduler import Scheduler  # noqa: PLC0415

        return Scheduler
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
