"""The one thing a process has once: which session is active, and which executions run.

The founders' rule is that nothing global is mutable. Threads and the locks of a program are global by
nature, so this module is the only exception: every check finds the active session here.
"""

from __future__ import annotations

import _thread
import functools
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import FunctionType
from typing import Final, ParamSpec, Protocol, TypeVar, cast, final

from ..findings.findings import Finding
from ..findings.foreign import ByIdentity
from ..findings.terms import LockCheckError, LockOrderWarning
from .chains import (
    Acquisition,
    Execution,
    Segment,
    TrieNode,
    begin,
    knows,
    learn,
    may_learn,
    one_before,
)
from .stacks import waiting_frame

Given = ParamSpec("Given")
Result = TypeVar("Result")
LATCH: Final = threading.RLock()
"""Held for a moment while something new is noted. Meanwhile the checker does not wait, does not use the
disk, and does not call, show, compare or drop anything of the program. It is re-entrant, since the garbage
collector may
run a finalizer that takes it too."""
_FINALIZERS: Final = str(Path(__file__).parent.parent / "checking" / "finalizers.py")
"""The file with the functions that call handlers of the program."""
_SIGNALS: Final = tuple(map(int, signal.valid_signals()))
_GETSIGNAL: Final[Callable[[int], object]] = signal._signal.getsignal  # type: ignore[attr-defined] # noqa: SLF001
"""The function below the one of `signal`, which makes an enumeration of each result."""


@final
class Interpreter:
    """Functions of the interpreter that programs replace: `threading.get_ident`, or clocks in their tests.

    They are attributes of a class, since tools that stop the clock look through the names of all modules.
    """

    thread_number = staticmethod(_thread.get_ident)
    """Returns the number of the calling thread."""
    seconds = staticmethod(time.monotonic)
    """Returns the time by a clock that only goes forwards."""


def this_thread() -> threading.Thread:
    """Return the calling thread; one that `threading` does not know gets an object there."""
    known: Mapping[int, threading.Thread] = threading._active  # type: ignore[attr-defined] # noqa: SLF001 - unlike current_thread(), it calls nothing
    return known.get(Interpreter.thread_number()) or threading.current_thread()


def has_global_lock() -> bool:
    """Return whether only one thread runs at any time; there are builds without this from Python 3.13 on."""
    return bool(getattr(sys, "_is_gil_enabled", lambda: True)())


def handling_functions() -> list[FunctionType]:
    """Return the functions that handle signals; only the main thread runs them."""
    if Interpreter.thread_number() != threading.main_thread().ident:
        return []
    every = list(map(_GETSIGNAL, _SIGNALS))
    # Few signals have specific handlers; there are many, so nothing is done in Python for each of them.
    distinct = dict(zip(map(id, every), every, strict=True)).values()
    found = (
        getattr(handler, "__func__", handler) for handler in map(handled_by, distinct) if callable(handler)
    )
    return [function for function in found if type(function) is FunctionType]


def handled_by(handler: object) -> object:
    """Return the handler of the program that one of the checker calls, or else the handler itself."""
    if type(handler) is FunctionType and handler.__code__.co_filename == _FINALIZERS:
        return handler.__dict__.get("__wrapped__", handler)
    return handler


def raised_by_handler(error: BaseException) -> bool:
    """Return whether a handler of the program raised an error, or code that it called."""
    codes, at = {function.__code__ for function in handling_functions()}, error.__traceback__
    while at is not None:
        if at.tb_frame.f_code in codes:
            return True
        at = at.tb_next
    return False


class _Faults(Protocol):
    """Hears of faults of the checker."""

    def note_fault(self, error: Exception) -> None:
        """Switch the checker off, and report that."""


def fails_open(
    result: Result, *, of_setup: bool = False
) -> Callable[[Callable[Given, Result]], Callable[Given, Result]]:
    """Let a hook return a result if it fails: a fault of the checker does not change the program.

    Args:
        result: what it returns then.
        of_setup: whether it runs where no session is open yet: then the next one notes the fault.
    """

    def decorated(hook: Callable[Given, Result]) -> Callable[Given, Result]:
        @functools.wraps(hook)
        def guarded(*given: Given.args, **named: Given.kwargs) -> Result:
            try:
                return hook(*given, **named)
            except (LockCheckError, LockOrderWarning):
                raise
            except Exception as error:
                if raised_by_handler(error):
                    raise
                (note_fault_of_setup if of_setup else note_fault)(error)
                return result

        return guarded

    return decorated


def note_fault(error: Exception) -> None:
    """Note an error of the checker, if a session is open; a stack that is too deep is not a fault."""
    if runtime.watch is not None and not isinstance(error, RecursionError):
        cast("_Faults", runtime.watch).note_fault(error)


