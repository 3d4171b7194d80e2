"""Plain Pykka actors that do what they are given, and locks that they take."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pykka
from support.waiting import WAIT_SECONDS


class Clerk(pykka.ThreadingActor):
    """Counts what it is asked, and does what it is given."""

    use_daemon_thread = True

    def __init__(self, starts: Callable[[], object] = int) -> None:
        super().__init__()
        self.count = 0
        self._starts = starts

    def on_start(self) -> None:
        self._starts()

    def on_receive(self, message: object) -> object:
        self.count += 1
        return message() if callable(message) else message

    def do(self, work: Callable[[], object]) -> object:
        return work()


Ref = pykka.ActorRef[Clerk]


@contextmanager
def clerks(number: int = 1) -> Iterator[Sequence[Ref]]:
    """Have so many clerks, until the body ends."""
    refs = [Clerk.start() for _ in range(number)]
    try:
        yield refs
    finally:
        for ref in refs:
            ref.stop(timeout=WAIT_SECONDS)
