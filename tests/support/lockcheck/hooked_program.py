"""A program that passes through the hooks of the checker, any function of which can be made to fail."""

from __future__ import annotations

import concurrent.futures
import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Final

from support.lockcheck.lock_corpus import RECORD, hold

from licorne import lockcheck
from licorne.lockcheck import Condition, Lock, RLock, RWLock, adopt, lock_all, session
from licorne.lockcheck.holding.runtime import runtime
from licorne.lockcheck.sessions.session import Session

LEVELS: Final = ("order", "full")
_HERE: Final = os.path.dirname(lockcheck.__file__) + os.sep  # noqa: PTH120 - compared as text


def program() -> list[str]:
    """Use locks, and all that orders or blocks threads; return what was seen."""
    seen: list[object] = [*_locks(), *_conditions(), *_hand_overs(), *_refused(), *_pools()]
    forgetful = threading.Thread(target=Lock("forgotten").acquire)
    forgetful.start()
    forgetful.join()
    return list(map(str, seen))


def _locks() -> Iterator[object]:
    outer, inner, again = Lock("outer"), Lock("inner"), RLock("again")
    hold(outer, inner, again, again)
    hold(inner, outer)
    outer.acquire()
    inner.acquire()
    outer.release()  # out of turn
    yield outer.acquire(blocking=False)
    inner.release()
    outer.release()
    plain, plain_again = threading.Lock(), threading.RLock()
    with plain, plain_again, plain_again:
        yield plain.locked()
    with plain_again, plain:
        yield plain.acquire(blocking=False)
    table, other = RWLock("table"), RWLock("other")
    hold(table.read(), other.write())
    hold(other.read(), table.write())
    yield table.acquire_read(0), table.acquire_write(0)
    table.release_read()
    with lock_all(outer, inner), Path(os.devnull).open(encoding="utf-8") as nothing:
        time.sleep(0.0001)
        yield nothing.read()
    blocked: queue.Queue[bool] = queue.Queue()
    waiting = threading.Thread(target=lambda: blocked.put(inner.acquire(timeout=0.03)))
    with inner:
        waiting.start()
        yield blocked.get()
        waiting.join()


def _conditions() -> Iterator[object]:
    ready: list[int] = []
    condition, taken = Condition(name="ready"), threading.Event()

    def wait_for_it() -> None:
        with condition:
            taken.set()
            condition.wait_for(lambda: bool(ready))

    waiting = threading.Thread(target=wait_for_it)
    waiting.start()
    yield taken.wait()
    taken.clear()
    with condition:
        ready.append(1)
        condition.notify()
    waiting.join()


def _hand_overs() -> Iterator[object]:
    gate, semaphore, bounded = threading.Barrier(2), threading.Semaphore(1), threading.BoundedSemaphore(1)
    items: queue.Queue[int] = queue.Queue(1)
    back: queue.Queue[int] = queue.Queue()

    def work() -> None:
        gate.wait()
        with semaphore, bounded:
            back.put(items.get())
            items.task_done()

    worker = threading.Thread(target=work)
    worker.start()
    gate.wait()
    with Lock("producer"):
        items.put(7)
    yield back.get()
    items.join()
    worker.join()


def _refused() -> Iterator[object]:
    """Do what is refused: the error is that of what was called, and no fault of the checker."""
    calls: tuple[Callable[[], object], ...] = (
        lambda: queue.Queue[int]().get(timeout=0.001),
        lambda: threading.Event().wait("x"),  # type: ignore[arg-type]
        lambda: queue.Queue[int](1).put(),  # type: ignore[call-arg]
        lambda: concurrent.futures.wait(5),  # type: ignore[arg-type]
        lambda: threading.Thread().join(),
    )
    for refused in calls:
        try:
            refused()
        except (queue.Empty, TypeError, RuntimeError) as error:
            yield type(error).__name__
    ready = threading.Event()
    ready.set()
    yield ready.wait("x")  # type: ignore[arg-type] # it is set, so nobody looks at the limit


def _pools() -> Iterator[object]:
    called: queue.Queue[int] = queue.Queue()

    def call_back(future: Future[int]) -> None:
        called.put(future.result())

    with ThreadPoolExecutor(2) as pool:
        futures = [pool.submit(len, "abc"), pool.submit(len, "abcd")]
        yield sorted(future.result() for future in concurrent.futures.as_completed(futures))
        power = pool.submit(pow, 2, 3)
        power.add_done_callback(call_back)
        yield called.get(), len(concurrent.futures.wait([power]).done), power.exception()
    with ThreadPoolExecutor(1) as alone:
        yield alone.submit(divmod, 7, 2).result(), alone.submit(divmod, 7, 0).exception()


@contextmanager
def _opened(level: str) -> Iterator[Session]:
    """Open a session in which all locks are adopted."""
    with adopt("all"), session(level=level, on=RECORD) as opened:
        yield opened


def _traced(level: str, each: Callable[[CodeType], None]) -> tuple[list[str], Session]:
    """Run the program, and call something at the begin of each function of the checker, on each thread."""

    def tracer(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(_HERE):
            each(frame.f_code)

    before, before_in_threads = sys.gettrace(), threading.gettrace()
    with _opened(level) as opened:
        threading.settrace(tracer)
        sys.settrace(tracer)
        try:
            seen = program()
        finally:
            sys.settrace(before)
            threading.settrace(before_in_threads)
    return seen, opened


def functions_called(level: str) -> list[CodeType]:
    """Return the functions of the checker that run while the program runs in a session, in order."""
    called: dict[CodeType, None] = {}
    _traced(level, called.setdefault)
    return list(called)


def run_with_fault(level: str, broken: CodeType) -> tuple[list[str], Session, bool]:
    """Run the program while a function of the checker fails.

    Returns:
        What the program saw, the session, and whether the function was called at all.
    """
    failed: list[CodeType] = []

    def each(code: CodeType) -> None:
        if code is broken and runtime.watch is not None and not runtime.watch.off:  # type: ignore[attr-defined]
            failed.append(code)
            raise ZeroDivisionError("on purpose")

    seen, opened = _traced(level, each)
    return seen, opened, bool(failed)


def place_of(code: CodeType) -> str:
    """Return a function by its file and its name."""
    return f"{code.co_filename.removeprefix(_HERE)} {code.co_qualname}"


def functions_of_setup(level: str) -> list[CodeType]:
    """Return the functions of the checker that run while a session and an adoption begin and end."""
    called: dict[CodeType, None] = {}
    _set_up(level, called.setdefault)
    return list(called)


def set_up_with_fault(level: str, broken: CodeType) -> tuple[list[str], Session]:
    """Run the program in a session and an adoption; a function fails while they begin, and while they end.

    Returns:
        What the program saw, and the session.
    """

    def each(code: CodeType) -> None:
        if code is broken:
            raise ZeroDivisionError("on purpose")

    return _set_up(level, each)


def _set_up(level: str, each: Callable[[CodeType], None]) -> tuple[list[str], Session]:
    def tracer(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(_HERE):
            each(frame.f_code)

    before = sys.gettrace()
    try:
        sys.settrace(tracer)
        with _opened(level) as opened:
            sys.settrace(before)
            seen = program()
            sys.settrace(tracer)
    finally:
        sys.settrace(before)
    return seen, opened
