"""Cases with plain Pykka actors, each on a thread of its own: asks that could or would wait for ever, and tells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import pykka
from support.lockcheck.lock_corpus import Bug, Cluster, Safe, hold
from support.lockcheck.pykka_clerks import clerks

from licorne.lockcheck import Kind, Rung


@contextmanager
def proxies(number: int) -> Iterator[Sequence[Any]]:
    """Have proxies of so many actors, until the body ends."""
    with clerks(number) as refs:
        yield [ref.proxy() for ref in refs]


def asks_itself(_: Cluster) -> None:
    """An actor waits for an attribute of itself, though not for ever."""
    with proxies(1) as (one,):
        one.do(partial(a_while, one)).get()


def a_while(proxy: Any) -> None:
    """Wait for an answer for a moment."""
    try:
        proxy.count.get(timeout=0.01)
    except pykka.Timeout:
        return


def ask_each_other(_: Cluster) -> None:
    """Two actors ask each other, and not at once."""
    with proxies(2) as (one, two):
        one.do(partial(count_of, two)).get()
        two.do(partial(count_of, one)).get()


def count_of(proxy: Any) -> object:
    """Ask for it, and wait."""
    return proxy.count.get()


def tell_each_other(_: Cluster) -> None:
    """Two actors have each other and themselves do more, and nobody waits for that."""
    with proxies(2) as (one, two):
        one.do(lambda: two.do.defer(lambda: one.do(int))).get()
        two.do(lambda: one.do(lambda: two.count)).get()
        one.do(lambda: one.do(int)).get()


def ask_before_and_after_the_lock(c: Cluster) -> None:
    """The answer is there before the lock is taken, and looked at again under it."""
    with proxies(1) as (one,):
        count = one.count
        count.get()
        with c.partition.write():
            count.get()
            later = one.count
        later.get()
        one.do(lambda: hold(c.partition.write())).get()


PYKKA_BUGS: Final[Sequence[Bug]] = [
    Bug("an actor of Pykka's waits for an attribute of itself", asks_itself, Kind.RECURSION, ("pykka#48",)),
    Bug("two actors of Pykka's ask each other", ask_each_other, Kind.CYCLE, ("pykka#76", "asks"), Rung.R2, 2),
]

PYKKA_SAFE: Final[Sequence[Safe]] = [
    Safe("actors of Pykka's tell each other and themselves", tell_each_other),
    Safe("answers from before the lock and for after it", ask_before_and_after_the_lock),
]
