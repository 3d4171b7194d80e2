"""The checked condition: its user has to hold its lock, once, and to wait, no other lock."""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Sequence
from typing import Final, cast, final

from ..checking.active import current
from ..checking.blocking import blocks, waits_with
from ..checking.wait_in_loop import waits_in_loop
from ..checking.watch import Watch
from ..findings.evidence import Kind
from ..findings.levels import Level
from ..holding.chains import TrieNode, held_nodes, holds_of
from ..holding.runtime import fails_open, local
from ..holding.stacks import caller
from .contracts import identity_of
from .factories import ExclusiveLock

_WAIT_FOR: Final = inspect.unwrap(threading.Condition.wait_for).__code__  # it may be hooked already
NO_PREDICATE: Final = "wait without a predicate"
LOST_LOCK: Final = "lost lock"
"""Kinds that a session may allow for a class of locks, as it allows blocking calls."""


@final
class CheckedCondition(threading.Condition):
    """A condition like `threading.Condition`, the use of which is checked."""

    def __init__(self, lock: ExclusiveLock) -> None:
        super().__init__(cast("threading.Lock", lock))
        self.identity = identity_of(lock)

    def __enter__(self) -> bool:
        """Take the lock; the place is that of the `with` statement."""
        return self.acquire()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait to be notified, as `threading.Condition.wait` does; no other lock may be held."""
        self._check_wait(timeout, by_wait_for=sys._getframe(1).f_code is _WAIT_FOR)  # noqa: SLF001 - the documented way to the caller
        return super().wait(timeout)

    @fails_open(None)
    def _check_wait(self, timeout: float | None, *, by_wait_for: bool) -> None:
        holds = self._held()
        if not holds:
            self._report(
                "is waited on by {}, which does not hold its lock", list(held_nodes(local.execution.node))
            )
        if waits_with(timeout):
            blocks("condition", str(self.identity), except_for=self.identity)
        if len(holds) > 1:
            self._check_depth(holds)
        elif holds and timeout is None and not by_wait_for:
            self._check_predicate(holds[0])

    def notify(self, n: int = 1) -> None:
        """Wake some who wait, as `threading.Condition.notify` does."""
        self._check_notification()
        super().notify(n)

    @fails_open(None)
    def _check_notification(self) -> None:
        if not self._held():
            self._report(
                "is notified by {}, which does not hold its lock", list(held_nodes(local.execution.node))
            )

    def _held(self) -> list[TrieNode]:
        return list(holds_of(self.identity, local.execution.node)) if self.identity is not None else []

    def _check_depth(self, holds: Sequence[TrieNode]) -> None:
        """Report an outer block that loses its lock: to wait releases it completely."""
        if not self._allows(LOST_LOCK):
            times = f"is waited on by {{}}, which holds its lock {len(holds)} times"
            self._report(times, holds[-1:], "waiting releases all of them, also that of the outer block")

    def _check_predicate(self, holding: TrieNode) -> None:
        """Report a wait without a predicate; only the level `full` knows where the lock was taken."""
        watch = current()
        if watch is None or watch.policy.level < Level.FULL or self._allows(NO_PREDICATE):
            return
        if not watch.guarded(lambda: waits_in_loop(caller(), holding), lambda: True):
            self._report(
                "is waited on by {}, which does not check again what it waits for",
                [holding],
                "another thread may have been first, or the notification came before: wait in a loop",
            )

    def _allows(self, what: str) -> bool:
        watch, name = current(), self.identity.name if self.identity is not None else ""
        return watch is None or watch.policy.allows(what, name)

    def _report(self, what: str, holders: Sequence[TrieNode], *why: str) -> None:
        execution, watch = local.execution, current()
        if self.identity is None or watch is None or execution.inside:
            return
        watch.guarded_on(execution, lambda: self._report_use(watch, what, holders[:1], why), lambda: None)

    def _report_use(self, watch: Watch, what: str, holders: Sequence[TrieNode], why: tuple[str, ...]) -> None:
        text = f"the condition over {self.identity} {what.format(local.execution.name)}"
        watch.report_use(Kind.CONDITION, text, holders, why=why)
