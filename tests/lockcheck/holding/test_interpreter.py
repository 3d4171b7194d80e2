"""A program may replace functions of the interpreter that the checker uses: clocks, and who a thread is."""

from __future__ import annotations

import _thread
import importlib
import threading
import time
from pathlib import Path

import pytest
from support.programs import run_lockcheck, written
from support.waiting import EXPIRING_SECONDS, WAIT_SECONDS

from licorne.lockcheck import Lock, adopt, session
from licorne.lockcheck.holding.runtime import Interpreter, this_thread

pytestmark = pytest.mark.lockcheck(off=True)
"""Sessions are opened here."""

HEARD_ENDS = """
import _thread, threading
lock = threading.Lock()
original, heard, ended = threading.get_ident, threading.Event(), _thread.allocate_lock()
def get_ident():
    number = original()
    heard.set()
    return number
threading.get_ident = get_ident
def work():
    threading.current_thread()
    with lock:
        pass
    ended.release()
for _ in range(3):
    ended.acquire()
    _thread.start_new_thread(work, ())
    with ended:
        pass
    thread = threading.Thread(target=lock.acquire)
    thread.start()
    thread.join()
    lock.release()
print("over")
"""
"""What pebble does to hear that a thread has ended: `threading` asks for the number of a thread then."""


@pytest.mark.parametrize("command", ["run --level=order", "run --level=full"])
def test_a_program_that_hears_who_asks_for_the_number_of_a_thread(tmp_path: Path, command: str) -> None:
    """The checker does not ask by the function that the program has replaced: that would ask again."""
    ran = run_lockcheck(tmp_path, *command.split(), written(tmp_path, HEARD_ENDS))
    assert ran.stdout.startswith("over\n")
    assert ran.returncode == 0
    assert "fault" not in ran.stderr


def test_a_wait_with_a_limit_ends_where_the_clock_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether it stands for all that look at `time` by name, or for everything."""
    with session(), adopt():
        lock, own = threading.Lock(), Lock("own")
        for clock in (time, Interpreter):
            monkeypatch.setattr(clock, "monotonic" if clock is time else "seconds", lambda: 7.0)
            with lock, own:
                for held in (lock, own):
                    took: list[bool] = []
                    thread = threading.Thread(
                        target=lambda want=held.acquire, took=took: took.append(
                            want(timeout=EXPIRING_SECONDS)
                        )
                    )
                    thread.start()
                    thread.join(WAIT_SECONDS)
                    assert took == [False]


def test_functions_are_those_of_the_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tools that stop the clock replace what a module has by name, if it is the function that they know."""
    module = importlib.import_module(Interpreter.__module__)
    assert not {id(time.monotonic), id(_thread.get_ident)} & set(map(id, vars(module).values()))
    monkeypatch.setattr(threading, "get_ident", lambda: 1 / 0)
    assert this_thread() is threading.main_thread()
