"""The rule of asks: cluster > partition > application > node, and a blocking ask goes down only.

With the rule no cycle of waiting actors can exist. The runtime finds cycles that happen; this check
finds asks that could be part of one, whether or not a cycle happens this time. It is for
tests: a dispatcher has it only when made with `check_direction=True`.
"""

from __future__ import annotations

import threading
from typing import Protocol

from .errors import AskDirectionError
from .mailbox import Mailbox
from .waiting import OpenWait


class AskRule(Protocol):
    """A check of the asks that one actor gets."""

    def asked(self, *, limited: bool = False) -> None:
        """Pass an ask that is about to be waited for, maybe for a `limited` time, or raise."""

    def enter(self) -> None:
        """Count the thread as running the actor, until `leave`."""

    def leave(self) -> None:
        """Count the thread as running the actor no more."""

    def sleep(self, wait: OpenWait) -> None:
        """Sleep in a wait without a limit until it is woken."""


class _Running(threading.local):
    """The ranked actors that the thread runs now, the innermost last."""

    def __init__(self) -> None:
        self.mailboxes: list[Mailbox] = []


class AskDirection:
    """Refuse blocking asks upwards, by the ranked actors of one dispatcher that each thread runs.

    The innermost ranked actor decides: actors without a rank are transparent, and what a thread runs is
    a chain of asks, so the innermost rank is the highest.
    """

    def __init__(self) -> None:
        self._running = _Running()

    def of(self, mailbox: Mailbox) -> AskRule:
        """Return the check of the asks of one actor."""
        return _DirectedAsks(mailbox, self._running)


class _DirectedAsks:
    """The asks that one actor gets, which must not go up."""

    def __init__(self, mailbox: Mailbox, running: _Running) -> None:
        self._mailbox = mailbox
        self._running = running

    def enter(self) -> None:
        """Count the thread as running this actor, until `leave`."""
        if self._mailbox.rank is not None:
            self._running.mailboxes.append(self._mailbox)

    def leave(self) -> None:
        """Count the thread as running this actor no more."""
        if self._mailbox.rank is not None:
            self._running.mailboxes.pop()

    def asked(self, *, limited: bool = False) -> None:  # noqa: ARG002 - a limit changes nothing
        """Pass a blocking ask that goes down, or whose rank is not known on either side.

        Raises:
            AskDirectionError: the thread runs an actor of the same or a higher rank.
        """
        asked = self._mailbox
        if not self._running.mailboxes or asked.rank is None:
            return
        asker = self._running.mailboxes[-1]
        assert asker.rank is not None
        if asked.rank <= asker.rank:
            raise AskDirectionError(
                f"{asker} of rank {asker.rank} may tell, but not ask and wait for,"
                f" {asked} of rank {asked.rank}: a blocking ask goes down only"
            )

    def sleep(self, wait: OpenWait) -> None:
        """Sleep until woken."""
        wait.woken()
