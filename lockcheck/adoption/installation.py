"""The factories that replace those of `threading`, what puts them there, and locks that were made before.

The classes of `threading` and `queue` are not changed: `Condition` and `Queue` make their locks by these two
factories, so the locks inside of them are adopted.

They are looked for in the modules of the scope: in the names of a module, in the attributes of its classes,
and in those of the instances of its classes that have a name in it. Each checked lock takes the place of such
a lock and takes the plain one inside, so that both exclude each other whatever a thread has loaded already;
the plain one comes back when adoption ends.
That is done if the lock is free and nothing else refers to it: a default argument, a closure or a condition
would go on with the plain lock. The others are listed: they are not watched.
"""

from __future__ import annotations

import _thread
import concurrent.futures
import queue
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import FrameType, FunctionType, GetSetDescriptorType, ModuleType
from typing import Final, Self, cast, final

from ..checking.watch import current
from ..environment.settings import level_for
from ..findings.terms import Level
from ..holding.runtime import LATCH, fails_open, local
from ..holding.stacks import is_of_library
from ..interception.hooks import Hooks, like_original
from ..sessions.session import AT_OPENING
from .adopted import LOCKS, RLOCKS, AdoptedLock, is_adopted
from .naming import NONE, Scope, adopted_for
from .semaphores import forget_all, put_all, put_process_locks

_OWN_LOCK: Final = threading.Lock
_OWN_RLOCK: Final = threading.RLock
"""The original factories, without adoption."""
_INITIALIZERS: Final = frozenset({threading.Condition.__init__.__code__, queue.Queue.__init__.__code__})
"""Code that makes locks for its caller, which is the program: it can take them itself.

No program takes those of an `Event`, a `Semaphore` or a `Barrier`. These are observed by their methods: what
they order is more than their locks do. A semaphore that is used as a lock is one (`semaphores.py`).
"""
_UNTAKEN: Final = frozenset({concurrent.futures.Future.__init__.__code__})
"""Code that makes a lock under which nothing of the program runs; there are as many as tasks."""
_HERE: Final = __file__.rpartition("adoption")[0]
_THREADING: Final = threading.__file__
_PLAIN: Final = (type(_thread.allocate_lock()), type(threading.RLock()))
_OURS: Final = __name__.rpartition(".adoption.")[0]
"""The package of the checker; its own locks are not checked."""
_OWN_REFERENCES: Final = 2
"""How many references this module has to a lock that it looks at: its note of it, and an argument."""
_Put = Callable[[str, object], None]


def Lock(*given: object, **named: object) -> object:  # noqa: N802 - as in threading
    """Return a lock: an adopted one if the caller's locks are, else a plain one."""
    plain = _OWN_LOCK(*given, **named)  # which may refuse the arguments
    return _made(LOCKS, sys._getframe(1)) or plain  # noqa: SLF001 - the documented way to the caller


def RLock(*given: object, **named: object) -> object:  # noqa: N802 - as in threading
    """Return a re-entrant lock: an adopted one if the caller's locks are, else a plain one."""
    plain = _OWN_RLOCK(*given, **named)  # which may refuse the arguments
    return _made(RLOCKS, sys._getframe(1)) or plain  # noqa: SLF001 - the documented way to the caller


def _like(original: Callable[..., object], factory: Callable[..., object]) -> Callable[..., object]:
    """Return a factory that is a class where the original is one: `threading.Lock` is since Python 3.13."""
    factory.__module__ = threading.__name__  # as which `pickle` finds it
    if not isinstance(original, type):
        return like_original(original, factory)
    kind: type = original

    class Made(type):
        __call__ = staticmethod(factory)

        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, kind)

        def __subclasscheck__(cls, subclass: type) -> bool:
            return issubclass(subclass, kind)

    return Made(factory.__name__, (), {"__module__": factory.__module__, "__doc__": kind.__doc__})


_FACTORIES: Final = {"Lock": _like(_OWN_LOCK, Lock), "RLock": _like(_OWN_RLOCK, RLock)}


@fails_open(cast("AdoptedLock | None", None))
def _made(classes: tuple[type[AdoptedLock], ...], caller: FrameType) -> AdoptedLock | None:
    """Return a new adopted lock for the caller of a factory; `None` if the caller's are not adopted."""
    made_for = adopted_for(Adoption.scope_now(), _maker(caller))
    return classes[made_for[1] - 1](made_for[0]) if made_for is not None else None


def _maker(frame: FrameType | None) -> FrameType | None:
    """Return the frame that a new lock is for.

    Locks that the checker makes, and those inside of `threading.Thread`, are for no program: a thread takes
    them before it is known.
    """
    while frame is not None and frame.f_code in _INITIALIZERS:
        frame = frame.f_back
    if frame is None or frame.f_code in _UNTAKEN:
        return None
    if frame.f_code.co_filename == _THREADING or frame.f_code.co_filename.startswith(_HERE):
        return None
    return frame


