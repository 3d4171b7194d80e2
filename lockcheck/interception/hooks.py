"""Hooks in the standard library: installed while they are needed, and removed after the last use.

A hook is a function of the checker that calls the original one somewhere inside. If the checker's part of it
fails, the program gets what the original has returned or raised; if that was not called yet, it is called.
"""

from __future__ import annotations

import _thread
import concurrent.futures
import functools
import threading
from collections.abc import Callable, Iterator
from types import BuiltinFunctionType, ModuleType
from typing import Any, Concatenate, Final, ParamSpec, TypeAlias, TypeVar, cast, final

from ..findings.terms import LockCheckError, LockOrderWarning
from ..holding.runtime import LATCH, fails_open, note_fault, note_fault_of_setup, raised_by_handler

Given = ParamSpec("Given")
Result = TypeVar("Result")
Row: TypeAlias = "tuple[object, str, Callable[..., Any]]"
"""The owner of a function of the standard library, its name, and its hook."""

IS_ALIVE: Final = threading.Thread.is_alive
IS_SET: Final = threading.Event.is_set
DONE: Final = concurrent.futures.Future.done
"""The original methods, while nothing is checked: calls by the checker are not events of the program."""

_MISSING: Final = object()


def passed_on(found: Iterator[Result], note: Callable[[Result], object]) -> Iterator[Result]:
    """Yield what is found, after a note of each; meanwhile only the program has it, and may drop it.

    A generator goes on after the call of its hook has ended: the guard of that call does not see its faults.
    """

    @fails_open(None)
    def note_safely(one: Result) -> None:
        note(one)

    while True:
        try:
            one = [next(found)]
        except StopIteration:
            return
        note_safely(one[0])
        yield one.pop()


@final
class _Raised:
    """An error that the original function of a hook has raised."""

    __slots__ = ("error",)

    def __init__(self, error: BaseException) -> None:
        self.error = error


class _Calls(threading.local):
    """The calls of hooks on this thread, the innermost last: the mark of the hook, and what its original did.

    They are lists since that is fastest.
    """

    def __init__(self) -> None:
        self.stack: list[list[object]] = [[None]]


_calls: Final = _Calls()


def guarded(
    method: Callable[Given, Result], hook: Callable[Concatenate[Callable[Given, Result], Given], Result]
) -> Callable[Given, Result]:
    """Return a function with a hook around it, so that a fault in the hook does not reach the program.

    What the function raises, what a signal handler of the program raises, and what the policy of a session
    says are no faults. Neither is an argument that the function refuses too.

    Args:
        method: the function that is there.
        hook: is called in its place, with the function to call and what that was given.
    """
    this = object()

    @functools.wraps(method)
    def original(*given: Given.args, **named: Given.kwargs) -> Result:
        call = _calls.stack[-1]
        if call[0] is not this:  # a generator of the hook goes on after its call
            return method(*given, **named)
        try:
            result = method(*given, **named)
        except BaseException as error:
            call.append(_Raised(error))
            raise
        call.append(result)
        return result

    @functools.wraps(method)
    def safe(*given: Given.args, **named: Given.kwargs) -> Result:
        if type(_thread.start_new_thread) is not BuiltinFunctionType:
            return method(
                *given, **named
            )  # greenlets run in the place of threads, and share what a thread has
        calls, call = _calls.stack, [this]
        calls.append(call)
        try:
            return hook(original, *given, **named)
        except (LockCheckError, LockOrderWarning):
            raise
        except Exception as error:
            if _is_of_original(error, call) or raised_by_handler(error):
                raise  # no variable here has it: its traceback has this frame
            return cast("Result", _after_fault(error, call, lambda: method(*given, **named)))
        finally:
            calls.pop()
            call.clear()  # the traceback of an error has this frame

    return safe


def _is_of_original(error: Exception, call: list[object]) -> bool:
    """Return whether the original function has raised an error."""
    return isinstance(call[-1], _Raised) and call[-1].error is error


