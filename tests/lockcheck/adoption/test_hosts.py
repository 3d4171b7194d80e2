"""Programs that forked, never shut a pool down, or dropped a held lock, run under lockcheck as without it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from support.programs import run_lockcheck, written

FORK_WHILE_ANOTHER_THREAD_HAS_THE_LOGGERS: Final = """
import logging, os, threading
from licorne.lockcheck import Lock
guard = Lock("guard")
inside, forks = threading.Event(), threading.Event()
os.register_at_fork(before=forks.set)
class Audited(logging.Logger):  # which is made while the lock of the loggers is held
    def __init__(self, name):
        super().__init__(name)
        inside.set()
        forks.wait()
        with guard:
            pass
logging.setLoggerClass(Audited)
thread = threading.Thread(target=logging.getLogger, args=("x",))
thread.start()
inside.wait()
child = os.fork()
if child == 0:
    os._exit(0)
os.waitpid(child, 0)
thread.join()
print("over")
"""
FORK_WITH_A_HANDLER: Final = """
import logging, os
from licorne.lockcheck import RLock
class Handler(logging.StreamHandler):
    def createLock(self):
        super().createLock()
        self.lock = RLock("handler")
logging.getLogger().addHandler(Handler(__import__("io").StringIO()))
child = os.fork()
if child == 0:
    logging.warning("in the child")
    os._exit(0)
print("over", os.waitpid(child, 0)[1])
"""
POOL_THAT_STAYS: Final = """
import atexit
from concurrent.futures import ThreadPoolExecutor
pool = ThreadPoolExecutor(1)
atexit.register(lambda: pool)
print(pool.submit(int).result())
"""
DROPPED_WHILE_HELD: Final = """
import threading, time
def once():
    done = threading.Lock()
    done.acquire()
once()
time.sleep(0)
print("over")
"""


@pytest.mark.parametrize(
    ("program", "printed"),
    [
        (FORK_WHILE_ANOTHER_THREAD_HAS_THE_LOGGERS, "over\n"),
        (FORK_WITH_A_HANDLER, "over 0\n"),
        (POOL_THAT_STAYS, "0\n"),
        (DROPPED_WHILE_HELD, "over\n"),
    ],
    ids=["fork", "handler", "pool", "dropped"],
)
def test_a_program_ends_and_says_what_it_says_without_lockcheck(
    tmp_path: Path, program: str, printed: str
) -> None:
    """Each was stopped, or accused, before."""
    ran = run_lockcheck(tmp_path, "run", written(tmp_path, program))

    assert (0, printed) == (ran.returncode, ran.stdout)
    assert "Traceback" not in ran.stderr


ENDS_IN_REVERSE: Final = """
import atexit, threading, time
first, second, taken = threading.Lock(), threading.Lock(), []
def down():
    with first, second: pass
    taken.append(1)
def up(word):
    with second, first: print(word)
def gone(): print("never")
def failed(): raise KeyError("at the end")
threading.Thread(target=down, daemon=True).start()
while not taken: time.sleep(0.01)
atexit.register(print, "last")
for word in "b", "a":
    atexit.register(up, word)
atexit.register(gone)
atexit.register(failed)
atexit.unregister(gone)
print("over")
"""
STUCK_AT_THE_END: Final = """
import atexit, threading
first, second, inside = threading.Lock(), threading.Lock(), threading.Barrier(2)
def down():
    with first:
        inside.wait()
        with second: pass
@atexit.register
def up():
    threading.Thread(target=down, daemon=True).start()
    with second:
        inside.wait()
        with first: pass
print("over")
"""


def test_functions_of_atexit_are_part_of_the_program(tmp_path: Path) -> None:
    """They are called once, in the order of the interpreter, and what they take is checked."""
    ran = run_lockcheck(tmp_path, "run", written(tmp_path, ENDS_IN_REVERSE))

    assert ["over", "a", "b", "last"] == ran.stdout.splitlines()
    assert "KeyError: 'at the end'" in ran.stderr
    assert "Possible deadlock, not seen yet" in ran.stderr
    assert 1 == ran.returncode


def test_a_deadlock_in_a_function_of_atexit_is_broken(tmp_path: Path) -> None:
    ran = run_lockcheck(tmp_path, "run", written(tmp_path, STUCK_AT_THE_END))

    assert "over\n" == ran.stdout
    assert "Deadlock, which happened" in ran.stderr


FINALIZED_BY_A_SCRIPT: Final = """
import threading
class Pool:
    def __init__(self): self.lock = threading.Lock()
    def give_back(self):
        with self.lock: pass
class Lease:
    def __init__(self, pool): self.pool = pool; pool.give_back()
    def __del__(self): self.pool.give_back()
pool = Pool()
lease = Lease(pool)
del lease
"""


@pytest.mark.parametrize("end", ["", "raise SystemExit(0)"], ids=["end", "exit"])
def test_a_lock_of_a_script_outlives_what_is_finalized(tmp_path: Path, end: str) -> None:
    """No function keeps the names of the script, which are gone when its code is over."""
    ran = run_lockcheck(tmp_path, "run", written(tmp_path, FINALIZED_BY_A_SCRIPT + end))

    assert "Pool.lock #" in ran.stderr
    assert "is taken in a finalizer" in ran.stderr


DROPS_ITS_RESULTS: Final = """
import gc, weakref
from concurrent.futures import Future, as_completed
gc.disable()
results = [Future() for _ in range(3)]
for one in results:
    one.set_result(1)
for one in as_completed(results):
    results.remove(one)
    dropped = weakref.ref(one)
    del one
    print(dropped() is None)
"""


@pytest.mark.parametrize("level", ["order", "full"])
def test_a_program_may_drop_each_result_as_soon_as_it_comes(tmp_path: Path, level: str) -> None:
    """Whatever hooks into `as_completed` keeps none of them."""
    ran = run_lockcheck(tmp_path, "run", f"--level={level}", written(tmp_path, DROPS_ITS_RESULTS))

    assert ["True"] * 3 == ran.stdout.splitlines()[:3]


SHOWS_ITS_KEYS: Final = """
import threading
from licorne.lockcheck import Lock
guard = threading.Lock()
class Guarded:
    def __str__(self):
        with guard:
            return "guarded"
class Refused:
    def __str__(self):
        raise ValueError
one, two = Lock("job", key=Guarded()), Lock("job", key=Refused())
with guard:
    with one, two:
        pass
print("over")
"""


@pytest.mark.parametrize("adopted", ["program", "all"])
def test_a_key_that_takes_a_lock_to_be_shown_may_be_checked_while_that_is_held(
    tmp_path: Path, adopted: str
) -> None:
    """The key of a lock that is held cannot be shown."""
    ran = run_lockcheck(tmp_path, "run", f"--adopt={adopted}", written(tmp_path, SHOWS_ITS_KEYS))

    assert "over" in ran.stdout
    assert "switched off" not in ran.stderr
