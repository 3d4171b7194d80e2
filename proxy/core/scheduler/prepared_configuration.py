"""A change of a configuration in two phases: it is prepared, then committed or abandoned."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final, Self, final

from ....model.errors import RequestError


@final
class PreparedConfiguration:
    """A configuration of a resource manager that has been checked as a whole, and is not in use yet.

    In a `with` block it is abandoned at the end, unless it has been committed:

        with first.prepare_configuration(request) as one, second.prepare_configuration(request) as two:
            one.commit()
            two.commit()

    Args:
        rm_id: The resource manager.
        number: The number of the change at its scheduler.
        commit: Makes the change.
        abandon: Tells the scheduler that it does not happen.
    """

    def __init__(
        self, rm_id: str, number: int, commit: Callable[[], None], abandon: Callable[[], None] | None = None
    ) -> None:
        self.rm_id: Final = rm_id
        self.number: Final = number
        self._lock = threading.Lock()
        self._commit: Callable[[], None] | None = commit
        """`None` when it has been committed or abandoned, and while it is being committed."""
        self._abandon = abandon

    def commit(self) -> None:
        """Make it the configuration in use. Its text can no longer be refused.

        Raises:
            RequestError: It has been committed or abandoned, or can no longer be committed: since it was
                prepared the resource manager has registered again, has stopped, or was given another
                configuration, or another one was prepared for it; or the scheduler has been stopped.
                Nothing has changed.
            ConnectionLostError: The scheduler is in another process, and the connection over which it was
                prepared is lost: it is abandoned there, unless the commit was under way.
        """
        commit = self._taken()
        if commit is None:
            raise RequestError(
                f"the configuration that was prepared for RM {self.rm_id!r} has been committed or abandoned"
            )
        try:
            commit()
        except BaseException:
            self._commit = commit
            raise

    def abandon(self) -> None:
        """Drop it; nothing has changed. If it has been committed or abandoned, nothing happens.

        While another thread commits it, nothing happens either.
        """
        if self._taken() is not None and self._abandon is not None:
            self._abandon()

    def _taken(self) -> Callable[[], None] | None:
        """Return what commits it, to one caller alone."""
        with self._lock:
            commit, self._commit = self._commit, None
        return commit

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.abandon()


def commit_refused(rm_id: str, why: str) -> RequestError:
    """Return the error of a commit that comes too late."""
    return RequestError(f"the configuration that was prepared for RM {rm_id!r} cannot be committed: {why}")
