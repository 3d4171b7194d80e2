"""Whether the worker of a session is alive, and how far it has come.

Pings of gRPC are answered by threads of C, also where Python does nothing any more. So each session asks a
question that passes through the turn of the partition.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Final, final

from ...si import licorne_v1_pb2 as v1
from ..client.connection import Connection
from ..client.errors import ConnectionLostError, NotSentError

SILENCE_SECONDS: Final = 30
"""A worker that says nothing for so long, and does not answer meanwhile, is lost."""
TICK_SECONDS: Final = 1.0
_ASKED_AFTER_SECONDS: Final = 5
"""A worker that says nothing for so long is asked."""


@final
class Pulse:
    """The signs of life in one session; its owner guards it, and calls `tick` once a second.

    Seconds are counted by calls: a door that was stopped itself has not waited meanwhile.

    Args:
        connection: Returns the session.
    """

    def __init__(self, connection: Callable[[], Connection]) -> None:
        self._connection = connection
        self._signs = -1
        self._silent_seconds = 0
        self._question: Future[v1.Answer] | None = None
        self._asked_behind = 0
        self.hangs_behind: int | None = None
        """How many requests the worker was sent before the question that it does not answer, when the session
        was ended for that."""

    def tick(self, sent: int) -> int | None:
        """Note that a second has passed; ask the worker if it is time, and end a session that is silent.

        Args:
            sent: How many requests the worker was sent that are not known to be carried out.

        Returns:
            How many of them are carried out, as an answer says that has come; `None` if none has.

        Raises:
            RequestError: The session is lost.
        """
        connection = self._connection()
        through = None
        if self._question is not None and self._question.done():
            if not isinstance(self._question.exception(), ConnectionLostError):
                through = self._asked_behind
            self._question = None
        signs = connection.signs
        is_silent = signs == self._signs and not connection.is_held_up
        self._signs = signs
        self._silent_seconds = self._silent_seconds + 1 if is_silent else 0
        open_now = max(sent - (through or 0), 0)
        if self._question is None and (open_now or self._silent_seconds >= _ASKED_AFTER_SECONDS):
            with suppress(NotSentError, ConnectionLostError):  # It does not read: that is silence, too.
                self._question = connection.ask_sign()
                self._asked_behind = open_now
        if self._silent_seconds >= SILENCE_SECONDS:
            self.hangs_behind = None if self._question is None else self._asked_behind
            connection.end(f"the worker has given no sign of life for {SILENCE_SECONDS} s")
        return through
