"""The interface of all exclusive locks, plain or checked."""

from __future__ import annotations

from types import TracebackType
from typing import Protocol


class ExclusiveLock(Protocol):
    """What `threading.Lock()` and `threading.RLock()` have in common."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:  # noqa: FBT001, FBT002 - as in threading
        """Take the lock."""

    def release(self) -> None:
        """Release the lock."""

    def __enter__(self) -> bool: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
