"""Hooks: a fault in the checker's part of one does not reach the program."""

from __future__ import annotations

import concurrent.futures
import copy
import gc
import inspect
import io
import os
import pickle
import queue
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import BuiltinFunctionType, ModuleType
from typing import Final, TypeAlias, cast

import pytest
from support.lockcheck.lock_corpus import RECORD
from support.waiting import EXPIRING_SECONDS

from licorne.lockcheck import LockOrderError, adopt, session
from licorne.lockcheck.confirming import confirmation
from licorne.lockcheck.interception import found_late, joins, observed, queues
from licorne.lockcheck.interception.hooks import Hooks, guarded, like_original

pytestmark = pytest.mark.lockcheck(off=True)
"""Sessions are opened here."""

Halves: TypeAlias = "Callable[[int], int]"
Hook: TypeAlias = "Callable[[Halves, int], int]"

UNGUARDED: Final = {("ActorRef", "ask"), ("ThreadingActor", "_create_future"), ("queue", "SimpleQueue")}
"""It raises what the program is answered, and guards its own parts; and classes that guard their methods."""


def half(number: int) -> int:
    """Return half of an even number."""
    if number % 2:
        raise ValueError(number)
    return number // 2


HALF: Final[Halves] = half


def fails_before(original: Halves, number: int) -> int:
    """Fail before the original is called."""
    return original(number // 0)


def fails_after(original: Halves, number: int) -> int:
    """Fail after the original, whatever that did."""
    try:
        return original(number)
    finally:
        raise ZeroDivisionError


def refuses(original: Halves, number: int) -> int:
    """Fail as if the argument were wrong."""
    raise ValueError(number, original)


def goes_through(original: Halves, number: int) -> int:
    """Have no fault."""
    return original(number)


@pytest.mark.parametrize(
    ("hook", "faults"), [(goes_through, 0), (fails_before, 1), (fails_after, 1), (refuses, 1)]
)
def test_the_result_is_that_of_the_original(hook: Hook, faults: int) -> None:
    """The original is called once, before or after the fault."""
    calls: list[int] = []

    def counted(number: int) -> int:
        calls.append(number)
        return half(number)

    with session(on=RECORD) as opened:
        assert 3 == guarded(cast("Halves", counted), hook)(6)

    assert ([6], faults) == (calls, len(opened.faults))


@pytest.mark.parametrize(
    ("hook", "faults"), [(goes_through, 0), (fails_before, 1), (fails_after, 1), (refuses, 0)]
)
def test_the_error_is_that_of_the_original(hook: Hook, faults: int) -> None:
    """What both refuse is the program's mistake."""
    with session(on=RECORD) as opened, pytest.raises(ValueError, match="7") as caught:
        guarded(HALF, hook)(7)

    assert (faults, (7,)) == (len(opened.faults), caught.value.args)


def test_what_a_policy_raises_reaches_the_program() -> None:
    """It is what the program asked for, and the original is not called."""
    calls: list[int] = []

    def against_the_order(original: Callable[[int], None], number: int) -> None:
        raise LockOrderError(str(number), original)  # type: ignore[arg-type]

    with session(on=RECORD) as opened, pytest.raises(LockOrderError):
        guarded(calls.append, against_the_order)(1)

    assert ([], []) == (calls, opened.faults)


def test_hooks_inside_of_each_other_do_not_mix_up_what_their_originals_returned() -> None:
    """A fault in the outer one has the result of the inner one, not that of a function it called itself."""
    inner = guarded(HALF, goes_through)

    def calls_another(original: Halves, number: int) -> int:
        found = original(number)
        inner(100)
        raise ZeroDivisionError(found)

    with session(on=RECORD) as opened:
        assert 3 == guarded(inner, calls_another)(6)

    assert 1 == len(opened.faults)


def test_each_function_has_one_hook() -> None:
    """Else each would have a guard, and look for the caller."""
    replaced = [(owner, name) for owner, name, _ in observed.rows()]

    assert len(replaced) == len(set(replaced))


def test_every_replaced_function_is_guarded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new hook is put by `wrap`, or named above."""
    put: list[tuple[object, str, object]] = []
    original = Hooks.put

    def noted(hooks: Hooks, *one: object) -> None:
        put.append(one)  # type: ignore[arg-type] # owner, name, method
        original(hooks, *one)  # type: ignore[arg-type] # likewise

    monkeypatch.setattr(Hooks, "put", noted)
    for module in (found_late, joins, observed, confirmation):
        module.HOOKS._put_all()
        module.HOOKS._restore()
    code = guarded(HALF, goes_through).__code__
    unguarded = {
        (getattr(owner, "__name__", ""), name)
        for owner, name, method in put
        if getattr(method, "__code__", None) is not code
        and getattr(getattr(method, "__wrapped__", None), "__code__", None) is not code  # like a built-in one
    }

    assert (set(), True) == (unguarded - UNGUARDED, len(put) > len(UNGUARDED))


def test_a_wait_for_an_item_goes_on_after_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is lost, whichever part of the hook fails."""
    monkeypatch.setattr(queues, "next_segment", lambda *_: half(1))
    items: queue.Queue[int] = queue.Queue()
    with session(level="full", on=RECORD) as opened:
        putting = threading.Thread(target=lambda: items.put(1))
        putting.start()
        assert 1 == items.get()
        putting.join()

    assert {"ValueError: 1"} == set(opened.faults)


def no_item() -> object:
    """Return a queue that had no item."""
    items: queue.Queue[int] = queue.Queue()
    with pytest.raises(queue.Empty):
        items.get(block=False)
    return items


def no_room() -> object:
    """Return a queue that had no room."""
    items: queue.Queue[int] = queue.Queue(1)
    items.put(1)
    with pytest.raises(queue.Full):
        items.put(2, timeout=EXPIRING_SECONDS)
    return items


def no_result() -> object:
    """Return a future that has an error."""
    future: Future[int] = Future()
    future.set_exception(KeyError())
    with pytest.raises(KeyError):
        future.result()
    return future


def not_started() -> object:
    """Return a thread that could not be joined."""
    thread = threading.Thread()
    with pytest.raises(RuntimeError):
        thread.join()
    return thread


@pytest.mark.parametrize("refused", [no_item, no_room, no_result, not_started], ids=lambda one: one.__name__)
def test_an_error_that_passes_a_hook_keeps_nothing_alive(refused: Callable[[], object]) -> None:
    """What its traceback has ends with it, as without a session; no garbage collection is needed."""
    gc.collect()
    gc.disable()
    try:
        before = weakref.ref(refused())
        with session(level="full", on=RECORD):
            within = weakref.ref(refused())
    finally:
        gc.enable()

    assert (before() is None) == (within() is None)


REPLACED: Final = (
    (threading.Thread, "join"),
    (threading.Event, "set"),
    (threading.Barrier, "wait"),
    (queue.Queue, "put"),
    (Future, "result"),
    (ThreadPoolExecutor, "submit"),
    (concurrent.futures, "wait"),
    (concurrent.futures, "as_completed"),
)


@pytest.mark.parametrize(
    ("owner", "name"), REPLACED, ids=[f"{owner.__name__}.{name}" for owner, name in REPLACED]
)
def test_a_function_is_replaced_in_a_session_and_is_the_original_one_afterwards(
    owner: object, name: str
) -> None:
    """The hooks leave nothing behind."""
    original = getattr(owner, name)
    with session(on=RECORD):
        assert original is not getattr(owner, name)

    assert original is getattr(owner, name)


BUILT_IN: Final = ((time, "sleep"), (io, "open"), (os, "open"), (os, "system"), (threading, "Lock"))


@pytest.mark.parametrize(("module", "name"), BUILT_IN, ids=lambda value: getattr(value, "__name__", value))
def test_what_takes_the_place_of_a_built_in_function_is_no_method(module: ModuleType, name: str) -> None:
    """A class may have it as an attribute, as werkzeug has `lock_class = Lock`: no instance is passed."""
    original = getattr(module, name)
    with adopt("all"), session(on=RECORD):
        replacing = getattr(module, name)
        holder = type("Holder", (), {"function": replacing})
        assert replacing is not original
        assert holder().function is replacing
        if isinstance(original, BuiltinFunctionType):  # a lock is a class since Python 3.13
            assert isinstance(replacing, BuiltinFunctionType)
            assert (repr(replacing), copy.deepcopy(replacing)) == (repr(original), replacing)
            assert pickle.loads(pickle.dumps(replacing)) is replacing  # noqa: S301 - our own
            assert inspect.isroutine(replacing)


def test_a_function_of_python_stays_one() -> None:
    """A class that has it as an attribute passes the instance, as it would without."""
    assert like_original(half, HALF) is HALF
