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


@pytest.mark.parametrize("level", ["order", "full", "record"])
def test_a_program_may_drop_each_result_as_soon_as_it_comes(tmp_path: Path, level: str) -> None:
    """Whatever hooks into `as_completed` keeps none of them."""
    command = ["record"] if level == "record" else ["run", f"--level={level}"]
    ran = run_lockcheck(tmp_path, *command, written(tmp_path, DROPS_ITS_RESULTS))

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
def test_a_key_that_takes_a_lock_to_be_shown_may_be_recorded_while_that_is_held(
    tmp_path: Path, adopted: str
) -> None:
    """The recorder waited for ever for the lock of its own thread; the key of that lock is not shown."""
    ran = run_lockcheck(tmp_path, "record", f"--adopt={adopted}", written(tmp_path, SHOWS_ITS_KEYS))

    assert "over" in ran.stdout
    assert "switched off" not in ran.stderr
