"""The locks, queues, clocks and thread starts that replace the standard ones in a controlled run."""

from __future__ import annotations

import asyncio
import queue
import sys
import threading
import time
from _queue import SimpleQueue
from _thread import allocate_lock
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Self, final

from ....actors.runtime.waiting import WAIT_GRAPH

if TYPE_CHECKING:
    from .thread_control import ControlledThread, ThreadControl

_PACKAGES: Final = ("licorne", "pykka", "asyncio", "concurrent", "queue", "threading")
"""The packages whose modules get the parts."""
_OWN: Final = (__name__, f"{__package__}.thread_control")
_START: Final = (
    "_start_joinable_thread" if hasattr(threading, "_start_joinable_thread") else "_start_new_thread"
)
"""The functions that `Thread.start` calls, which depend on the version of Python."""
_CLOCKS: Final = ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "sleep")
_LOCK_TYPES: Final = (type(allocate_lock()), type(threading.RLock()))


class _WithStatement:
    """A lock that a `with` statement acquires and releases."""

    __slots__ = ()

    acquire: Callable[..., bool]
    release: Callable[[], None]

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class ControlledLock(_WithStatement):
    """Replaces `threading.Lock`."""

    __slots__ = ("__weakref__", "_control", "_held", "_waiting")

    def __init__(self, control: ThreadControl) -> None:
        self._control = control
        self._held = False
        self._waiting: deque[ControlledThread] = deque()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:  # noqa: FBT001, FBT002 - as the original
        """Acquire the lock; return whether it was acquired in time."""
        control = self._control
        control.point()
        if not self._held:
            self._held = True
            return True
        if not blocking:
            return False
        deadline_ns = None if timeout < 0 else control.after(timeout)
        while self._held:
            if not control.block(self._waiting, deadline_ns):
                return False
        self._held = True
        return True

    def release(self) -> None:
        """Release the lock."""
        if not self._held and not self._control.is_over:
            raise RuntimeError("release unlocked lock")
        self._held = False
        if self._waiting:
            self._control.wake_all(self._waiting)

    def locked(self) -> bool:
        """Return whether the lock is held."""
        return self._held

    _is_owned = locked  # The interface that a condition needs, which otherwise tries to acquire the lock.


@final
class _RLock(_WithStatement):
    """Replaces `threading.RLock`."""

    __slots__ = ("__weakref__", "_control", "_count", "_owner", "_waiting")

    def __init__(self, control: ThreadControl) -> None:
        self._control = control
        self._owner: ControlledThread | None = None
        self._count = 0
        self._waiting: deque[ControlledThread] = deque()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:  # noqa: FBT001, FBT002 - as the original
        """Acquire the lock, perhaps once more; return whether it was acquired in time."""
        control = self._control
        control.point()
        me = control.current
        if self._owner is not me and self._owner is not None:
            if not blocking:
                return False
            deadline_ns = None if timeout < 0 else control.after(timeout)
            while self._owner is not None:
                if not control.block(self._waiting, deadline_ns):
                    return False
        self._owner = me
        self._count += 1
        return True

    def release(self) -> None:
        """Release the lock once."""
        if self._owner is not self._control.current and not self._control.is_over:
            raise RuntimeError("cannot release un-acquired lock")
        self._count -= 1
        if not self._count:
            self._owner = None
            self._control.wake_all(self._waiting)

    def _is_owned(self) -> bool:
        return self._owner is self._control.current

    def _release_save(self) -> int:
        count, self._count = self._count, 1
        self.release()
        return count

    def _acquire_restore(self, count: int) -> None:
        self.acquire()
        self._count = count


@final
class _SimpleQueue:
    """Replaces `queue.SimpleQueue`."""

    __slots__ = ("__weakref__", "_control", "_items", "_waiting")

    def __init__(self, control: ThreadControl) -> None:
        self._control = control
        self._items: deque[Any] = deque()
        self._waiting: deque[ControlledThread] = deque()

    def put(self, item: object, block: bool = True, timeout: float | None = None) -> None:  # noqa: ARG002, FBT001, FBT002 - as the original
        """Add an item."""
        self._control.point()
        self._items.append(item)
        self._control.wake_all(self._waiting)

    put_nowait = put

    def get(self, block: bool = True, timeout: float | None = None) -> Any:  # noqa: FBT001, FBT002 - as the original
        """Remove and return the first item.

        Raises:
            queue.Empty: No item arrives in time.
        """
        control = self._control
        control.point()
        deadline_ns = None if timeout is None else control.after(timeout)
        while not self._items:
            if not block or not control.block(self._waiting, deadline_ns):
                raise queue.Empty
        return self._items.popleft()

    def get_nowait(self) -> Any:
        """Remove and return the first item, if any."""
        return self.get(block=False)

    def empty(self) -> bool:
        """Return whether it has no items."""
        return not self._items

    def qsize(self) -> int:
        """Return the number of items."""
        return len(self._items)

    def __class_getitem__(cls, _: object) -> type[Self]:
        return cls


