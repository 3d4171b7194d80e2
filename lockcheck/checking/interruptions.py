"""Locks that finalizers and signal handlers take: both may run wherever their thread is.

A lock that is not re-entrant, taken in one of them, and held elsewhere, is a deadlock of one thread with
itself: the finalizer waits for the code that it interrupts. It does not matter that they did not meet in
this run. That is the rule of Linux' lockdep for interrupts.

A lock that ends with the finalized object does not count: its holder uses the object, which is not
finalized then. So a finding over a finalizer waits until the next new acquisition, or the end of the
session, and is dropped if the lock is gone by then.

A finalizer is recognized by the stack: `__del__`, `weakref.finalize`, a generator that ends unasked, or
anything that the garbage collector calls, such as callbacks of weak references; a handler by its function,
which the program gave to `signal`.

Locks that were taken at a place before are known there, and are not checked again: a thread in a finalizer
or a handler knows nothing (`finalizers.py`).
"""

from __future__ import annotations

import dis
import inspect
import sys
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from types import FrameType, FunctionType
from typing import Final

from ..findings.findings import Finding, fingerprint_of, place_text
from ..findings.terms import Kind, Rung
from ..holding.chains import Acquisition, TrieNode
from ..holding.runtime import Interpreter, fails_open, handling_functions, runtime
from ..holding.stacks import RawStack
from .finalizers import AT_COLLECTED, collects, find_finalizers
from .policy import edges_of_both
from .watch import Watch, current

FRAMES_MAX: Final = 256
"""How far out a finalizer is looked for."""

INTERRUPTIONS_MAX: Final = 4096
"""How many locks of finalizers are remembered; then it begins anew, since most of them are gone."""

_HANDLER: Final = "a signal handler"
_WHERE_IT_ENDS: Final = "that is so only if the object can be in a cycle, or its last reference can go there"
_FINALIZE: Final = weakref.finalize.__call__.__code__
_GENERATOR: Final = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_DROPS: Final = (
    *("DELETE_FAST", "DELETE_NAME", "DELETE_GLOBAL", "DELETE_DEREF", "STORE_FAST", "STORE_NAME"),
    *("STORE_GLOBAL", "STORE_DEREF", "POP_TOP", "POP_ITER", "END_FOR", "RETURN_"),
)
"""How the names of instructions begin that drop a reference and call nothing: what runs then, ends."""


@dataclass(frozen=True, slots=True, eq=False)
class Interruption:
    """A lock that is requested in a finalizer or a signal handler."""

    what: str
    wanted: Acquisition
    execution: str
    """The name of the execution that was interrupted."""
    serial: int
    """Its number."""
    stack: RawStack


def check_interruption(watch: Watch, node: TrieNode, frame: FrameType) -> bool:
    """Check a new acquisition of a lock against those in finalizers and handlers, or elsewhere.

    Returns:
        Whether it need not be checked again: nothing is wrong, and the thread was not interrupted.

    Raises:
        DeadlockPossibleError: that is the policy for what was found.
    """
    acquisition = node.acquisition
    if acquisition is None or acquisition.lock.reentrant or acquisition.lock.answers:
        return True
    if (acquisition.lock.permits or 1) > 1:
        return True
    handling = handling_functions()
    lock, what = acquisition.lock, _interruption(frame, handling)
    if what is None:
        find_finalizers(frame)
        report_survivors(watch, node.execution.serial)
        if lock.elsewhere is None:
            lock.elsewhere = acquisition.mode, node.stack, node.execution.name
        interruption = watch.interruptions.get(lock.serial)
        return interruption is None or _report(watch, interruption)
    if acquisition.attempt == "block" and lock.fresh_for is None:
        interruption = Interruption(what, acquisition, node.execution.name, node.execution.serial, node.stack)
        if len(watch.interruptions) >= INTERRUPTIONS_MAX:
            watch.interruptions.clear()
        watch.interruptions[lock.serial] = interruption
        if lock.elsewhere is not None and what == _HANDLER:
            _report(watch, interruption)
        elif lock.elsewhere is not None:
            watch.finalized.append(interruption)
    return False


def report_survivors(watch: Watch, serial: int | None = None) -> None:
    """Report the locks that finalizers took and that have not ended with the objects.

    Args:
        watch: has the finalizers, and takes the findings.
        serial: number of the execution whose finalizers are over, while others may still run; `None` for all.

    Raises:
        DeadlockPossibleError: that is the policy for what was found.
    """
    over = [one for one in watch.finalized if serial in {None, one.serial}]
    watch.finalized = [one for one in watch.finalized if one not in over]
    for interruption in over:
        if interruption.wanted.lock.alive or interruption in watch.survivors:
            _report(watch, interruption)
    watch.survivors.difference_update(over)


@fails_open(None)
def _note_survivors() -> None:
    """Note the locks that have not ended with what the garbage collector has ended, even if they do later."""
    watch = current()
    execution = runtime.running.get(Interpreter.thread_number())
    if watch is not None and execution is not None:
        mine = [one for one in watch.finalized if one.serial == execution.serial]
        watch.survivors.update(one for one in mine if one.wanted.lock.alive)


AT_COLLECTED.append(_note_survivors)


def _interruption(frame: FrameType, handling: Sequence[FunctionType]) -> str | None:
    """Return what interrupts a thread in a frame, or nothing; given the functions that handle signals.

    A frame that runs where its caller drops a reference was not called: a generator that ends unasked, or the
    callback of a weak reference.
    """
    codes = {function.__code__ for function in handling}
    at: FrameType | None = frame
    traced = sys.gettrace() is not None or sys.getprofile() is not None  # whose functions run anywhere
    for _ in range(FRAMES_MAX):
        if at is None:
            break
        if at.f_code.co_name == "__del__" or at.f_code is _FINALIZE:
            return "a finalizer"
        if at.f_code in codes:
            return _HANDLER
        is_called = traced and not at.f_code.co_flags & _GENERATOR
        if at.f_back is not None and not is_called and _drops(at.f_back):
            return "a finalizer"
        at = at.f_back
    return "the garbage collector" if collects() else None


def _drops(frame: FrameType) -> bool:
    """Return whether a frame drops a reference, and calls nothing."""
    instruction = dis.opname[frame.f_code.co_code[frame.f_lasti]] if frame.f_lasti >= 0 else ""
    if instruction == "STORE_NAME" and frame.f_locals is not frame.f_globals:
        return False  # the body of a class, whose names may be kept by a method
    return instruction.startswith(_DROPS)


def _report(watch: Watch, interruption: Interruption) -> bool:
    what, wanted = interruption.what, interruption.wanted
    if wanted.lock.elsewhere is None or watch.policy.order_disabled:
        return True
    mode, stack, holder = wanted.lock.elsewhere
    edges = edges_of_both(
        Acquisition(wanted.lock, mode), wanted,
        holder=holder, hold_stack=stack, execution=interruption.execution, stack=interruption.stack,
    )  # fmt: skip
    places = place_text(edges[0].hold_stack), place_text(edges[-1].want_stack)
    watch.report(
        Finding(
            Rung.R2,
            Kind.RECURSION,
            f"{wanted} is taken in {what}, and is held elsewhere, where that may run",
            edges,
            (
                "the lock is not re-entrant: if its holder is interrupted there, that waits for itself",
                *([_WHERE_IT_ENDS] if what != _HANDLER else []),
                f"make the lock re-entrant, or let {what} take none",
            ),
            fingerprint=fingerprint_of("interruption", edges[0].class_edge or "", *places),
        )
    )
    return False