@final
class Adoption:
    """The time in which new locks of `threading` are adopted; the innermost one applies.

    Args:
        scope: whose locks are adopted.
        awaits_session: whether those that exist are taken over when the next session opens, not at once.
    """

    _open: Final[list[Adoption]] = []

    def __init__(self, scope: Scope, *, awaits_session: bool = False) -> None:
        self.scope = scope
        self._existing = ExistingLocks()
        self._awaits_session = awaits_session

    @classmethod
    def scope_now(cls) -> Scope | None:
        """Return whose locks are adopted now, if any are."""
        opened = cls._open
        return opened[-1].scope if opened else None

    def __enter__(self) -> Self:
        if self.scope.text != NONE and self not in self._open:
            with LATCH:
                if not self._open:
                    _SEMAPHORES.install()
                    _replace(_FACTORIES)
                self._open.append(self)
            if self._awaits_session:
                AT_OPENING.append(self._take_over)
            else:
                self._existing.take_over(self.scope)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _take_over(self) -> None:
        AT_OPENING.remove(self._take_over)
        self._existing.take_over(self.scope)

    def close(self) -> None:
        """Stop adopting locks; those that the program made meanwhile stay adopted."""
        if self._take_over in AT_OPENING:
            AT_OPENING.remove(self._take_over)
        self._existing.give_back()
        with LATCH:
            if self in self._open:
                self._open.remove(self)
                if not self._open:
                    _restore()
                    _SEMAPHORES.uninstall()
                    forget_all()


def _put_all() -> None:
    put_all(_SEMAPHORES, Adoption.scope_now)
    put_process_locks(_SEMAPHORES, Adoption.scope_now)


_SEMAPHORES: Final[Hooks] = Hooks(_put_all)


@fails_open(None, of_setup=True)
def _replace(factories: Mapping[str, object]) -> None:
    """Put factories into `threading`, and into every module that has imported the ones that were there.

    What a fault leaves of those that adopt returns plain locks where nothing is adopted.
    """
    replaced = {id(getattr(threading, name)): factory for name, factory in factories.items()}
    for module in list(sys.modules.values()):
        names = getattr(module, "__dict__", None)
        if type(names) is not dict or module in {_thread, threading} or names.get("__name__") == __name__:
            continue
        if replaced.keys().isdisjoint(map(id, list(names.values()))):
            continue  # nearly every module: a process has tens of thousands of names, each looked at here
        for name, value in list(names.items()):
            if id(value) in replaced:
                names[name] = replaced[id(value)]
    for name, factory in factories.items():
        setattr(threading, name, factory)


@fails_open(None, of_setup=True)
def _restore() -> None:
    """Put the original factories back, unless others, such as those of gevent, have replaced ours."""
    originals = {"Lock": _OWN_LOCK, "RLock": _OWN_RLOCK}
    _replace({name: originals[name] for name, ours in _FACTORIES.items() if getattr(threading, name) is ours})


def adopt(what: str = "program") -> Adoption:
    """Check the locks that are made by `threading` from now on.

    They are checked as those of this package: by the active session, else by the environment. The
    result can be used as a context manager, or ended by `close`.

    Args:
        what: whose locks: `program`, `all` with the standard library, see `Scope`, `none`, or
            patterns of names of modules, separated by commas.

    Raises:
        LockUsageError: it names nothing.
    """
    return Adoption(Scope.of(what)).__enter__()


@final
@dataclass(frozen=True, slots=True)
class _FoundAt:
    """Where a lock was found."""

    text: str
    names: Mapping[str, object]
    key: str
    put: _Put | None
    """Puts something under a name there; `None` where the lock cannot be replaced."""


@final
@dataclass(slots=True)
class _Existing:
    """A lock that was found, and the checked one in its place, if there is one."""

    lock: threading.Lock
    name: str
    """By the first place, as a lock that is made now is named."""
    places: list[_FoundAt] = field(default_factory=list)


@final
class ExistingLocks:
    """The locks that existed when an adoption began, and that are checked until it ends."""

    def __init__(self) -> None:
        self._replaced: list[tuple[_FoundAt, int]] = []
        """The replaced places, and the numbers of the checked ones; the program may drop those."""

    @fails_open(None)
    def take_over(self, scope: Scope) -> None:
        """Have the locks in the modules of a scope checked, as far as that is safe, and list the others."""
        level = level_for(None)
        watch = current()
        if level is Level.OFF or watch is None:
            return
        execution = local.execution
        inside, execution.inside = execution.inside, True
        try:
            for one in _existing(scope):
                if not _is_replaceable(one):
                    watch.unwatched.update((place.text, None) for place in one.places)
                    continue
                kinds = LOCKS if type(one.lock) is _PLAIN[0] else RLOCKS
                checked = kinds[level - 1](one.name)
                checked.guard_with(one.lock)
                for place in one.places:
                    if place.put is not None and place.names.get(place.key) is one.lock:
                        place.put(place.key, checked)
                        self._replaced.append((place, checked.identity.serial))
        finally:
            execution.inside = inside

    @fails_open(None)
    def give_back(self) -> None:
        """Put the plain locks back where the checked ones are still."""
        for place, number in self._replaced:
            lock = cast("AdoptedLock", place.names.get(place.key))
            if place.put is not None and is_adopted(lock) and lock.identity.serial == number:
                place.put(place.key, lock.plain)
        self._replaced.clear()


