"""The asks of actors as lockcheck checks them: asker, answerer, and the locks that the asker holds.

A dispatcher that is made while locks are checked has its asks checked; other dispatchers have no cost.
"""

from __future__ import annotations

import os
import threading
from typing import Final

import pykka

from ... import lockcheck
from ...lockcheck import DeadlockError
from ...lockcheck.checking.answering import Answerer, await_answer
from ...lockcheck.holding.stacks import Runtimes
from .pool import on_worker
from .waiting import AskRule, OpenWait

_RUNTIMES: Final = Runtimes(
    *(
        os.path.dirname(file) + os.sep  # noqa: PTH120 - compared as text
        for file in (__file__, pykka.__file__, lockcheck.__file__)
    ),
    threading.__file__,
)


def checked_asks(name: str, key: object, rank: int | None, direction: AskRule | None) -> AskRule:
    """Return the rule that reports the asks of one actor to lockcheck.

    Args:
        name: the class of the actor, as a declared order names it.
        key: the actor's key in its class.
        rank: the actor's place in the order of asks.
        direction: the rule that refuses asks of it that go up, if the dispatcher has one.
    """
    asks = CheckedAsks(name, _RUNTIMES, key=key, rank=rank, serves=on_worker)
    return asks if direction is None else DirectedCheckedAsks(direction, asks)


class CheckedAsks(Answerer):
    """The asks of one actor, as lockcheck checks them."""

    def sleep(self, wait: OpenWait) -> None:
        """Sleep until woken, and look for deadlocks over locks and asks meanwhile.

        Raises:
            DeadlockError: there is one, and this wait is its victim. If the wait is the ask itself, its
                message is withdrawn while all threads that could handle it are known to wait.
        """
        try:
            await_answer(str(wait.future), wait.future.answerer, wait.woken)
        except DeadlockError as error:
            if wait.withdraws:
                wait.future.withdraw(error)
            raise


class DirectedCheckedAsks:
    """The rule that refuses asks that go up and reports the others to lockcheck."""

    def __init__(self, direction: AskRule, asks: AskRule) -> None:
        self._direction = direction
        self._asks = asks
        self.sleep = asks.sleep

    def asked(self, *, limited: bool = False) -> None:
        """Pass an ask that is about to be waited for, or raise; see both."""
        self._direction.asked(limited=limited)
        self._asks.asked(limited=limited)

    def enter(self) -> None:
        """Count the thread as running the actor, until `leave`."""
        self._asks.enter()
        self._direction.enter()

    def leave(self) -> None:
        """Note that the thread no longer runs the actor."""
        self._direction.leave()
        self._asks.leave()
