"""Threads that run one at a time, in an order that a seed determines, on a controlled clock.

While a `ThreadControl` runs, it replaces the locks, queues, clocks and thread starts of the standard library.
All code that is built on these (conditions, events, executors, event loops, and all of Licorne) runs
unchanged. Every operation on them is a *point*: there the control may let another thread run. So a run is a
function of its seed: the same switches at the same points, on every machine.

Time passes only by the control: each point takes a microsecond, and when no thread can run, the clock
advances to the first deadline of a waiting thread. Without a deadline the run fails as a deadlock.
"""

from __future__ import annotations

import gc
import heapq
import random
import sys
import threading
import traceback
from _thread import allocate_lock
from collections import deque
from collections.abc import Callable, Sequence
from time import monotonic, sleep
from typing import Final, Protocol, TypeVar, final

from ....actors.services.clocks import EPOCH_2000_NS
from ....model.errors import LicorneError
from .standard_parts import in_place

T = TypeVar("T")

POINT_NS: Final = 1_000
"""The time on the clock that each point takes."""
_UNWINDING_SECONDS: Final = 5.0


class ControlError(LicorneError):
    """The threads of a run do not end: they wait for each other, or run forever."""


class _Abandoned(BaseException):
    """Ends a thread that is left at the end of a run."""


@final
class ControlledThread:
    """A thread under control."""

    __slots__ = ("finished", "joining", "number", "priority", "thread", "timed_out", "turn", "waits", "wakes")

    def __init__(self, number: int, thread: threading.Thread) -> None:
        self.number = number
        self.thread = thread
        self.turn = allocate_lock()
        self.turn.acquire()
        self.finished = False
        self.joining: deque[ControlledThread] = deque()
        self.waits: deque[ControlledThread] | None = None
        """The queue in which it waits to be woken, `None` while it can run."""
        self.wakes = 0
        """The number of its waits: a deadline of an earlier wait does not end a later one."""
        self.timed_out = False
        self.priority = 0.0

    def __repr__(self) -> str:
        return f"thread {self.number} ({self.thread.name})"


class Picker(Protocol):
    """Decides the next thread."""

    def pick(self, current: ControlledThread, ready: Sequence[ControlledThread]) -> ControlledThread:
        """Return one of the threads that can run; `current` may not be one of them."""


@final
class RandomPicker:
    """Mostly continues the running thread, and takes any other one by chance.

    Args:
        rng: The source of chance.
        chance: How likely another thread is taken at a point.
    """

    def __init__(self, rng: random.Random, chance: float) -> None:
        self._random = rng.random
        self._chance = chance

    def pick(self, current: ControlledThread, ready: Sequence[ControlledThread]) -> ControlledThread:
        """Return any thread at times, or if the running one waits."""
        if current.waits is None and not current.finished and self._random() >= self._chance:
            return current
        return ready[int(self._random() * len(ready))]


@final
class PriorityPicker:
    """Runs the thread of the highest priority, and lowers it below all others at few points, by chance.

    Each thread has a random priority. Orders that need few changes are met often, however long the run: see
    Burckhardt et al., A Randomized Scheduler with Probabilistic Guarantees of Finding Bugs (2010).

    Args:
        rng: The source of chance.
        chance: How likely a point lowers the priority of the running thread.
    """

    def __init__(self, rng: random.Random, chance: float) -> None:
        self._random = rng.random
        self._chance = chance
        self._lowest = 0.0

    def pick(self, current: ControlledThread, ready: Sequence[ControlledThread]) -> ControlledThread:
        """Return the thread of the highest priority."""
        if self._random() < self._chance:
            self._lowest -= 1.0
            current.priority = self._lowest
        best = ready[0]
        for thread in ready:
            if not thread.priority:
                thread.priority = self._random() + 1e-9
            if thread.priority > best.priority:
                best = thread
        return best