class _InOrder(dict[threading.Thread, None]):
    """Replaces the set of threads of an executor, whose order depends on addresses in memory."""

    add = dict.setdefault


def _thread_of(bootstrap: Any) -> threading.Thread:
    """Return the thread that a method of it starts."""
    thread: threading.Thread = bootstrap.__self__
    return thread


def _parts(control: ThreadControl) -> dict[object, object]:
    """Return the replacement of each standard part, by the part."""
    start_thread = getattr(threading, _START)

    def start(bootstrap: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        begun = start_thread(control.new_thread(_thread_of(bootstrap), bootstrap), *args, **kwargs)
        control.point()
        return begun

    def lock() -> ControlledLock:
        return ControlledLock(control)

    return {
        threading.Lock: lock,
        threading.RLock: lambda: _RLock(control),
        start_thread: start,
        threading.excepthook: lambda failed: control.note_error(failed.exc_value),
        SimpleQueue: lambda: _SimpleQueue(control),
        time.time: lambda: control.wall_ns() / 1e9,
        time.time_ns: control.wall_ns,
        time.monotonic: lambda: control.elapsed_ns() / 1e9,
        time.monotonic_ns: control.elapsed_ns,
        time.perf_counter: lambda: control.elapsed_ns() / 1e9,
        time.perf_counter_ns: control.elapsed_ns,
        time.sleep: control.sleep,
    }


def _holders() -> Iterator[Any]:
    """Return the modules whose parts are replaced."""
    for name, module in [*sys.modules.items()]:
        if name.partition(".")[0] in _PACKAGES and name not in _OWN:
            yield module


@contextmanager
def replaced() -> Iterator[Callable[[Any, str, object], None]]:
    """Yield a function that changes an attribute; all attributes are restored at the end."""
    changed: list[tuple[Any, str, object]] = []

    def change(holder: Any, name: str, value: object) -> None:
        changed.append((holder, name, getattr(holder, name)))
        setattr(holder, name, value)

    try:
        yield change
    finally:
        for holder, name, value in reversed(changed):
            setattr(holder, name, value)


@contextmanager
def in_place(control: ThreadControl) -> Iterator[None]:
    """Replace the standard parts by those of a control, in all modules that name them, for a while."""
    asyncio.new_event_loop().close()  # The library has made its objects of the first loop now.
    parts = _parts(control)
    kinds = {id(part): stands for part, stands in parts.items()}

    def join(thread: threading.Thread, timeout: float | None = None) -> None:
        control.join(thread, timeout)

    def is_alive(thread: threading.Thread) -> bool:
        return control.is_alive(thread)

    begin_executor = ThreadPoolExecutor.__init__

    def begin_in_order(executor: ThreadPoolExecutor, *args: Any, **kwargs: Any) -> None:
        begin_executor(executor, *args, **kwargs)
        executor._threads = _InOrder()  # type: ignore[assignment]  # noqa: SLF001 - there is no other way

    with replaced() as change:
        change(ThreadPoolExecutor, "__init__", begin_in_order)
        for module in _holders():
            for name, value in [*vars(module).items()]:
                if isinstance(value, type) and issubclass(value, SimpleQueue):
                    # Modules that were imported while locks are checked have a subclass.
                    change(module, name, parts[SimpleQueue])
                elif id(value) in kinds:
                    change(module, name, kinds[id(value)])
                elif isinstance(value, _LOCK_TYPES) and module is not threading:
                    is_plain = isinstance(value, _LOCK_TYPES[0])
                    change(module, name, ControlledLock(control) if is_plain else _RLock(control))
        for name in _CLOCKS:
            change(time, name, parts[getattr(time, name)])
        change(threading.Thread, "join", join)
        change(threading.Thread, "is_alive", is_alive)
        change(WAIT_GRAPH, "_lock", ControlledLock(control))
        yield