def _is_replaceable(one: _Existing) -> bool:
    """Return whether a lock is free, and known to all that refer to it by the places that were found."""
    if any(place.put is None for place in one.places):
        return False
    if sys.getrefcount(one.lock) != len(one.places) + _OWN_REFERENCES:
        return False
    if not one.lock.acquire(blocking=False):
        return False
    one.lock.release()
    owned: Callable[[], bool] | None = getattr(one.lock, "_is_owned", None)
    return owned is None or not owned()  # the caller could take its own re-entrant lock


def _existing(scope: Scope) -> list[_Existing]:
    """Return the plain locks in the modules of a scope."""
    found: dict[int, _Existing] = {}
    scoped = {name: module for name, module in list(sys.modules.items()) if _is_in(scope, name, module)}
    for name, module in sorted(scoped.items(), key=lambda item: item[0] == "__main__"):  # it gives no name
        if module.__dict__.get("__name__") != name:  # an alias
            continue
        for names, path, kind, put in _namespaces(module, scoped):
            for key, value in list(names.items()):
                for lock, where in _locks_of(value):
                    one = found.setdefault(id(lock), _Existing(lock, kind + key))
                    replaces = put if lock is value else None
                    if any(place.names is names and place.key == key for place in one.places):
                        continue  # of an instance that has several names
                    one.places.append(_FoundAt(f"{path}{key}{where}", names, key, replaces))
    return list(found.values())


def _locks_of(thing: object) -> list[tuple[threading.Lock, str]]:
    """Return the plain locks that are a thing, or that it has, with what their places are called there."""
    kind = type(thing)  # `isinstance` would ask the program for the class
    if kind in _PLAIN:
        return [(thing, "")]  # type: ignore[list-item] # it is a lock
    inside = _in_function(thing)
    if issubclass(kind, threading.Condition):
        inside = iter([((_attributes(thing) or {}).get("_lock"), "")])
    return [(lock, where) for lock, where in inside if type(lock) in _PLAIN]  # type: ignore[misc] # likewise


def _is_in(scope: Scope, name: str, module: object) -> bool:
    if type(module) is not ModuleType or name == _OURS or name.startswith(f"{_OURS}."):
        return False
    if module is threading:  # a thread takes its locks before it is known
        return False
    file = module.__dict__.get("__file__")
    return scope.has(name, of_library=not isinstance(file, str) or is_of_library(file))


_Namespace = tuple[Mapping[str, object], str, str, _Put]


def _namespaces(module: ModuleType, scoped: Mapping[str, ModuleType]) -> Iterator[_Namespace]:
    """Yield the names of a module, of its classes, and of instances of them, with what precedes its names.

    No code of the program is run for that.
    """
    names, path = module.__dict__, module.__dict__["__name__"]
    yield names, f"{path}.", "" if path == "__main__" else f"{path.rpartition('.')[2]}.", names.__setitem__
    for key, value in list(names.items()):
        if issubclass(type(value), type):
            if type.__getattribute__(value, "__module__") == path:
                inside = type.__getattribute__(value, "__dict__")
                yield inside, f"{path}.{key}.", f"{key}.", partial(type.__setattr__, value)
        elif type(value).__module__ in scoped and (inside := _attributes(value)) is not None:
            yield inside, f"{path}.{key}.", f"{type(value).__name__}.", inside.__setitem__


def _attributes(thing: object) -> dict[str, object] | None:
    """Return the dictionary of an instance, `None` if it has none or a class that computes it."""
    for base in type(thing).__mro__:
        descriptor = vars(base).get("__dict__")
        if descriptor is not None:
            return descriptor.__get__(thing) if type(descriptor) is GetSetDescriptorType else None
    return None


def _in_function(thing: object) -> Iterator[tuple[object, str]]:
    """Yield the default arguments of a function and what is in its closure, with their names there."""
    function = thing.__func__ if type(thing) in {staticmethod, classmethod} else thing  # type: ignore[attr-defined]
    if type(function) is not FunctionType:
        return
    code, defaults = function.__code__, function.__defaults__ or ()
    last = code.co_argcount
    for name, value in zip(code.co_varnames[last - len(defaults) : last], defaults, strict=False):
        yield value, f"({name})"
    for name, value in (function.__kwdefaults__ or {}).items():
        yield value, f"({name})"
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=False):
        try:
            yield cell.cell_contents, f"({name})"
        except ValueError:  # nothing is in it yet
            continue
