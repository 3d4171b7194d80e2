"""Actions that a thread defers until it has released its last lock: logging, setting timers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TypeAlias, final

from ..services.log import Log

Action: TypeAlias = Callable[[], None]


@final
class DeferredActions(threading.local):
    """A context that is entered before each lock of an engine; each thread has its own.

    A lock is released before its context ends. So the deferred actions run, in order, when the outermost lock
    has been released, also if the code under it raised. An action that fails is logged: its cause has
    happened, and the other actions still run.

    Args:
        log: gets the failures.
    """

    def __init__(self, log: Log | None = None) -> None:
        self._log = log or Log()
        self._depth = 0
        self._actions: list[Action] = []

    @property
    def is_open(self) -> bool:
        """Whether actions of this thread are deferred now, because it holds a lock."""
        return self._depth > 0

    def defer(self, action: Action) -> None:
        """Defer an action; it runs at once if this thread holds no lock."""
        if self._depth:
            self._actions.append(action)
        else:
            action()

    @contextmanager
    def collected_in(self, actions: list[Action]) -> Iterator[None]:
        """Collect the actions of the body instead of running them; no lock is held at either end."""
        assert not self._depth, "actions that were deferred before would be collected as well: please report"
        self._depth = 1
        try:
            yield
        finally:
            self._depth = 0
            actions += self._actions
            self._actions = []

    def __enter__(self) -> None:
        self._depth += 1

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._depth -= 1
        if not self._depth and self._actions:
            actions, self._actions = self._actions, []
            for action in actions:
                try:
                    action()
                except BaseException:  # noqa: BLE001 - logged
                    self._log.exception("a step after the release of a lock failed, please report")
