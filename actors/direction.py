"""The rule of asks: cluster > partition > application > node, and a blocking ask goes down only.

With the rule no cycle of waiting actors can exist. The runtime finds cycles that happen; this check
finds asks that could be part of one, whether or not they met another this time. It is for
tests: a dispatcher has it only when made with `check_direction=True`.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from .errors import AskDirectionError

if TYPE_CHECKING:
    from .mailbox import Mailbox

__all__ = ["AskDirection"]


class _Running(threading.local):
    """The ranked actors that the thread runs now, the innermost last."""

    def __init__(self) -> None:
        self.mailboxes: list[Mailbox] = []


class AskDirection:
    """Know which ranked actors of one dispatcher each thread runs, and refuse to wait upwards.

    The innermost ranked actor decides: actors without a rank are transparent, and what a thread runs is
    a chain of asks, so the innermost rank is the highest.
    """

    def __init__(self) -> None:
        self._running = _Running()

    def enter(self, mailbox: Mailbox) -> None:
        """Count the thread as running this actor, until `leave`."""
        if mailbox.rank is not None:
            self._running.mailboxes.append(mailbox)

    def leave(self, mailbox: Mailbox) -> None:
        """Count the thread as running this actor no more."""
        if mailbox.rank is not None:
            self._running.mailboxes.pop()

    def check(self, asked: Mailbox) -> None:
        """Pass a blocking ask that goes down, or whose rank is not known on either side.

        Raises:
            AskDirectionError: the thread runs an actor of the same or a higher rank.
        """
        if not self._running.mailboxes or asked.rank is None:
            return
        asker = self._running.mailboxes[-1]
        assert asker.rank is not None
        if asked.rank <= asker.rank:
            raise AskDirectionError(
                f"{asker} of rank {asker.rank} may tell, but not ask and wait for,"
                f" {asked} of rank {asked.rank}: a blocking ask goes down only"
            )
