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

Locks that were taken at a place before are known there, and are not checked again: while the garbage
collector runs, the thread knows nothing. Other finalizers and handlers begin without a notice: what functions
take that they may call by name is looked at each time.
"""

from __future__ import annotations

import dis
import gc
import inspect
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from types import CodeType, FrameType, FunctionType
from typing import Final

from ..findings.findings import Edge, Finding, fingerprint_of, place_text
from ..findings.terms import Kind, Rung
from ..holding.chains import Acquisition, Execution, TrieNode, class_edge_text, copied
from ..holding.runtime import Interpreter, fails_open, handling_functions, runtime
from ..holding.stacks import RawStack, resolve
from .watch import Watch

FRAMES_MAX: Final = 256
"""How far out a finalizer is looked for."""

INTERRUPTIONS_MAX: Final = 4096
"""How many locks of finalizers are remembered; then it begins anew, since most of them are gone."""

_HANDLER: Final = "a signal handler"
_FINALIZE: Final = weakref.finalize.__call__.__code__
_collecting: Final[dict[int, tuple[TrieNode, TrieNode] | None]] = {}
"""The threads in which the garbage collector runs now: what the execution there held, and has instead."""
_GENERATOR: Final = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_DROPS: Final = (
    "DELETE_",
    "STORE_FAST",
    "STORE_NAME",
    "STORE_GLOBAL",
    "POP_TOP",
    "POP_ITER",
    "END_FOR",
    "RETURN_",
)
"""How the names of instructions begin that drop a reference and call nothing: what runs then, ends."""
_names: Final[dict[CodeType, set[str]]] = {}
"""The findings about functions that may interrupt others."""
REACHED_MAX: Final = 1000
"""How many functions are looked at that a finalizer or handler may call."""


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


@fails_open(None)
def _note_collection(phase: str, _: dict[str, int]) -> None:
    number = Interpreter.thread_number()
    if phase == "start":
        execution = runtime.running.get(number)
        _collecting[number] = None if execution is None else _forgetful(execution)
        return
    nodes = _collecting.pop(number, None)
    if nodes is not None and nodes[1].execution.node is nodes[1]:
        nodes[1].execution.node = nodes[0]


def _forgetful(execution: Execution) -> tuple[TrieNode, TrieNode]:
    """Have an execution hold what it holds, and know nothing of what it took there before."""
    known = execution.node
    execution.node = copied(known, known.parent, known.owner)
    return known, execution.node


@fails_open(None)
def collections_noted(*, wanted: bool) -> None:
    """Begin or cease to note in which threads the garbage collector runs."""
    if wanted:
        gc.callbacks.append(_note_collection)
    elif _note_collection in gc.callbacks:
        gc.callbacks.remove(_note_collection)


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
        report_survivors(watch, node.execution.serial)
        if lock.elsewhere is None:
            lock.elsewhere = acquisition.mode, node.stack
        interruption = watch.interruptions.get(lock.serial)
        sound = interruption is None or _report(watch, interruption)
        return sound and not _finalizes(frame) and not _is_named_in_interruptions(frame, handling)
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
        if interruption.wanted.lock.alive:
            _report(watch, interruption)


def _interruption(frame: FrameType, handling: Sequence[FunctionType]) -> str | None:
    """Return what interrupts a thread in a frame, or nothing; given the functions that handle signals."""
    codes = {function.__code__ for function in handling}
    at: FrameType | None = frame
    for _ in range(FRAMES_MAX):
        if at is None:
            break
        if at.f_code.co_name == "__del__" or at.f_code is _FINALIZE:
            return "a finalizer"
        if at.f_code in codes:
            return _HANDLER
        if at.f_code.co_flags & _GENERATOR and at.f_back is not None and _drops(at.f_back):
            return "a finalizer"
        at = at.f_back
    return "the garbage collector" if Interpreter.thread_number() in _collecting else None


def _finalizes(frame: FrameType) -> bool:
    """Return whether a frame runs a method that the finalizer of its class calls by name.

    Its locks are checked again each time: the next time the finalizer may be its caller.
    """
    owner, _, name = frame.f_code.co_qualname.rpartition(".")
    if not owner or name == "<lambda>":
        return False
    found: object = frame.f_globals.get(owner.partition(".")[0])
    for part in owner.split(".")[1:]:
        found = vars(found).get(part) if issubclass(type(found), type) else None
    if not issubclass(type(found), type):
        return False
    classes = type.__getattribute__(found, "__mro__")
    finalizer = next((vars(one)["__del__"] for one in classes if "__del__" in vars(one)), None)
    code = getattr(finalizer, "__code__", None)
    return code is not None and name in code.co_names


def _drops(frame: FrameType) -> bool:
    """Return whether a frame drops a reference: a generator that runs below it has not been asked to."""
    return frame.f_lasti >= 0 and dis.opname[frame.f_code.co_code[frame.f_lasti]].startswith(_DROPS)


def _is_named_in_interruptions(frame: FrameType, handling: Sequence[FunctionType]) -> bool:
    """Return whether a signal handler, or a finalizer in its module, may call a function by its name."""
    name, names = frame.f_code.co_name, frame.f_globals
    found = [vars(one).get("__del__") for one in list(names.values()) if type(one) is type]
    functions = [one for one in found if type(one) is FunctionType]
    return any(name in _reached(function) for function in (*functions, *handling))


def _reached(function: FunctionType) -> set[str]:
    """Return the names that a function has, and those of the functions of its module that it may call."""
    known = _names.get(function.__code__)
    if known is not None:
        return known
    pending, names = [function], set[str]()
    seen = {function.__code__}
    for each in pending:
        names |= _names_in(each.__code__)
        for name in each.__code__.co_names:
            called = each.__globals__.get(name)
            if type(called) is FunctionType and called.__code__ not in seen and len(seen) < REACHED_MAX:
                seen.add(called.__code__)
                pending.append(called)
    if len(_names) >= REACHED_MAX:
        _names.clear()
    _names[function.__code__] = names
    return names


def _names_in(code: CodeType) -> set[str]:
    return {*code.co_names}.union(*(_names_in(one) for one in code.co_consts if isinstance(one, CodeType)))


def _report(watch: Watch, interruption: Interruption) -> bool:
    what, wanted = interruption.what, interruption.wanted
    if wanted.lock.elsewhere is None or watch.policy.order_disabled:
        return True
    mode, stack = wanted.lock.elsewhere
    held = Acquisition(wanted.lock, mode)
    edge = Edge(
        execution=interruption.execution,
        held=str(held),
        wanted=str(wanted),
        all_held=(str(held),),
        hold_stack=resolve(stack),
        want_stack=resolve(interruption.stack),
        class_edge=class_edge_text(held, wanted),
    )
    places = place_text(edge.hold_stack), place_text(edge.want_stack)
    watch.report(
        Finding(
            Rung.R2,
            Kind.RECURSION,
            f"{wanted} is taken in {what}, and is held elsewhere, where that may run",
            (edge,),
            (
                "the lock is not re-entrant: if its holder is interrupted there, that waits for itself",
                f"make the lock re-entrant, or let {what} take none",
            ),
            fingerprint=fingerprint_of("interruption", edge.class_edge or "", *places),
        )
    )
    return False