def _after_fault(error: Exception, call: list[object], original: Callable[[], object]) -> object:
    """Return what the original function has returned, or raise its error; call it if it was not called."""
    became = call[-1]
    if isinstance(became, _Raised):
        if error.__context__ is became.error:
            note_fault(error)
            raise became.error from None
    elif len(call) > 1:
        note_fault(error)
        return became
    return _without_hook(error, original)


def _without_hook(error: Exception, original: Callable[[], Result]) -> Result:
    """Call the original function after its hook has failed with an error."""
    if not isinstance(error, _OF_ARGUMENTS):
        note_fault(error)
        return original()
    try:
        result = original()
    except type(error):  # the program's mistake
        raise
    except BaseException:
        note_fault(error)
        raise
    note_fault(error)
    return result


_OF_ARGUMENTS: Final = (TypeError, ValueError, AttributeError, OverflowError)
"""The errors of wrong arguments."""


def like_original(original: object, hook: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls a hook; if the original is built in, it is not a method in a class either.

    A function of Python that is an attribute of a class gets the instance as its first argument.
    """
    if not isinstance(original, BuiltinFunctionType):
        return hook
    members: dict[str, Any] = {
        "__call__": staticmethod(hook),
        "__class__": property(lambda _: BuiltinFunctionType),  # for `isinstance`
        "__repr__": lambda _: repr(original),
        "__reduce__": lambda replacing: replacing.__name__,  # by which `pickle` finds it, and `copy` keeps it
    }
    replacing: Callable[..., Any] = type("builtin_function_or_method", (), members)()
    return functools.update_wrapper(replacing, hook)


@final
class Hooks:
    """Replaced functions and methods, and a count of their users.

    Args:
        put_all: replaces them, by `wrap`.
    """

    def __init__(self, put_all: Callable[[], None]) -> None:
        self._put_all = put_all
        self._wanted = 0
        self._before: list[tuple[object, str, object, object]] = []

    def wrap(self, owner: object, name: str, hook: Callable[..., Any]) -> None:
        """Put a hook around a function or method: it is called with the original, and what that was given."""
        original = getattr(owner, name)
        hooked = like_original(original, guarded(original, hook))
        if isinstance(owner, ModuleType):
            # `pickle` finds it by these; `os.open` names another module.
            hooked.__module__ = owner.__name__
        self.put(owner, name, hooked)

    def skip(self, owner: object, name: str, light: Callable[[Any, Any], Any]) -> None:
        """Put a function before a hook that calls the original itself where the hook has nothing to do.

        Args:
            owner: has the hook.
            name: of the function.
            light: returns that function, given the original and the one with the hook. It has no guard.
        """
        hooked = getattr(owner, name)
        self.put(owner, name, functools.wraps(hooked)(light(hooked.__wrapped__, hooked)))

    def put(self, owner: object, name: str, method: object) -> None:
        """Replace something by an object that is not a hook, and remember the original."""
        self._before.append((owner, name, vars(owner).get(name, _MISSING), method))
        setattr(owner, name, method)

    def put_late(self, owner: object, name: str, put: Callable[[], None]) -> None:
        """Replace more, by `put`, if the hooks are in use and this one is not replaced already."""
        with LATCH:
            if self._wanted and not any(one[:2] == (owner, name) for one in self._before):
                put()

    def install(self) -> None:
        """Install the hooks, unless they are installed already: all of them, or none after a fault."""
        with LATCH:
            self._wanted += 1
            if self._wanted > 1:
                return
            try:
                self._put_all()
            except Exception as error:  # noqa: BLE001 - a fault of the checker
                self._restore()
                failed = error
            else:
                return
        note_fault_of_setup(failed)

    def uninstall(self) -> None:
        """Remove the hooks, if nothing else needs them."""
        with LATCH:
            self._wanted -= 1
            if self._wanted == 0:
                self._restore()

    def _restore(self) -> None:
        while self._before:
            owner, name, method, ours = self._before.pop()
            if vars(owner).get(name) is not ours:
                continue  # others, such as gevent, have replaced it meanwhile
            if method is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, method)
