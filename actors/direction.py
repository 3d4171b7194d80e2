"""The rule of asks: cluster > partition > application > node, and a blocking ask goes down only.

With the rule no cycle of waiting actors can exist. The runtime finds cycles that happen; this check
finds asks that could be part of one, whether or not they met another this time. It is for
tests: a dispatcher has it only when made with `check_direction=True`.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Protocol

from .errors import AskDirectionError

if TYPE_CHECKING:
    from .mailbox import Mailbox
    from .waiting import Wait

__all__ = ["AskDirection", "AskRule"]


class AskRule(Protocol):
    """What looks at the asks that an actor gets."""

    def check(self, asked: Mailbox, *, limited: bool = False) -> None:
        """Pass an ask that is about to be waited for, maybe for a `limited` time, or raise."""

    def enter(self, mailbox: Mailbox) -> None:
        """Count the thread as running this actor, until `leave`."""

    def leave(self, mailbox: Mailbox) -> None:
        """Count the thread as running this actor no more."""

    def sleep(self, wait: Wait) -> None:
        """Sleep in a wait without a limit until it is woken."""


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

    def check(self, asked: Mailbox, *, limited: bool = False) -> None:  # noqa: ARG002 - a limit changes nothing
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

    def sleep(self, wait: Wait) -> None:
        """Sleep until woken."""
        wait.woken()
