"""Where the threads are now, what each holds and waits for; and locks that are held for too long.

If a limit is set, a separate thread checks the held locks of executions, a few times within a limit. A hold
is reported once. The holder continues: no error can be raised in the middle of its work.

Where the interpreter has no global lock the holder runs on meanwhile, and CPython crashes when one thread
walks the frames of another one that runs. So there only the place where the lock was taken is reported.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Container, Iterator
from time import perf_counter_ns
from types import FrameType
from typing import Final, final

from ..findings.findings import Edge, Finding, fingerprint_of, place_text
from ..findings.terms import Kind, LockUsageError, Rung
from ..holding.chains import Acquisition, Execution, TrieNode, held_names, held_nodes
from ..holding.runtime import fails_open, has_global_lock, local, runtime
from ..holding.stacks import RawStack, capture, resolve
from .watch import Watch, current

ANY: Final = "*"
"""Stands for all classes without a specific limit."""
_CHECKS_PER_LIMIT: Final = 4
_PAUSE_SECONDS_MIN: Final = 0.001
_PAUSE_SECONDS_MAX: Final = 0.1
_START: Final = threading.Thread.start
_JOIN: Final = threading.Thread.join
"""The original methods, while nothing is checked."""


def standing() -> str:
    """Return what all threads hold and wait for, and where they are, the innermost frame first.

    Where nothing is checked, or a thread has taken no checked lock, it is only where they are.
    """
    watch = current()
    if watch is None:
        return "\n".join(["lockcheck: nothing is checked now", *_of_others(set())]) + "\n"
    return watch.guarded_on(local.execution, lambda: "\n".join(_lines()) + "\n", lambda: "")


def report_on_signal(name: str) -> None:
    """Write to standard error where the threads are whenever a signal comes; on the main thread.

    Args:
        name: of the signal, such as `SIGUSR1` or `USR1`.

    Raises:
        LockUsageError: the signal does not exist, or it cannot be handled here.
    """
    number = getattr(signal, name if name.startswith("SIG") else f"SIG{name}", None)
    if not isinstance(number, signal.Signals):
        raise LockUsageError(f"LOCKCHECK_SIGNAL={name}: there is no such signal")
    try:
        signal.signal(number, _report)
    except (OSError, ValueError) as error:
        raise LockUsageError(f"LOCKCHECK_SIGNAL={name}: {error}") from error


def _report(number: int, frame: FrameType | None) -> None:
    """Write without the buffer of `sys.stderr`, which the interrupted code may be using."""
    del number, frame
    os.write(2, standing().encode(errors="replace"))


def _lines() -> Iterator[str]:
    running = sorted(runtime.running.items(), key=lambda entry: entry[1].serial)
    executions = [entry for entry in running if not _is_over(*entry)]
    yield f"lockcheck: {len(executions)} threads have taken locks"
    frames = sys._current_frames()  # noqa: SLF001 - the documented way to look at other threads
    for thread, execution in executions:
        yield from _of_execution(execution, capture(frames.get(thread)))
    yield from _of_others({thread for thread, _ in executions})


def _is_over(number: int, execution: Execution) -> bool:
    """Return whether an execution is that of a thread which has ended, and another one has its number now.

    The end of a thread may be noted late; one that holds something, or waits, has not ended.
    """
    thread = threading._active.get(number)  # type: ignore[attr-defined] # noqa: SLF001 - see below
    is_idle = execution.wait is None and not list(held_nodes(execution.node))
    return is_idle and thread is not None and runtime.threads.get(thread) is None


def _of_others(known: Container[int]) -> Iterator[str]:
    """Yield where the threads are of which nothing else is known."""
    threads = threading._active  # type: ignore[attr-defined] # noqa: SLF001 - unlike enumerate(), no lock is taken
    for number, frame in sorted(sys._current_frames().items()):  # noqa: SLF001 - as above
        if number not in known:
            name = threads[number].name if number in threads else f"thread {number}"
            yield f"{name} is at"
            yield from _frames(capture(frame))


def _of_execution(execution: Execution, stack: RawStack) -> Iterator[str]:
    held = list(held_nodes(execution.node))[::-1]
    yield f"{execution.name} holds {', '.join(str(node.acquisition) for node in held) or 'nothing'}"
    for node in held:
        if node.stack:
            yield f"  {node.acquisition} was taken at"
            yield from _frames(node.stack)
    wait = execution.wait
    yield "  it is at" if wait is None else f"  it waits for {wait.describe()} at"
    yield from _frames(stack)


def _frames(stack: RawStack) -> Iterator[str]:
    yield from (f"    {frame}" for frame in resolve(stack))


@final
class HoldWatch:
    """Finds locks that are held longer than the limit of their class.

    Args:
        watch: takes the findings.
        seconds: the limits by class of locks.

    Raises:
        LockUsageError: a limit is not positive.
    """

    def __init__(self, watch: Watch, seconds: dict[str, float]) -> None:
        self._watch = watch
        self._seconds: dict[str, float] = {}
        for name, limit in seconds.items():
            self.limit(name, limit)
        self._reported: set[tuple[int, int]] = set()
        """Holds that were reported and go on: the lock, and since when."""
        self._stopped = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="lockcheck long holds", daemon=True)

    def limit(self, name: str, seconds: float) -> None:
        """Set the limit of a class of locks.

        Raises:
            LockUsageError: it is not positive.
        """
        if seconds <= 0:
            raise LockUsageError(f"{name} cannot be held for at most {seconds:g} s")
        self._seconds = {**self._seconds, name: seconds}

    @fails_open(None)
    def start(self) -> None:
        """Start the thread that checks."""
        self._stopped.acquire()
        _START(self._thread)

    @fails_open(None)
    def stop(self) -> None:
        """Stop the thread that checks, and wait for its end."""
        self._stopped.release()
        _JOIN(self._thread)

    def _run(self) -> None:
        while not self._stopped.acquire(timeout=self._pause()):
            self._watch.guarded(self._check_holds, lambda: None)

    def _pause(self) -> float:
        shortest = min(self._seconds.values()) / _CHECKS_PER_LIMIT
        return max(_PAUSE_SECONDS_MIN, min(shortest, _PAUSE_SECONDS_MAX))

    def _check_holds(self) -> None:
        going_on = set()
        for thread, execution in list(runtime.running.items()):
            for node in held_nodes(execution.node):
                since, acquisition = node.since, node.acquisition
                if acquisition is None or not since or not self._is_long(acquisition, since):
                    continue
                hold = acquisition.lock.serial, since
                if hold not in self._reported and not self._report(thread, execution, node, since):
                    continue
                going_on.add(hold)
        self._reported = going_on

    def _is_long(self, acquisition: Acquisition, since: int) -> bool:
        limit = self._limit_of(acquisition)
        return limit is not None and not acquisition.lock.answers and perf_counter_ns() - since > limit * 1e9

    def _limit_of(self, acquisition: Acquisition) -> float | None:
        return self._seconds.get(acquisition.lock.name, self._seconds.get(ANY))

    def _report(self, thread: int, execution: Execution, node: TrieNode, since: int) -> bool:
        """Report a hold, unless it has ended in the meantime; return whether it goes on."""
        stack = capture(_frame_of(thread)) if has_global_lock() else ()
        still = runtime.running.get(thread) is execution and any(
            one is node for one in held_nodes(execution.node)
        )
        if node.acquisition is None or not still or node.since != since:
            return False
        held = str(node.acquisition)
        limit = self._limit_of(node.acquisition)
        edge = Edge(
            execution=execution.name,
            held=held,
            wanted="None",
            all_held=held_names(execution.node),
            hold_stack=resolve(node.stack),
            want_stack=resolve(stack),
        )
        seconds = (perf_counter_ns() - since) / 1e9
        finding = Finding(
            Rung.R0,
            Kind.LONG_HOLD,
            f"{execution.name} has held {held} for {seconds:.3f} s and holds it still",
            (edge,),
            clause=f"{node.acquisition.lock.name} is held for at most {limit:g} s",
            fingerprint=fingerprint_of(
                Kind.LONG_HOLD.value,
                node.acquisition.lock.name,
                node.acquisition.mode,
                place_text(edge.hold_stack),
            ),
        )
        self._watch.report_elsewhere(finding)
        return True


def _frame_of(thread: int) -> FrameType | None:
    """Return the frame in which a thread is now, by its number."""
    return sys._current_frames().get(thread)  # noqa: SLF001 - the documented way to look at another thread