def note_fault_of_setup(error: Exception) -> None:
    """Note an error where the checker is set up or ended; the next session does, if no session is open."""
    if runtime.watch is None:
        runtime.early_fault = error
    note_fault(error)


class Steerer(Protocol):
    """Pauses threads of a run that is steered into a deadlock."""

    def wants(self, execution: Execution, acquisition: Acquisition) -> None:
        """Pause an execution that is about to want a lock, if it has to wait there for others."""

    def following(self, waiting: Execution) -> list[Execution]:
        """Return the execution that one waits for by the witness, if all of that stand still."""

    def finding(self, deadlock: Sequence[Execution]) -> Finding | None:
        """Return the finding of executions that wait for each other, if they were steered into that."""


def _below(node: TrieNode) -> Iterator[TrieNode]:
    pending = [node]
    while pending:
        node = pending.pop()
        pending.extend(list(node.next.values()))
        yield node


def nodes_of(execution: Execution) -> Iterator[TrieNode]:
    """Yield the nodes of all that an execution took since it was checked anew."""
    root = execution.node
    while root.parent is not None:
        root = root.parent
    return _below(root)


@final
class Runtime:
    """The active session and the running executions."""

    __slots__ = (
        "began",
        "born",
        "early_fault",
        "ended",
        "executions",
        "greenlets",
        "opens",
        "running",
        "steering",
        "threads",
        "watch",
    )

    def __init__(self) -> None:
        self.watch: object = None
        """The watch of the active session, which `watch.current` returns; `None` if no session is open."""
        self.opens = False
        """Whether the session that the environment asks for is being opened."""
        self.early_fault: Exception | None = None
        """An error of the checker where it was set up, before a session was open that could report it."""
        self.greenlets = False
        """Whether it was reported that greenlets are not checked."""
        self.steering: Steerer | None = None
        self.executions: dict[int, Execution] = {}
        self.running: dict[int, Execution] = {}
        """The execution on each thread now, by the thread's number; each thread writes its own entry."""
        self.began: dict[int, int] = {}
        """The serial of the execution that the thread with that number began as: a number may be given to
        another thread before the end of the one that had it is noted."""
        self.threads = ByIdentity[Execution]()
        """The execution that each thread began as."""
        self.ended: Callable[[Execution], None] | None = None
        """Called when a thread ends."""
        self.born: Callable[[], Segment | None] | None = None
        """Returns the segment after which the calling thread was started."""

    def new_execution(self, name: str, after: Segment | None = None, *, known: bool = True) -> Execution:
        """Create an execution; if it is not `known`, it is remembered only while it runs."""
        execution = Execution(name, Segment(0), self.watch)
        execution.segment = begin(execution.serial, after)
        if known:
            with LATCH:
                self.executions[execution.serial] = execution
        return execution

    def executions_on(self, threads: Iterable[int | None]) -> list[Execution]:
        """Return the executions on some threads, as far as they are known."""
        found = (self.running.get(number) for number in threads if number is not None)
        return [execution for execution in found if execution is not None]

    def forget(self, execution: Execution) -> None:
        """Forget an execution that has ended."""
        with LATCH:
            self.executions.pop(execution.serial, None)

    def all_executions(self) -> list[Execution]:
        """Return the executions that run, the oldest first."""
        with LATCH:
            known = {
                execution.serial: execution
                for execution in (*self.executions.values(), *self.running.values())
            }
        return [known[serial] for serial in sorted(known)]

    @fails_open(cast("Sequence[object]", ()), of_setup=True)
    def cut_tries(self) -> Sequence[object]:
        """Cut all tries, so that everything is checked anew: another session is active from now on.

        Returns:
            The nodes that are cut off: the caller drops them when it does not hold the latch.
        """
        cut: list[object] = []
        for execution in self.all_executions():
            root = execution.node
            while root.parent is not None:
                cut.append(root.next)
                root.next = {}
                root = root.parent
            for node in _below(root):  # the execution may be anywhere by now
                cut.append(node.next)
                node.next = {}
        return cut

    def cut_trie(self, execution: Execution) -> None:
        """Cut the trie of the calling execution, so that all that it does is checked anew."""
        node: TrieNode | None = execution.node
        while node is not None:
            node.next = {}
            node = node.parent

    def segment_of_ended(self, thread: threading.Thread) -> Segment | None:
        """Return the last segment of a thread that took locks, if it did."""
        execution = self.threads.get(thread)
        return execution.segment if execution is not None else None


runtime: Final = Runtime()


@fails_open(None)
def _forked() -> None:
    """Forget all threads but the calling one: a forked process has no others.

    The latch is not taken before the fork: another thread may want it while it has what an older hook waits
    for. Its holder, if there is one, is gone in the child.
    """
    LATCH._at_fork_reinit()  # type: ignore[attr-defined] # noqa: SLF001 - as threading does for its own locks
    mine = local.execution
    runtime.executions = {mine.serial: mine}
    runtime.running = {Interpreter.thread_number(): mine}
    runtime.opens = False


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


