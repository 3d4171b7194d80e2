"""Where the threads are now, and what each holds and waits for."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Container, Iterator
from types import FrameType

from ..findings.terms import LockUsageError
from ..holding.chains import Execution, held_nodes
from ..holding.runtime import local, runtime
from ..holding.stacks import RawStack, capture, resolve
from .watch import current


def standing() -> str:
    """Return what all threads hold and wait for, and where they are, the innermost frame first.

    Where nothing is checked, or a thread has taken no checked lock, it is only where they are.
    """
    watch = current()
    if watch is None:
        return "\n".join(["lockcheck: nothing is checked now", *_of_others(set())]) + "\n"
    return watch.guarded_on(local.execution, lambda: "\n".join(lines_of_threads()) + "\n", lambda: "")


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


def lines_of_threads(*besides: int) -> Iterator[str]:
    """Yield what the threads hold and wait for, and where they are, besides some by number."""
    running = sorted(runtime.running.items(), key=lambda entry: entry[1].serial)
    executions = [entry for entry in running if not _is_over(*entry)]
    yield f"lockcheck: {len(executions)} threads have taken locks"
    frames = sys._current_frames()  # noqa: SLF001 - the documented way to look at other threads
    for thread, execution in executions:
        yield from _of_execution(execution, capture(frames.get(thread)))
    yield from _of_others({*besides, *(thread for thread, _ in executions)})


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
