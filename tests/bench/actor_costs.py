"""Print what the actor runtime costs, the best of several runs: `python tests/bench/actor_costs.py`."""

from __future__ import annotations

import gc
import threading
import time
import timeit
import tracemalloc

import pykka
from loguru import logger

from licorne.actors.runtime.actor import PooledActor
from licorne.actors.runtime.dispatcher import Dispatcher
from licorne.actors.runtime.reference import AnyRef

LOCK = threading.RLock()


class Plain:
    """What all are compared with."""

    def echo(self, value: int) -> int:
        """Return the value."""
        return value

    def echo_locked(self, value: int) -> int:
        """Return the value under a lock."""
        with LOCK:
            return value


class Leaf(PooledActor):
    """An actor that does nothing."""

    def echo(self, value: int) -> int:
        """Return the value."""
        return value


class Level(Leaf):
    """An actor that asks the one below."""

    def __init__(self, below: AnyRef) -> None:
        super().__init__()
        self.below = below

    def echo(self, value: int) -> int:
        """Return the value from below."""
        return self.below.call(Leaf.echo, value)


class Threaded(pykka.ThreadingActor):
    """Pykka's actor."""

    use_daemon_thread = True

    def echo(self, value: int) -> int:
        """Return the value."""
        return value


def show(label: str, statement: str, names: dict[str, object], number: int = 50_000) -> None:
    """Print the best of seven runs."""
    best = min(timeit.repeat(statement, globals={**globals(), **names}, number=number, repeat=7)) / number
    print(f"{label:45s} {best * 1e6:8.2f} µs")


def show_calls() -> None:
    """Print the cost of a call of every kind."""
    show("plain method", "plain.echo(1)", {"plain": Plain()}, 500_000)
    show("plain method under an RLock", "plain.echo_locked(1)", {"plain": Plain()}, 200_000)
    with Dispatcher(workers=1) as dispatcher:
        leaf = dispatcher.start(Leaf)
        names = {
            "leaf": leaf,
            "top": dispatcher.start(Level, dispatcher.start(Level, dispatcher.start(Leaf))),
            "proxy": leaf.proxy(),
            "threaded": Threaded.start().proxy(),
        }
        show("inline ask", "leaf.call(Leaf.echo, 1)", names, 200_000)
        show("three levels of inline asks", "top.call(Leaf.echo, 1)", names)
        show("proxy call, pooled", "proxy.echo(1).get()", names, 5_000)
        show("proxy call, ThreadingActor", "threaded.echo(1).get()", names, 5_000)
    with Dispatcher(workers=0) as dispatcher:
        names = {"leaf": dispatcher.start(Leaf), "dispatcher": dispatcher}
        show(
            "queued ask (behind a tell), both handled",
            "leaf.send(Leaf.echo, 1); leaf.call(Leaf.echo, 1)",
            names,
        )
        show("tell", "leaf.send(Leaf.echo, 1)", names)
        dispatcher.run_pending()
        show("tell and turn", "leaf.send(Leaf.echo, 1); dispatcher.run_pending()", names)


def show_ten_thousand() -> None:
    """Print what many actors cost."""
    count = 10_000
    with Dispatcher(workers=2) as dispatcher:
        gc.collect()
        tracemalloc.start()
        refs = [dispatcher.start(Leaf) for _ in range(count)]
        gc.collect()
        bytes_each = tracemalloc.get_traced_memory()[0] / count
        print(f"{'memory of an actor and its reference':45s} {bytes_each:8.0f} B")
        tracemalloc.stop()
        del refs
    dispatcher = Dispatcher(workers=2)
    begun = time.perf_counter()
    for _ in range(count):
        dispatcher.start(Leaf)
    started = time.perf_counter()
    dispatcher.shutdown()
    ended = time.perf_counter()
    print(f"{'start of 10,000 actors':45s} {started - begun:8.2f} s")
    print(f"{'stop of 10,000 actors':45s} {ended - started:8.2f} s")


if __name__ == "__main__":
    logger.disable("licorne")
    show_calls()
    show_ten_thousand()
