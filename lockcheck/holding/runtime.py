"""The one thing a process has once: which session is active, and which units run.

The founders' rule is that nothing global is mutable. Threads and the locks of a program are global by
nature, so this module is the exception, and the only one: whoever checks asks here whom to tell.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import TYPE_CHECKING, Final, Protocol, final

from ..findings.foreign import ByIdentity
from .chains import Execution, TrieNode
from .happens_before import Segment, begin, learn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ..findings.evidence import Mode
    from ..findings.findings import Finding
    from .chains import Acquisition, LockIdentity

__all__ = ["LATCH", "EventSink", "Runtime", "Steerer", "go_on_as", "local", "next_segment", "runtime"]

LATCH: Final = threading.RLock()
"""Held for a moment where something new is written down. While it is held nothing is waited for, the disk is
left alone, and nothing of the program is called, shown, compared or let go of. It is re-entrant, since the
collector of garbage may run a finalizer in between that gets here."""


class EventSink(Protocol):
    """Who writes down what happens, where a run is recorded."""

    def took(self, node: TrieNode) -> None:
        """Write down that a lock was taken at a node, and keep there how."""

    def left(self, node: TrieNode) -> None:
        """Write down that the lock of a node is released, and keep there how."""

    def failed(self, acquisition: Acquisition) -> None:
        """Write down that a lock was asked for and not taken."""

    def released(self, lock: LockIdentity, mode: Mode) -> None:
        """Write down that a lock is released out of turn."""

    def signalled(self, thing: object) -> None:
        """Write down that something happened on which others may wait."""

    def awaited(self, thing: object) -> None:
        """Write down that a unit went on, maybe only because of what was signalled on a thing before."""

    def joined(self, ended: Execution, *, endless: bool) -> None:
        """Write down that another unit has ended."""

    def forget(self) -> None:
        """Write no more, since this process was forked from the one that is recorded."""


class Steerer(Protocol):
    """Who pauses threads, where a run is steered into a deadlock."""

    def wants(self, execution: Execution, acquisition: Acquisition) -> None:
        """Pause a unit that is about to want a lock, if it is to wait there for others."""

    def finding(self, deadlock: Sequence[Execution]) -> Finding | None:
        """Return the finding of units that wait for each other, if they were steered into that."""


@final
class Runtime:
    """Which session is active, and which units run."""

    __slots__ = (
        "born",
        "ended",
        "executions",
        "opens",
        "recorder",
        "running",
        "steering",
        "threads",
        "watch",
    )

    def __init__(self) -> None:
        self.watch: object = None
        """The watch of the active session, which `active.current` returns; none where none is open."""
        self.opens = False
        """Whether somebody is about to open the session that the environment asks for."""
        self.recorder: EventSink | None = None
        self.steering: Steerer | None = None
        self.executions: dict[int, Execution] = {}
        self.running: dict[int, Execution] = {}
        """What runs on each thread now, by the thread's number; each thread writes its own entry."""
        self.threads = ByIdentity[Execution]()
        """What each thread began as."""
        self.ended: Callable[[Execution], None] | None = None
        """Told when a thread ends."""
        self.born: Callable[[], Segment | None] | None = None
        """Tells what the thread that runs was started after."""

    def new_execution(self, name: str, after: Segment | None = None, *, known: bool = True) -> Execution:
        """Make a unit, and remember it unless it is to be `known` only while it runs."""
        execution = Execution(name, Segment(0), self.watch)
        execution.segment = begin(execution.serial, after)
        if known:
            with LATCH:
                self.executions[execution.serial] = execution
        return execution

    def executions_on(self, threads: Iterable[int | None]) -> list[Execution]:
        """Return what runs on some threads, as far as it is known."""
        found = (self.running.get(number) for number in threads if number is not None)
        return [execution for execution in found if execution is not None]

    def forget(self, execution: Execution) -> None:
        """Forget a unit that runs no more."""
        with LATCH:
            self.executions.pop(execution.serial, None)

    def all_executions(self) -> list[Execution]:
        """Return the units that run, the oldest first."""
        with LATCH:
            known = {
                execution.serial: execution
                for execution in (*self.executions.values(), *self.running.values())
            }
        return [known[serial] for serial in sorted(known)]

    def cut_tries(self) -> list[object]:
        """Have everything judged anew, since another session is active from now.

        Returns:
            What is cut off, to be let go of without the latch.
        """
        cut: list[object] = []
        for execution in self.all_executions():
            root = execution.node
            while root.parent is not None:
                cut.append(root.next)
                root.next = {}
                root = root.parent
            for node in _below(root):  # the unit may be anywhere by now
                cut.append(node.next)
                node.next = {}
        return cut

    def cut_trie(self, execution: Execution) -> None:
        """Have everything that the calling unit does judged anew."""
        node: TrieNode | None = execution.node
        while node is not None:
            node.next = {}
            node = node.parent

    def segment_of_ended(self, thread: threading.Thread) -> Segment | None:
        """Return the last segment of a thread that took locks, if it did."""
        execution = self.threads.get(thread)
        return execution.segment if execution is not None else None


def _below(node: TrieNode) -> Iterator[TrieNode]:
    pending = [node]
    while pending:
        node = pending.pop()
        pending.extend(list(node.next.values()))
        yield node


runtime: Final = Runtime()


def _forked() -> None:
    """Forget the threads that a fork left behind: the child has only the one that forked."""
    mine = local.execution
    runtime.executions = {mine.serial: mine}
    runtime.running = {threading.get_ident(): mine}
    runtime.opens = False
    if runtime.recorder is not None:
        runtime.recorder.forget()
        runtime.recorder = None
    LATCH.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=LATCH.acquire, after_in_parent=LATCH.release, after_in_child=_forked)


@final
class _ThreadEnd:
    """Lives in the thread's local storage, and is let go of when the thread ends."""

    __slots__ = ("_execution", "_is_over", "_process", "_process_now", "_runtime", "_thread")

    def __init__(self, execution: Execution, process: Runtime) -> None:
        self._execution = execution
        self._thread = threading.get_ident()
        self._process = os.getpid()  # a fork leaves the other threads behind: they have not ended
        self._runtime, self._process_now = process, os.getpid  # the names of this module go before
        self._is_over = sys.is_finalizing

    def __del__(self) -> None:
        ended, is_here = self._runtime.ended, self._process == self._process_now()
        if ended is not None and is_here and not self._is_over():  # names of other modules may be gone
            ended(self._execution)
        self._runtime.executions.pop(self._execution.serial, None)
        self._runtime.running.pop(self._thread, None)


class _Local(threading.local):
    """The unit that runs on this thread."""

    def __init__(self) -> None:
        after = runtime.born() if runtime.born is not None else None
        thread = threading.current_thread()
        self.execution = runtime.new_execution(thread.name, after)
        runtime.threads.put(thread, self.execution)
        runtime.running[threading.get_ident()] = self.execution
        self.finished: Segment | None = None
        """Where the task ended that the thread ran last, until its future knows."""
        self.end = _ThreadEnd(self.execution, runtime)


local: Final = _Local()


def go_on_as(execution: Execution) -> None:
    """Have the calling thread run another unit from here on; where the checker runs on it, it does still."""
    execution.inside = local.execution.inside
    local.execution = execution
    runtime.running[threading.get_ident()] = execution


def next_segment(execution: Execution, ended: Segment | None = None) -> None:
    """Begin the next segment of a unit, if there is a reason; what it nests from now on is learned anew."""
    if execution.segment.silent and ended is None:
        return
    execution.segment = learn(execution.segment, ended)
    runtime.cut_trie(execution)