@final
class _ThreadEnd:
    """Lives in the thread's local storage, and is dropped when the thread ends."""

    __slots__ = ("_execution", "_is_over", "_process", "_process_now", "_runtime", "_thread")

    def __init__(self, execution: Execution, process: Runtime) -> None:
        self._execution = execution
        self._thread = Interpreter.thread_number()
        self._process = os.getpid()  # a fork leaves the other threads behind: they have not ended
        self._runtime, self._process_now = process, os.getpid  # the names of this module may be gone then
        self._is_over = sys.is_finalizing

    @fails_open(None)
    def __del__(self) -> None:
        self._runtime.executions.pop(self._execution.serial, None)
        if self._runtime.began.get(self._thread) == self._execution.serial:
            del self._runtime.began[self._thread]
            self._runtime.running.pop(self._thread, None)
        ended, is_here = self._runtime.ended, self._process == self._process_now()
        if ended is not None and is_here and not self._is_over():  # names of other modules may be gone
            ended(self._execution)


@fails_open(cast("Segment | None", None))
def _born_after() -> Segment | None:
    """Return the segment after which the calling thread was started, if that is known."""
    return runtime.born() if runtime.born is not None else None


@fails_open(cast("tuple[Execution, _ThreadEnd] | None", None))
def _begun() -> tuple[Execution, _ThreadEnd] | None:
    """Return a new execution for the calling thread, and what notes its end."""
    # A thread that `threading` did not start, or not yet, gets no `Thread` object by being looked at.
    thread = threading._active.get(Interpreter.thread_number())  # type: ignore[attr-defined] # noqa: SLF001
    name = f"thread {Interpreter.thread_number()}" if thread is None else thread.name
    execution = runtime.new_execution(name, _born_after())
    if thread is not None:
        runtime.threads.put(thread, execution)
    return execution, _ThreadEnd(execution, runtime)


NOBODY: Final = Execution("nobody", Segment(0), None)
"""An execution on which nothing is checked."""
NOBODY.inside = True


class _Local(threading.local):
    """The execution that runs on this thread."""

    execution: Execution = NOBODY
    """The execution of finalizers that run on a thread while its own execution is made."""

    def __init__(self) -> None:
        begun = _begun()
        self.execution = begun[0] if begun is not None else Execution("a thread", Segment(0), None)
        self.end = begun[1] if begun is not None else None
        number = Interpreter.thread_number()
        runtime.running[number], runtime.began[number] = self.execution, self.execution.serial
        self.finished: Segment | None = None
        """The last segment of the task that the thread ran last, until its future has it."""


local: Final = _Local()


def go_on_as(execution: Execution) -> None:
    """Continue on the calling thread as another execution; its mark `inside` is kept."""
    execution.inside = local.execution.inside
    local.execution = execution
    runtime.running[Interpreter.thread_number()] = execution


@fails_open(None)
def next_segment(execution: Execution, ended: Segment | None = None, cause: str = "") -> None:
    """Begin the next segment of an execution, if there is a reason; its edges are learned anew then.

    Args:
        execution: the calling one.
        ended: what comes before the next segment in every run.
        cause: why, in words for a finding.
    """
    if ended is None:
        if not execution.segment.silent:
            execution.segment = learn(execution.segment)
            runtime.cut_trie(execution)
        return
    if knows(execution.segment, ended):
        return
    frame = waiting_frame()
    place = (frame.f_code, frame.f_lasti) if frame is not None else (None, 0)
    execution.segment = learn(execution.segment, ended, (cause, *place))
    runtime.cut_trie(execution)


def hand_over(execution: Execution) -> Segment:
    """Return what comes before that which another execution does next, and begin the next segment.

    If nothing was learned in the present segment, it goes on, and what comes before is the one before it.
    """
    segment = execution.segment
    if not segment.learned and segment.number:
        return one_before(segment)
    next_segment(execution)
    return segment


@fails_open(None)
def may_follow(execution: Execution, ended: Segment, *, anew: bool) -> None:
    """Note that an execution may have to follow what has ended, and whether its edges are learned anew."""
    segment = may_learn(execution.segment, ended)
    if segment.maybe != execution.segment.maybe:
        execution.segment = segment
        if anew:
            next_segment(execution)


@fails_open(None)
def forget_order(execution: Execution, before: Segment) -> None:
    """Begin the next segment of an execution as if nothing had been learned since an earlier one."""
    execution.segment = replace(before, number=execution.segment.number + 1, silent=False)
    runtime.cut_trie(execution)
