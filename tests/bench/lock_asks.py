"""What an ask of an actor costs while asks are checked, and while none is."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import ClassVar, Final, final

from lock_costs import ORDER
from report import Figure

from licorne import lockcheck
from licorne.actors.runtime.actor import PooledActor
from licorne.actors.runtime.dispatcher import Dispatcher
from licorne.actors.runtime.reference import PooledRef

_LEVELS: Final = (lockcheck.Level.ORDER, lockcheck.Level.FULL)


class _Echo(PooledActor):
    """An actor that does nothing."""

    rank: ClassVar[int | None] = 2

    def echo(self, value: int) -> int:
        """Return the value."""
        return value


class _Asker(PooledActor):
    """An actor that asks another one."""

    rank: ClassVar[int | None] = 1

    def run(self, work: Callable[[], float]) -> float:
        """Do some work, as this actor."""
        return work()


def checked_asks(
    clock_seconds: Callable[[], float], *, times: int = 200, rounds: int = 60
) -> tuple[Figure, ...]:
    """Return what checking adds to an ask of an idle actor, and to one that waits behind a message.

    An idle actor is asked by a thread that runs none, and by another actor, as in a scheduler nearly all are.
    """
    fastest = {level: _Fastest(clock_seconds, times) for level in (lockcheck.Level.OFF, *_LEVELS)}
    for _ in range(rounds):
        for level, asks in fastest.items():
            checks = level is not lockcheck.Level.OFF
            with lockcheck.session(lockcheck.Order(ORDER), level=level) if checks else nullcontext():
                asks.measure()
    unchecked = fastest[lockcheck.Level.OFF].microseconds
    figures: list[Figure] = []
    for way, microseconds in unchecked.items():
        figures.append(Figure(f"an ask {way}, unchecked", microseconds, "µs"))
        figures.extend(
            Figure(
                f"checking it adds, {level.name.lower()}",
                fastest[level].microseconds[way] - microseconds,
                "µs",
                wanted_max=1.0,
            )
            for level in _LEVELS
        )
    return tuple(figures)


@final
class _Fastest:
    """The fastest rounds of asks, in microseconds each."""

    def __init__(self, clock_seconds: Callable[[], float], times: int) -> None:
        self._clock = clock_seconds
        self._times = times
        self._idle = self._by_actor = self._tell = self._behind = float("inf")

    @property
    def microseconds(self) -> dict[str, float]:
        """How long an ask takes each way; queued, without the message that it waits behind."""
        return {
            "of an idle actor": self._idle,
            "of an idle actor by another one": self._by_actor,
            "queued": self._behind - self._tell,
        }

    def measure(self) -> None:
        """Time a round of each."""
        with Dispatcher(workers=0) as dispatcher:
            actor, asker = dispatcher.start(_Echo), dispatcher.start(_Asker)

            def tell() -> None:
                actor.send(_Echo.echo, 1)
                dispatcher.run_pending()

            def ask_behind() -> None:
                actor.send(_Echo.echo, 1)
                actor.call(_Echo.echo, 1)

            self._idle = min(self._idle, self._asks(actor))
            self._by_actor = min(self._by_actor, asker.call(_Asker.run, lambda: self._asks(actor)))
            self._tell = min(self._tell, self._microseconds(tell))
            self._behind = min(self._behind, self._microseconds(ask_behind))

    def _asks(self, actor: PooledRef[_Echo]) -> float:
        return self._microseconds(lambda: actor.call(_Echo.echo, 1))

    def _microseconds(self, work: Callable[[], object]) -> float:
        work()
        start = self._clock()
        for _ in range(self._times):
            work()
        return (self._clock() - start) / self._times * 1e6
