"""Finalizers and signal handlers of the program, which make themselves known while a session is open.

They begin without a notice, wherever their thread is. What the thread took at a place before is known there,
and is not checked again; so while one of them runs, the thread knows nothing. The garbage collector tells
when it begins. `__del__` of each class that a module of the program has gets a wrapper, and so does each
handler; the originals come back with the end of the last session.
"""

from __future__ import annotations

import functools
import gc
import signal
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from types import BuiltinFunctionType, FrameType, FunctionType, ModuleType
from typing import Final, TypeAlias, cast

from ..holding.chains import Execution, TrieNode, copied
from ..holding.runtime import Interpreter, fails_open, handled_by, runtime
from ..holding.stacks import is_of_library, is_ours

_Nodes: TypeAlias = "tuple[TrieNode, TrieNode]"
"""What an execution held before a finalizer, and has instead."""

_BUILT_IN: Final = signal._signal  # type: ignore[attr-defined] # noqa: SLF001 - below `signal`, of which programs replace functions
MODULES_MAX: Final = 32
"""How many callers are asked for the modules that they belong to."""
_collecting: Final[dict[int, _Nodes | None]] = {}
"""The threads in which the garbage collector runs now."""
_sizes: Final[dict[int, int]] = {}
"""How many names each module had when it was looked through, by the number of its dictionary."""
_modules_seen = [0]
"""How many modules there were when all were looked through."""
_wrapped: Final[list[tuple[weakref.ref[type], object, object]]] = []
"""The classes of which the finalizer has a wrapper, with both methods."""
AT_COLLECTED: Final[list[Callable[[], None]]] = []
"""The functions to call when the garbage collector has run."""


def collects() -> bool:
    """Return whether the garbage collector runs on the calling thread."""
    return Interpreter.thread_number() in _collecting


@fails_open(None)
def finalizers_noted(*, wanted: bool) -> None:
    """Begin or cease to note when finalizers run."""
    if wanted:
        gc.callbacks.append(_note_collection)
        _change_handlers(handling)
        _change_finalizers(wrapped=True)
        return
    if _note_collection in gc.callbacks:
        gc.callbacks.remove(_note_collection)
    if _note_collection not in gc.callbacks:
        _change_handlers(handled_by)
        _change_finalizers(wrapped=False)


def handling(handler: object) -> object:
    """Return what handles a signal in place of a function of the program."""
    if (
        not callable(handler)
        or isinstance(handler, (BuiltinFunctionType, int))
        or handled_by(handler) is not handler
    ):
        return handler
    function = getattr(handler, "__func__", handler)
    if type(function) is FunctionType and is_ours(function.__code__):
        return handler

    @functools.wraps(handler)
    def handle(number: int, frame: FrameType | None) -> None:
        nodes = _forgetful(runtime.running.get(Interpreter.thread_number()))
        try:
            handler(number, frame)
        finally:
            _remembering(nodes)

    return handle


def _change_handlers(change: Callable[[object], object]) -> None:
    """Change each function that handles a signal, if that can be done here."""
    if Interpreter.thread_number() != threading.main_thread().ident:
        return
    for number in signal.valid_signals():
        before = _BUILT_IN.getsignal(number)
        if callable(before) and change(before) is not before:
            _BUILT_IN.signal(number, change(before))


@fails_open(None)
def _note_collection(phase: str, _: dict[str, int]) -> None:
    number = Interpreter.thread_number()
    if phase == "start":
        _collecting[number] = _forgetful(runtime.running.get(number))
        return
    _remembering(_collecting.pop(number, None))
    for call in AT_COLLECTED:
        call()


@fails_open(cast("_Nodes | None", None))
def _forgetful(execution: Execution | None) -> _Nodes | None:
    """Let an execution keep what it holds, but know nothing of what it took before."""
    if execution is None:
        return None
    known = execution.node
    execution.node = copied(known, known.parent, known.owner)
    return known, execution.node


@fails_open(None)
def _remembering(nodes: _Nodes | None) -> None:
    """Let an execution know again what it knew, unless it goes on with other locks."""
    if nodes is not None and nodes[1].execution.node is nodes[1]:
        nodes[1].execution.node = nodes[0]


def find_finalizers(frame: FrameType) -> None:
    """Wrap the finalizers of classes that are new in the modules of a frame, and of its callers."""
    if _modules_seen[0] != len(sys.modules):
        _modules_seen[0] = len(sys.modules)
        for module in list(sys.modules.values()):
            if type(module) is ModuleType and not _is_of_library(module):
                _look_through(module.__dict__)
    at: FrameType | None = frame
    for _ in range(MODULES_MAX):
        if at is None:
            break
        _look_through(at.f_globals)
        at = at.f_back


def _is_of_library(module: ModuleType) -> bool:
    return is_of_library(str(module.__dict__.get("__file__")))


def _look_through(names: dict[str, object]) -> None:
    if _sizes.get(id(names)) == len(names):
        return
    _sizes[id(names)] = len(names)
    for kind in classes_in(names.values()):
        method = _attributes(kind).get("__del__")
        if type(method) is FunctionType and not is_ours(method.__code__):
            wrapper = _known(method)
            type.__setattr__(kind, "__del__", wrapper)
            _wrapped.append((weakref.ref(kind), method, wrapper))


def classes_in(values: Iterable[object]) -> Iterator[type]:
    """Yield the classes among some values, and those inside of them, that are not of the standard library."""
    pending = list(values)
    seen: set[int] = set()
    while pending:
        kind = pending.pop()
        if not issubclass(type(kind), type) or id(kind) in seen:
            continue
        seen.add(id(kind))
        module = sys.modules.get(str(_attributes(kind).get("__module__")))
        if type(module) is ModuleType and not _is_of_library(module):
            yield cast("type", kind)
            pending += _attributes(kind).values()


def _attributes(kind: object) -> dict[str, object]:
    return cast("dict[str, object]", type.__getattribute__(cast("type", kind), "__dict__"))


def _known(method: Callable[[object], None]) -> Callable[[object], None]:
    @functools.wraps(method)
    def __del__(self: object) -> None:  # noqa: N807 - by which a finalizer is recognized
        nodes = _forgetful(runtime.running.get(Interpreter.thread_number()))
        try:
            method(self)
        finally:
            _remembering(nodes)

    return __del__


def _change_finalizers(*, wrapped: bool) -> None:
    """Put wrappers, or the finalizers from before, into known classes that the program has not changed."""
    for reference, method, wrapper in _wrapped:
        kind = reference()
        before, after = (method, wrapper) if wrapped else (wrapper, method)
        if kind is not None and _attributes(kind).get("__del__") is before:
            type.__setattr__(kind, "__del__", after)
