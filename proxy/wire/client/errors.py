"""Errors of a client whose scheduler is in another process."""

from __future__ import annotations

from ....model.errors import RequestError
from ...core.scheduler.answering.questions import UnavailableError


class ConnectionLostError(UnavailableError):
    """There is no connection to the scheduler now; the text has the address and the reason.

    The request has not been carried out, or it is not known whether it has been: the requests of the
    resource manager count that follow its next registration.
    """

    def __init__(self, text: str, *, is_passing: bool = True, by_server: bool = False) -> None:
        super().__init__(text)
        self.is_passing = is_passing
        """Whether the same may succeed a moment later: not if the server refuses who or what asks."""
        self.by_server = by_server
        """Whether the server has ended the session with a status and a reason: it runs, and answers."""


class NotSentError(RequestError):
    """A request waited too long to be sent, since the scheduler does not read; no part of it was sent.

    The connection may still be alive: the same request may be made again.
    """
