"""Locks of other libraries: a program declares which methods of a class take and release them.

Such a lock is checked as one lock, with the modes that were described. The locks inside of it are left alone:
a lock that the first reader takes and the last one releases would look like one that is held out of order.
"""

from __future__ import annotations

import functools
import inspect
import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, Final, Self, TypeAlias, cast, final

from ..checking.slow_path import entered, take_out, take_slow_path_at
from ..checking.waiting import LockWait, wait_in_slices
from ..checking.watch import current
from ..findings.terms import Level, LockUsageError, Mode, RWPolicy
from ..holding.chains import Acquisition, Attempt, Execution, LockIdentity, TrieNode, holds_of
from ..holding.runtime import LATCH, fails_open, local
from ..locks.steered import steer
from .naming import name_at

Ways: TypeAlias = "str | tuple[str, str] | Sequence[str | tuple[str, str]]"
"""How a lock is taken in a mode: the name of a method that returns a context manager, or a lock, for that
mode; or the names of two methods that take and release it; or several of both."""

_MISSING: Final = object()
_HERE: Final = __file__
_MARK: Final = "__lockcheck_described__"
"""The attribute of a method that a description has put into a class."""
_CONTEXTS: Final = str(inspect.getsourcefile(contextmanager))


@final
class Description:
    """A class of locks that is checked, until this is closed.

    Args:
        lock_class: the class; see `describe` for the rest.
    """

    def __init__(self, lock_class: type, *, reentrant: bool, policy: RWPolicy | None) -> None:
        self._class = lock_class
        self._reentrant = reentrant
        self._policy = policy
        self._identities: dict[int, tuple[weakref.ref[object], LockIdentity]] = {}
        self._acquisitions: dict[tuple[int, Mode, Attempt], Acquisition] = {}
        self._originals: dict[str, tuple[object, object]] = {}
        """By name of a method: what the class itself had, and what replaced that."""
        self._refuse_described("__init__", vars(lock_class).get("__init__"))
        self._replace("__init__", self._constructor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Check these locks no longer. Held ones are forgotten, since their release will not be seen."""
        while self._originals:
            name, (original, replacement) = self._originals.popitem()
            if vars(self._class).get(name) is not replacement:
                continue  # The program has replaced it meanwhile.
            if original is _MISSING:
                delattr(self._class, name)
            else:
                setattr(self._class, name, original)
        with LATCH:
            for _, identity in self._identities.values():
                identity.alive = None  # As of an adopted lock that is left alone.
            self._identities.clear()
            self._acquisitions.clear()

    # ------------------------------------------------------------------------------- the methods

    def add(self, mode: Mode, ways: Ways) -> None:
        """Check the methods that take and release the lock in a mode.

        Raises:
            LockUsageError: the class has no such method, or it is described already.
        """
        several = [cast("str | tuple[str, str]", ways)] if _is_one(ways) else ways
        for way in several:
            if isinstance(way, str):
                self._replace(way, functools.partial(self._maker, mode))
            else:
                takes, releases = way
                self._replace(takes, functools.partial(self._taker, mode))
                self._replace(releases, functools.partial(self._releaser, mode))

    def _replace(self, name: str, wrapped: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
        original = getattr(self._class, name, None)
        if not callable(original):
            raise LockUsageError(f"{self._class.__qualname__} has no method {name!r} that could be described")
        if name != "__init__":  # That of a described base notes nothing for a subclass.
            self._refuse_described(name, original)
        replacement = functools.wraps(original)(wrapped(original))
        setattr(replacement, _MARK, True)
        before = vars(self._class).get(name, _MISSING)
        setattr(self._class, name, replacement)
        self._originals[name] = before, replacement

    def _refuse_described(self, name: str, method: object) -> None:
        if _MARK in getattr(method, "__dict__", ()):
            raise LockUsageError(f"describe: {self._class.__qualname__}.{name} is described already")

    def _constructor(self, original: Callable[..., None]) -> Callable[..., None]:
        def init(lock: object, *given: object, **named: object) -> None:
            self._name(lock, sys._getframe(1))  # noqa: SLF001 - the documented way to the caller
            with _left_alone(local.execution):  # No lock that it makes for itself is adopted.
                original(lock, *given, **named)

        return init

    def _taker(self, mode: Mode, original: Callable[..., object]) -> Callable[..., object]:
        attempt_of = attempts_of(original)

        def take(lock: object, *given: object, **named: object) -> object:
            attempt = attempt_of(lock, given, named)
            return self.take(lock, mode, attempt, lambda: original(lock, *given, **named))

        return take

    def _releaser(self, mode: Mode, original: Callable[..., object]) -> Callable[..., object]:
        def release(lock: object, *given: object, **named: object) -> object:
            return self.release(lock, mode, lambda: original(lock, *given, **named))

        return release

    def _maker(self, mode: Mode, original: Callable[..., object]) -> Callable[..., object]:
        def make(lock: object, *given: object, **named: object) -> object:
            if local.execution.inside:
                return original(lock, *given, **named)
            with _left_alone(local.execution):
                made = original(lock, *given, **named)
            return _Taker(self, lock, mode, made)

        return make

    # ------------------------------------------------------------------------------- what they do

    def take(self, lock: object, mode: Mode, attempt: Attempt, original: Callable[[], object]) -> object:
        """Check an acquisition, make it, and note it; return what the library returns.

        Raises:
            LockOrderError, DeadlockPossibleError: that is the policy for what was found; nothing was taken.
            DeadlockError: the acquisition would complete a deadlock; nothing was taken.
        """
        execution = local.execution
        if execution.inside:
            return original()
        frame = sys._getframe(1)  # noqa: SLF001 - the documented way to the caller
        after = self._checked(execution, lock, mode, attempt, frame)
        if after is None or after.acquisition is None:
            return original()
        result = _waited(execution, after.acquisition, frame, original)
        if result is not False:
            _noted(execution, after)
        return result

    @fails_open(cast("TrieNode | None", None))
    def _checked(
        self, execution: Execution, lock: object, mode: Mode, attempt: Attempt, frame: FrameType
    ) -> TrieNode | None:
        """Check an acquisition before it is made; return its node."""
        acquisition = self._acquisition(lock, mode, attempt)
        after = take_slow_path_at(execution, acquisition, _program(frame, lock))
        steer(execution, acquisition)
        return after

    def release(self, lock: object, mode: Mode, original: Callable[[], object]) -> object:
        """Note that a lock is released, and release it; the library refuses what is wrong."""
        execution = local.execution
        if execution.inside:
            return original()
        self._left(execution, lock, mode)
        with _left_alone(execution):
            return original()

    @fails_open(None)
    def _left(self, execution: Execution, lock: object, mode: Mode) -> None:
        identity = self._identity(lock)
        held = (node.acquisition for node in holds_of(identity, execution.node))
        if any(acquisition is not None and acquisition.mode == mode for acquisition in held):
            take_out(execution, identity, mode)

    # -------------------------------------------------------------------------------- who they are

    @fails_open(None)
    def _name(self, lock: object, frame: FrameType | None) -> None:
        execution = local.execution
        if execution.inside:
            return
        with _left_alone(execution):
            while frame is not None and frame.f_locals.get("self") is lock:
                frame = frame.f_back  # The constructor of a subclass has called this one.
            self._enter(lock, self._class.__qualname__ if frame is None else name_at(frame))

    def _identity(self, lock: object) -> LockIdentity:
        found = self._identities.get(id(lock))
        return self._enter(lock, self._class.__qualname__) if found is None else found[1]

    def _enter(self, lock: object, name: str) -> LockIdentity:
        number = id(lock)
        identity = LockIdentity(name, None, reentrant=self._reentrant, policy=self._policy)

        def forget(_: object) -> None:
            identity.alive = False
            for mode in ("R", "W"):
                for attempt in ("block", "timed", "try"):
                    self._acquisitions.pop((number, mode, attempt), None)
            self._identities.pop(number, None)

        with LATCH:
            return self._identities.setdefault(number, (weakref.ref(lock, forget), identity))[1]

    def _acquisition(self, lock: object, mode: Mode, attempt: Attempt) -> Acquisition:
        identity = self._identity(lock)
        asked = id(lock), mode, attempt
        found = self._acquisitions.get(asked)
        return found or self._acquisitions.setdefault(asked, Acquisition(identity, mode, attempt))


@final
class _Taker:
    """The value of a method that is to be entered, or taken, for one mode of a described lock."""

    def __init__(self, description: Description, lock: object, mode: Mode, made: Any) -> None:
        self._description = description
        self._lock = lock
        self._mode: Mode = mode
        self._made = made

    @property  # type: ignore[misc] # it cannot be set
    def __class__(self) -> type:  # for `isinstance`
        return type(self._made)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._made, name)

    def __enter__(self) -> object:
        entered_with: list[object] = []
        self._description.take(
            self._lock, self._mode, "block", lambda: entered_with.append(self._made.__enter__())
        )
        return entered_with[0]

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> object:
        return self._description.release(
            self._lock, self._mode, lambda: self._made.__exit__(kind, error, trace)
        )

    def acquire(self, *given: object, **named: object) -> object:
        """Take the lock in this mode, as the library does."""
        attempt = attempts_of(type(self._made).acquire)(self._made, given, named)
        return self._description.take(
            self._lock, self._mode, attempt, lambda: self._made.acquire(*given, **named)
        )

    def release(self, *given: object, **named: object) -> object:
        """Release the lock in this mode, as the library does."""
        return self._description.release(self._lock, self._mode, lambda: self._made.release(*given, **named))


@contextmanager
def _left_alone(execution: Execution) -> Iterator[None]:
    """Have the checker see nothing of what an execution does."""
    inside, execution.inside = execution.inside, True
    try:
        yield
    finally:
        execution.inside = inside


def _waited(
    execution: Execution, acquisition: Acquisition, frame: FrameType, original: Callable[[], object]
) -> object:
    """Take a lock by a call that may wait, and return its result; other threads see what this one waits for.

    The wait cannot be interrupted. So a deadlock is searched for before it, and the execution that would
    complete one is its victim. Whether an execution may take a lock that it holds is for the library to
    judge.

    Raises:
        DeadlockError: this wait would complete a deadlock, and the policy breaks it; the call was not made.
    """
    wait = LockWait(acquisition, endless=acquisition.attempt == "block")
    results: list[object] = []

    def attempt(_: float) -> bool:
        wait.breakable = False
        with _left_alone(execution):
            results.append(original())
        return True

    closes = wait.endless and not any(holds_of(acquisition.lock, execution.node))
    wait_in_slices(execution, wait, attempt, -1, frame=frame, closes=closes)
    return results[0]


@fails_open(None)
def _noted(execution: Execution, after: TrieNode) -> None:
    """Note that a lock is held now."""
    watch = current()
    if watch is not None and watch.policy.level >= Level.FULL:
        entered(execution.node, after)
    execution.node = after


def _is_one(ways: Ways) -> bool:
    """Return whether this is one way: a name, or a pair of them; a list of two names is two ways."""
    return isinstance(ways, str) or (isinstance(ways, tuple) and [str, str] == [type(name) for name in ways])


def _program(frame: FrameType | None, lock: object) -> FrameType | None:
    """Return the frame of the program that uses a lock, from one of its methods."""
    files = {_HERE, _CONTEXTS, str(sys.modules[type(lock).__module__].__file__)}
    at = frame
    while at is not None and at.f_code.co_filename in files:
        at = at.f_back
    return at or frame


def describe(
    lock_class: type,
    *,
    acquire: str | None = None,
    release: str | None = None,
    read: Ways = (),
    write: Ways = (),
    reentrant: bool = False,
    policy: RWPolicy = "writer",
) -> Description:
    """Check the locks of a class of another library from now on.

    They are checked as those of this package are. Locks that are made before this call are checked too, but
    not named, and locks inside of them may be adopted already. The result can be used as a context manager,
    or ended by `close`.

    Args:
        lock_class: the class. Its methods are replaced by ones that check, and then do the same.
        acquire: the name of the method that takes an exclusive lock. It may return `False`: the lock was not
            taken then. Its arguments `blocking` and `timeout` (seconds) limit the wait.
        release: the name of the method that releases it.
        read: how a read/write lock is taken for reading, see `Ways`.
        write: how it is taken for writing.
        reentrant: whether a thread that holds the lock may take it again.
        policy: whether a read/write lock lets waiting writers go first (`writer`), or readers (`reader`).

    Raises:
        LockUsageError: the class has no such method, one is described already, or nothing is described.
    """
    if (acquire is None) != (release is None) or not (acquire or read or write):
        raise LockUsageError(
            f"describe({lock_class.__qualname__}): name both acquire and release, or read and write"
        )
    description = Description(lock_class, reentrant=reentrant, policy=policy if read or write else None)
    try:
        if acquire is not None and release is not None:
            description.add("W", (acquire, release))
        description.add("R", read)
        description.add("W", write)
    except LockUsageError:
        description.close()
        raise
    return description


def attempts_of(
    method: Callable[..., object],
) -> Callable[[object, tuple[object, ...], dict[str, object]], Attempt]:
    """Return the function that finds how long a call waits, by its arguments `blocking` and `timeout`."""
    signature = inspect.signature(method)

    def attempt_of(lock: object, given: tuple[object, ...], named: dict[str, object]) -> Attempt:
        if not given and not named:
            return "block"
        try:
            arguments = signature.bind(lock, *given, **named).arguments
        except TypeError:
            return "block"  # The library refuses them.
        timeout = arguments.get("timeout")
        if not arguments.get("blocking", True) or timeout == 0:
            return "try"
        return "timed" if isinstance(timeout, int | float) and timeout > 0 else "block"

    return attempt_of
