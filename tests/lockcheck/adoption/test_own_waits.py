"""A thread that waits for a plain lock that it holds: said before, and broken if nothing else can end it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from support.programs import run_lockcheck, written

BY_WITH: Final = """
import threading
lock = threading.Lock()
def inner():
    with lock:
        pass
def work():
    with lock:
        inner()
idle = threading.Event()
threading.Thread(target=idle.wait, daemon=True).start()  # one that could release it, for all that is known
thread = threading.Thread(target=work)
thread.start()
thread.join()
print("over")
"""
BY_HAND: Final = """
import threading
lock = threading.Lock()
def work():
    lock.acquire()
    lock.acquire()
thread = threading.Thread(target=work)
thread.start()
"""
BY_HAND_WHILE_ANOTHER_WAITS: Final = """
import threading
lock, other = threading.Lock(), threading.Lock()
def work():
    with other:
        lock.acquire()
        started.wait()
        lock.acquire()
def wants():
    started.set()
    with other:
        pass
started = threading.Event()
threads = [threading.Thread(target=each) for each in (work, wants)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("over")
"""
SIGNAL: Final = """
import threading, time
from licorne.lockcheck import standing
lock, said = threading.Lock(), "waits for"
def give():
    while said not in standing():
        time.sleep(0.001)
    lock.release()
lock.acquire()
threading.Thread(target=give).start()
lock.acquire()
print("over")
"""


@pytest.mark.parametrize(
    "program", [BY_WITH, BY_HAND, BY_HAND_WHILE_ANOTHER_WAITS], ids=["with", "end", "stuck"]
)
def test_a_wait_that_only_its_own_thread_could_end_is_broken(tmp_path: Path, program: str) -> None:
    """Also while another thread is there: it does not release what `with` took, or it waits itself."""
    done = run_lockcheck(tmp_path, "run", written(tmp_path, program))

    assert "R5 deadlock" in done.stderr
    assert ("over" in done.stdout) == ("over" in program)
    assert 1 == done.returncode


def test_a_wait_for_a_lock_of_its_own_is_said_before_it_begins(tmp_path: Path) -> None:
    """It may be a signal, which another thread gives: then it ends, and nothing is wrong."""
    done = run_lockcheck(tmp_path, "run", written(tmp_path, SIGNAL))

    assert "MainThread waits for lock #" in done.stderr
    assert "which it holds itself" in done.stderr
    assert (0, "over\n") == (done.returncode, done.stdout)
