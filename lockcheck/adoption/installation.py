"""The factories that replace `threading.Lock` and `threading.RLock`, and what puts them there.

The classes of `threading` and `queue` stay as they are: `Condition` and `Queue` make their locks by these two
factories, so the locks inside of them are adopted.
"""

from __future__ import annotations

import _thread
import queue
import sys
import threading
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Final, Self, cast, final

from ..findings.levels import Level
from ..holding.runtime import LATCH, fails_open
from ..interception.hooks import Hooks, like_original
from ..sessions.session import AT_OPENING
from .adopted import LOCKS, RLOCKS, AdoptedLock
from .existing import ExistingLocks
from .makers import adopted_for
from .process_locks import put_process_locks
from .scope import NONE, Scope
from .semaphores import forget_all, put_all

_OWN_LOCK: Final = threading.Lock
_OWN_RLOCK: Final = threading.RLock
"""The factories as they are without adoption."""

_INITIALIZERS: Final = frozenset({threading.Condition.__init__.__code__, queue.Queue.__init__.__code__})
"""Code that makes locks for its caller, which is the program: it can take them itself.

No program takes those of an `Event`, a `Semaphore` or a `Barrier`. These are observed by their methods: what
they order is more than their locks do. A semaphore that is used as a lock is one (`semaphores.py`).
"""

_HERE: Final = __file__.rpartition("adoption")[0]
_THREADING: Final = threading.__file__


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
    return classes[min(made_for[1], Level.RECORD) - 1](made_for[0]) if made_for is not None else None


def _maker(frame: FrameType | None) -> FrameType | None:
    """Return the frame that a new lock is for.

    Locks that the checker makes, and those inside of `threading.Thread`, are for no program: a thread takes
    them before it is known.
    """
    while frame is not None and frame.f_code in _INITIALIZERS:
        frame = frame.f_back
    if frame is None or frame.f_code.co_filename == _THREADING or frame.f_code.co_filename.startswith(_HERE):
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
        """Adopt no more locks; those that the program made meanwhile stay adopted."""
        if self._take_over in AT_OPENING:
            AT_OPENING.remove(self._take_over)
        self._existing.give_back()
        with LATCH:
            if self in self._open:
                self._open.remove(self)
                if not self._open:
                    _replace({"Lock": _OWN_LOCK, "RLock": _OWN_RLOCK})
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


def adopt(what: str = "program") -> Adoption:
    """Check the locks that are made by `threading` from now on.

    They are checked as those of this package are: as the active session says, else the environment. The
    result can be used as a context manager, or ended by `close`.

    Args:
        what: whose locks: `program`, `all` with the standard library, see `Scope`, `none`, or
            patterns of names of modules, separated by commas.

    Raises:
        LockUsageError: it names nothing.
    """
    return Adoption(Scope.of(what)).__enter__()
