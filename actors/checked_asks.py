"""What lockcheck hears of asks: who asks whom while what is held, and who answers.

A dispatcher that is made while locks are checked has its asks checked; any other one pays nothing.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Final

import pykka

from .. import lockcheck
from ..lockcheck import DeadlockError
from ..lockcheck.answering import Answerer, await_answer
from ..lockcheck.stacks import caller_outside
from .pool import Worker

if TYPE_CHECKING:
    from types import FrameType

    from .direction import AskDirection
    from .mailbox import Mailbox
    from .waiting import Wait

__all__ = ["CheckedAsks"]

_RUNTIMES: Final = (
    *(
        os.path.dirname(file) + os.sep  # noqa: PTH120 - compared as text
        for file in (__file__, pykka.__file__, lockcheck.__file__)
    ),
    threading.__file__,
)


class CheckedAsks:
    """The asks of one actor, as lockcheck hears of them.

    Args:
        name: the class of the actor, as a declared order names it.
        key: which of its class it is.
        rank: where it stands in the order of asks.
        direction: what refuses asks that go up, if the dispatcher wants that.
    """

    def __init__(self, name: str, key: object, rank: int | None, direction: AskDirection | None) -> None:
        self._answerer = Answerer(name, key, rank=rank)
        self._direction = direction

    def check(self, asked: Mailbox, *, limited: bool = False) -> None:
        """Have an ask judged that is about to be waited for; see `Answerer.asked`.

        Raises:
            AskDirectionError: it goes up, and the dispatcher checks directions.
        """
        if self._direction is not None:
            self._direction.check(asked)
        self._answerer.asked(_program, limited=limited)

    def enter(self, mailbox: Mailbox) -> None:
        """Count the thread as running this actor, until `leave`."""
        self._answerer.enter(_program, as_unit=isinstance(threading.current_thread(), Worker))
        if self._direction is not None:
            self._direction.enter(mailbox)

    def leave(self, mailbox: Mailbox) -> None:
        """Count the thread as running this actor no more."""
        if self._direction is not None:
            self._direction.leave(mailbox)
        self._answerer.leave()

    def sleep(self, wait: Wait) -> None:
        """Sleep until woken, and look for deadlocks over locks and asks meanwhile.

        Raises:
            DeadlockError: there is one, and this wait was chosen to give way. If it is the ask itself, its
                message is withdrawn while all who could handle it are known to wait.
        """
        try:
            await_answer(str(wait.future), wait.future.answerer, wait.woken)
        except DeadlockError as error:
            if wait.withdraws:
                wait.future.withdraw(error)
            raise


def _program() -> FrameType:
    """Return the innermost frame that belongs to no runtime of actors, or one of lockcheck's if all do."""
    return caller_outside(_RUNTIMES)
