"""The checked condition: waited on and notified only by who holds its lock, and no other lock."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, cast, final

from .blocking import blocks
from .findings import Kind, Rung
from .holding import Node, held_nodes
from .runtime import local, runtime
from .stacks import caller, capture
from .units import identity_of

if TYPE_CHECKING:
    from .factories import ExclusiveLock
    from .sessions import Session

__all__ = ["CheckedCondition"]


@final
class CheckedCondition(threading.Condition):
    """A condition like `threading.Condition`, the use of which is checked."""

    def __init__(self, lock: ExclusiveLock) -> None:
        super().__init__(cast("threading.Lock", lock))
        self.identity = identity_of(lock)

    def __enter__(self) -> bool:
        """Take the lock, at the place of who enters the condition."""
        return self.acquire()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait to be notified, as `threading.Condition.wait` does; no other lock may be held."""
        self._demand("waited on")
        blocks("condition", str(self.identity), except_for=self.identity)
        return super().wait(timeout)

    def notify(self, n: int = 1) -> None:
        """Wake some who wait, as `threading.Condition.notify` does."""
        self._demand("notified")
        super().notify(n)

    def _demand(self, what: str) -> None:
        unit, session = local.unit, runtime.session
        if self.identity is None or session is None or unit.inside:
            return
        if any(node.grip is not None and node.grip.lock is self.identity for node in held_nodes(unit.node)):
            return
        unit.inside = True
        try:
            session.guarded(lambda: self._report(session, what), lambda: None)
        finally:
            unit.inside = False

    def _report(self, session: Session, what: str) -> None:
        unit = local.unit
        node = Node(unit, unit.node, None, session)
        node.stack = capture(caller())
        text = f"the condition over {self.identity} is {what} by {unit.name}, which does not hold its lock"
        session.report_step(Rung.R0, Kind.CONDITION, text, node, list(held_nodes(unit.node))[:1])
