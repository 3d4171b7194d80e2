"""What an ask of an actor costs while asks are checked at the level `order`, and while none is."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, final

from ... import lockcheck
from ...actors.actor import PooledActor
from ...actors.dispatcher import Dispatcher
from .lock_costs import ORDER
from .lock_figure import LockFigure

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["checked_asks"]


class _Echo(PooledActor):
    """An actor that does nothing."""

    rank: ClassVar[int | None] = 1

    def echo(self, value: int) -> int:
        """Return the value."""
        return value


def checked_asks(
    clock_seconds: Callable[[], float], *, times: int = 200, rounds: int = 60
) -> tuple[LockFigure, ...]:
    """Return what checking adds to an ask of an idle actor, and to one that stands behind a message."""
    unchecked = _Fastest(clock_seconds, times)
    checked = _Fastest(clock_seconds, times)
    for _ in range(rounds):
        unchecked.measure()
        with lockcheck.session(lockcheck.Order(ORDER), level="order"):
            checked.measure()
    return (
        LockFigure("an ask of an idle actor, unchecked", unchecked.inline, "µs"),
        LockFigure("checking it adds", checked.inline - unchecked.inline, "µs", wanted_max=1.0),
        LockFigure("an ask by mail, unchecked", unchecked.by_mail, "µs"),
        LockFigure("checking it adds", checked.by_mail - unchecked.by_mail, "µs", wanted_max=1.0),
    )


@final
class _Fastest:
    """The fastest rounds of asks, in microseconds each."""

    def __init__(self, clock_seconds: Callable[[], float], times: int) -> None:
        self._clock = clock_seconds
        self._times = times
        self.inline = self._tell = self._behind = float("inf")

    @property
    def by_mail(self) -> float:
        """How long an ask takes that stands behind a message, without that one."""
        return self._behind - self._tell

    def measure(self) -> None:
        """Time a round of each."""
        with Dispatcher(workers=0) as dispatcher:
            actor = dispatcher.start(_Echo)

            def tell() -> None:
                actor.send(_Echo.echo, 1)
                dispatcher.run_pending()

            def ask() -> None:
                actor.call(_Echo.echo, 1)

            def ask_behind() -> None:
                actor.send(_Echo.echo, 1)
                actor.call(_Echo.echo, 1)

            self.inline = min(self.inline, self._microseconds(ask))
            self._tell = min(self._tell, self._microseconds(tell))
            self._behind = min(self._behind, self._microseconds(ask_behind))

    def _microseconds(self, work: Callable[[], None]) -> float:
        work()
        start = self._clock()
        for _ in range(self._times):
            work()
        return (self._clock() - start) / self._times * 1e6
