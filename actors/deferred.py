"""What a thread does when it has let go of its last lock: log, set timers."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias, final

from .log import Log

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

__all__ = ["Action", "DeferredActions"]

Action: TypeAlias = Callable[[], None]


@final
class DeferredActions(threading.local):
    """Entered before each lock of an engine; each thread sees itself alone.

    A lock is let go of before this is left. So what was kept runs, in order, where the outermost lock has
    been let go of, also if what ran under it raised. An action that fails is logged: what it came from has
    happened, and the others are still to be done.

    Args:
        log: where it says so.
    """

    def __init__(self, log: Log | None = None) -> None:
        self._log = log or Log()
        self._depth = 0
        self._actions: list[Action] = []

    @property
    def is_open(self) -> bool:
        """Whether what this thread keeps is not done at once."""
        return self._depth > 0

    def defer(self, action: Action) -> None:
        """Keep an action for later; it runs at once where no lock is held."""
        if self._depth:
            self._actions.append(action)
        else:
            action()

    @contextmanager
    def collected_in(self, actions: list[Action]) -> Iterator[None]:
        """Hand over what is kept meanwhile rather than do it; no lock is held at either end."""
        assert not self._depth, "what was kept before would be handed over as well: please report"
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