@final
class ThreadControl:
    """One run of a program of several threads.

    Args:
        picker: Decides the next thread.
        points_max: The number of points after which the run counts as endless.
        on_error: Called with each error that ends a thread.
    """

    def __init__(self, picker: Picker, *, points_max: int, on_error: Callable[[BaseException], None]) -> None:
        self._picker = picker
        self._points_max = points_max
        self._on_error = on_error
        self.points = 0
        """The number of points so far."""
        self.choices = 0
        """The number of points with a choice."""
        self.trace = 0
        """A number that differs, almost certainly, between runs that differ."""
        self._elapsed_ns = 0
        self.wall_offset_ns = 0
        """The jump of the wall clock so far."""
        self._ready: list[ControlledThread] = []
        self._deadlines: list[tuple[int, int, int, ControlledThread]] = []
        self._threads: list[ControlledThread] = []
        self._by_thread: dict[threading.Thread, ControlledThread] = {}
        self._current = ControlledThread(0, threading.current_thread())
        self.is_over = False
        """Whether the run has ended; remaining threads then end."""
        self._end = allocate_lock()
        self._failure: BaseException | None = None

    # ------------------------------------------------------------------------------------- the run

    def run(self, main: Callable[[], T]) -> T:
        """Run a function and the threads that it starts, until it returns; remaining threads are ended.

        Raises:
            ControlError: The threads wait for each other, or do not end.
            BaseException: The function raised it.
        """
        result: list[T] = []

        def first() -> None:
            try:
                result.append(main())
            except _Abandoned:
                pass
            except BaseException as error:  # noqa: BLE001 - it is raised to the caller
                self._failure = self._failure or error
            self._finish()

        self._end.acquire()
        collecting = gc.isenabled()
        gc.disable()  # A finalizer could otherwise run, and acquire a lock, at any point.
        thread = threading.Thread(name="driver", daemon=True)
        thread.run = self.new_thread(thread, first)  # type: ignore[method-assign]
        thread.start()
        self._current = self._threads[0]
        try:
            with in_place(self):
                self._current.turn.release()
                self._end.acquire()
                self._unwind()
        finally:
            if collecting:
                gc.enable()
        if self._failure is not None:
            raise self._failure
        return result[0]

    def _finish(self) -> None:
        """End the run; on a controlled thread."""
        if not self.is_over:
            self.is_over = True
            self._end.release()

    def _fail(self, text: str) -> None:
        self._failure = ControlError(text)
        self._finish()
        raise _Abandoned

    def _unwind(self) -> None:
        """End each remaining thread, one after the other."""
        for controlled in self._threads:
            if not controlled.finished and controlled.turn.locked():
                controlled.turn.release()
            deadline = monotonic() + _UNWINDING_SECONDS
            while not controlled.finished and monotonic() < deadline:
                sleep(0.0001)

    # -------------------------------------------------------------------------------------- points

    def point(self) -> None:
        """Let another thread run, or not."""
        if self.is_over:
            if threading.current_thread() in self._by_thread:
                raise _Abandoned
            return  # A finalizer uses a part of the run that has outlived it.
        self.points += 1
        self._elapsed_ns += POINT_NS
        if self._deadlines and self._deadlines[0][0] <= self._elapsed_ns:
            self._wake_due()
        current = self._current
        if len(self._ready) > 1:
            self.choices += 1
            chosen = self._picker.pick(current, self._ready)
            if chosen is not current:
                self._switch(current, chosen)
        if self.points > self._points_max:
            self._fail(f"the threads come to no end in {self._points_max} points:\n{self._stacks()}")

    def _switch(self, current: ControlledThread, chosen: ControlledThread) -> None:
        self.trace = (self.trace * 1_000_003 + self.points * 64 + chosen.number) % (1 << 61)
        self._current = chosen
        chosen.turn.release()
        if not current.finished:
            current.turn.acquire()
            if self.is_over:
                raise _Abandoned

    def block(self, waiting: deque[ControlledThread], deadline_ns: int | None) -> bool:
        """Let others run until this thread is woken; return whether it was woken before the deadline."""
        current = self._current
        current.waits = waiting
        current.wakes += 1
        current.timed_out = False
        waiting.append(current)
        self._ready.remove(current)
        if deadline_ns is not None:
            heapq.heappush(self._deadlines, (deadline_ns, current.wakes, current.number, current))
        self._yield_turn(current)
        return not current.timed_out

    def wake_all(self, waiting: deque[ControlledThread]) -> None:
        """Let all threads that wait somewhere run again."""
        while waiting:
            self._make_ready(waiting.popleft())

    def _make_ready(self, thread: ControlledThread) -> None:
        thread.waits = None
        self._ready.append(thread)

    def _yield_turn(self, current: ControlledThread) -> None:
        while not self._ready:
            if not self._deadlines:
                self._fail(f"no thread can go on:\n{self._stacks()}")
            self._elapsed_ns = max(self._elapsed_ns, self._deadlines[0][0])
            self._wake_due()
        chosen = self._picker.pick(current, self._ready)
        if chosen is not current:
            self._switch(current, chosen)

    def _wake_due(self) -> None:
        while self._deadlines and self._deadlines[0][0] <= self._elapsed_ns:
            _, wakes, _, thread = heapq.heappop(self._deadlines)
            if thread.waits is not None and thread.wakes == wakes:
                thread.waits.remove(thread)
                thread.timed_out = True
                self._make_ready(thread)

    def _stacks(self) -> str:
        """Return the stack of each thread."""
        frames = sys._current_frames()  # noqa: SLF001 - the documented way to see other threads
        rows = []
        for each in self._threads:
            frame = None if each.finished else frames.get(each.thread.ident or 0)
            if frame is not None:
                rows.append(f"{each!r}:\n" + "".join(traceback.format_stack(frame)[-8:]))
        return "\n".join(rows)

    # -------------------------------------------------------------------------------------- clocks

    def elapsed_ns(self) -> int:
        """Return the time since the start of the run."""
        return self._elapsed_ns

    def wall_ns(self) -> int:
        """Return the wall-clock time, nanoseconds since 1970."""
        return EPOCH_2000_NS + self._elapsed_ns + self.wall_offset_ns

    def sleep(self, seconds: float) -> None:
        """Let others run for a time."""
        self.point()
        if seconds > 0:
            self.block(deque(), self.after(seconds))

    def after(self, seconds: float) -> int:
        """Return the time after this many seconds from now."""
        return self._elapsed_ns + max(0, int(seconds * 1e9))

    # ------------------------------------------------------------------------------------- threads

    def new_thread(self, thread: threading.Thread, run: Callable[..., object]) -> Callable[..., None]:
        """Return the function that a new thread runs, instead of `run`."""
        controlled = ControlledThread(len(self._threads), thread)
        self._threads.append(controlled)
        self._by_thread[thread] = controlled
        self._ready.append(controlled)

        def under_control(*args: object) -> None:
            controlled.turn.acquire()
            try:
                if not self.is_over:
                    run(*args)
            except _Abandoned:
                pass
            finally:
                self._leave(controlled)

        return under_control

    def _leave(self, controlled: ControlledThread) -> None:
        controlled.finished = True
        if self.is_over:
            return
        self._ready.remove(controlled)
        self.wake_all(controlled.joining)
        try:
            self._yield_turn(controlled)
        except _Abandoned:
            return

    def join(self, thread: threading.Thread, timeout: float | None) -> None:
        """Wait for a thread to end."""
        self.point()
        controlled = self._by_thread.get(thread)
        deadline_ns = None if timeout is None else self.after(timeout)
        while controlled is not None and not controlled.finished:
            if not self.block(controlled.joining, deadline_ns):
                return

    def is_alive(self, thread: threading.Thread) -> bool:
        """Return whether a thread has begun and not ended."""
        controlled = self._by_thread.get(thread)
        return controlled is not None and not controlled.finished

    def note_error(self, error: BaseException | None) -> None:
        """Report the error that has ended a thread."""
        if error is not None and not isinstance(error, _Abandoned):
            self._on_error(error)

    @property
    def current(self) -> ControlledThread:
        """The running thread."""
        return self._current
