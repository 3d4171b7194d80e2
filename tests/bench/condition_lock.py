"""A read/write lock as it is usually written on a condition: our checked one is compared with it."""

from __future__ import annotations

from threading import Condition
from types import TracebackType
from typing import final


@final
class ConditionRWLock:
    """Many readers or one writer; a waiting writer goes before new readers."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._readers = 0
        self._writes = False
        self.writers_waiting = 0
        """New readers let them go first."""
        self._reading = _Reading(self)
        self._writing = _Writing(self)

    def read(self) -> _Reading:
        """Return what a `with` statement holds the lock with for reading."""
        return self._reading

    def write(self) -> _Writing:
        """Return what a `with` statement holds the lock with for writing."""
        return self._writing

    def acquire_read(self) -> None:
        """Take the lock for reading."""
        with self._changed:
            while self._writes or self.writers_waiting:
                self._changed.wait()
            self._readers += 1

    def release_read(self) -> None:
        """Release the lock for reading."""
        with self._changed:
            self._readers -= 1
            if not self._readers:
                self._changed.notify_all()

    def acquire_write(self) -> None:
        """Take the lock for writing."""
        with self._changed:
            self.writers_waiting += 1
            try:
                while self._writes or self._readers:
                    self._changed.wait()
            finally:
                self.writers_waiting -= 1
            self._writes = True

    def release_write(self) -> None:
        """Release the lock for writing."""
        with self._changed:
            self._writes = False
            self._changed.notify_all()


@final
class _Reading:
    __slots__ = ("_lock",)

    def __init__(self, lock: ConditionRWLock) -> None:
        self._lock = lock

    def __enter__(self) -> None:
        self._lock.acquire_read()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release_read()


@final
class _Writing:
    __slots__ = ("_lock",)

    def __init__(self, lock: ConditionRWLock) -> None:
        self._lock = lock

    def __enter__(self) -> None:
        self._lock.acquire_write()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release_write()
