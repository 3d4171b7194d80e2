"""Waits for events, items of queues and notifications, while a run is steered into a deadlock over them.

Anything may end such a wait, so it has no edge in the wait-for graph. In a steered run it has one: the
witness says who signals later. It counts after all have stood there for a while, and is made in slices
meanwhile, so that a signal from elsewhere still ends it.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Final, final

from ..checking.waiting import wait_in_slices
from ..findings.foreign import ByIdentity
from ..holding.chains import Execution
from ..holding.runtime import local, runtime
from .awaited_ends import NOTIFICATION
from .hand_overs import is_checked
from .hooks import Hooks
from .queue_ends import ALL_DONE, ITEM, ROOM


@final
class _ThingWait:
    """The wait for something that other executions signal."""

    endless = True
    breakable = True

    def __init__(self, text: str) -> None:
        self.signal = text

    def needs(self, waiting: Execution) -> list[list[Execution]]:
        """Return the execution that signals it by the witness, if all of that stand still."""
        steering = runtime.steering
        return [steering.following(waiting)] if steering is not None else []

    def describe(self) -> str:
        """Return what is waited for, in words."""
        return self.signal


def _event_wait(method: Callable[..., bool], self: object, timeout: float | None = None) -> bool:
    if timeout is not None or not is_checked():
        return method(self, timeout)
    waited = _ThingWait("an event")
    return wait_in_slices(local.execution, waited, lambda seconds: method(self, seconds), -1)


_notified: Final[ByIdentity[int]] = ByIdentity()
"""How often each condition was notified."""


def _notify(method: Callable[..., None], self: threading.Condition, n: int = 1) -> None:
    _notified.put(self, (_notified.get(self) or 0) + 1)
    method(self, n)


def _condition_wait(
    method: Callable[..., bool], self: threading.Condition, timeout: float | None = None
) -> bool:
    """Wrap the wait of a condition: a notification counts too that comes just when a slice ends."""
    if timeout is not None or not is_checked():
        return method(self, timeout)
    before = _notified.get(self)

    def attempt(seconds: float) -> bool:
        return method(self, seconds) or _notified.get(self) != before

    return wait_in_slices(local.execution, _ThingWait(NOTIFICATION), attempt, -1)


def _wait_for(
    method: Callable[..., object],
    self: threading.Condition,
    predicate: Callable[[], object],
    timeout: float | None = None,
) -> object:
    if timeout is not None or not is_checked():
        return method(self, predicate, timeout)
    met: list[object] = []

    def attempt(seconds: float) -> bool:
        met[:] = [method(self, predicate, seconds)]
        return bool(met[0])

    wait_in_slices(local.execution, _ThingWait(NOTIFICATION), attempt, -1)
    return met[0]


def _get(
    method: Callable[..., object],
    self: queue.Queue[object],
    block: bool = True,  # noqa: FBT001, FBT002 - as in queue
    timeout: float | None = None,
) -> object:
    if not block or timeout is not None or not is_checked():
        return method(self, block, timeout)
    found: list[object] = []

    def attempt(seconds: float) -> bool:
        try:
            found.append(method(self, timeout=seconds))
        except queue.Empty:
            return False
        return True

    wait_in_slices(local.execution, _ThingWait(ITEM), attempt, -1)
    return found[0]


def _put(
    method: Callable[..., None],
    self: queue.Queue[object],
    item: object,
    block: bool = True,  # noqa: FBT001, FBT002 - as in queue
    timeout: float | None = None,
) -> None:
    if not block or timeout is not None or self.maxsize <= 0 or not is_checked():
        method(self, item, block, timeout)
        return

    def attempt(seconds: float) -> bool:
        try:
            method(self, item, timeout=seconds)
        except queue.Full:
            return False
        return True

    wait_in_slices(local.execution, _ThingWait(ROOM), attempt, -1)


def _join(method: Callable[[queue.Queue[object]], None], self: queue.Queue[object]) -> None:
    def attempt(seconds: float) -> bool:
        with self.all_tasks_done:
            return self.all_tasks_done.wait_for(lambda: self.unfinished_tasks == 0, seconds)

    if is_checked():
        wait_in_slices(local.execution, _ThingWait(ALL_DONE), attempt, -1)
    method(self)


def _put_all() -> None:
    HOOKS.wrap(threading.Event, "wait", _event_wait)
    HOOKS.wrap(threading.Condition, "notify", _notify)
    HOOKS.wrap(threading.Condition, "wait", _condition_wait)
    HOOKS.wrap(threading.Condition, "wait_for", _wait_for)
    HOOKS.wrap(queue.Queue, "get", _get)
    HOOKS.wrap(queue.Queue, "put", _put)
    HOOKS.wrap(queue.Queue, "join", _join)


HOOKS: Final = Hooks(_put_all)
