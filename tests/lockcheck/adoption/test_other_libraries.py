"""Libraries that look at locks, or replace threads, work under lockcheck as without it.

gevent, eventlet and dill themselves are used where they are installed; what they look for is tested anyway.
"""

from __future__ import annotations

import _thread
import importlib.util
import io
import pickle
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import ClassVar, Final

import pytest
from support.lockcheck.lock_corpus import RECORD
from support.programs import run_lockcheck, written

from licorne.lockcheck import Lock, adopt, session
from licorne.lockcheck.reports.documents import from_json, to_json
from licorne.lockcheck.sessions.session import text_report

pytestmark = pytest.mark.lockcheck(off=True)
"""Sessions are opened here."""

_POOLS: Final = """
import queue, threading
from concurrent.futures import ThreadPoolExecutor, as_completed
lock, items, done = threading.RLock(), queue.Queue(2), threading.Event()
def work(number):
    with lock:
        items.put(number)
    return number
with ThreadPoolExecutor(3) as pool:
    futures = [pool.submit(work, number) for number in range(6)]
    print(sorted(items.get() for _ in futures), sum(one.result() for one in as_completed(futures)))
threads = [threading.Thread(target=done.wait) for _ in range(3)]
for thread in threads:
    thread.start()
done.set()
for thread in threads:
    thread.join()
"""
GEVENT: Final = "import logging\nfrom gevent import monkey\nmonkey.patch_all()\n" + _POOLS
EVENTLET: Final = "import logging, warnings\nwarnings.simplefilter('ignore')\n" + (
    "import eventlet\neventlet.monkey_patch()\n" + _POOLS
)
DILL: Final = """
import dill, threading
held = threading.Lock()
held.acquire()
lock, free = dill.loads(dill.dumps((held, threading.Lock())))
print(lock.locked(), free.locked(), type(lock).__name__)
"""


@pytest.mark.parametrize("adopted", ["program", "all"])
@pytest.mark.parametrize(
    ("library", "program", "printed"),
    [
        ("gevent", GEVENT, "[0, 1, 2, 3, 4, 5] 15\n"),
        ("eventlet", EVENTLET, "[0, 1, 2, 3, 4, 5] 15\n"),
        ("dill", DILL, "True False lock\n"),
    ],
    ids=["gevent", "eventlet", "dill"],
)
def test_a_program_with_the_library_does_the_same(
    tmp_path: Path, library: str, program: str, printed: str, adopted: str
) -> None:
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    ran = run_lockcheck(tmp_path, "run", f"--adopt={adopted}", written(tmp_path, program))

    assert (0, printed) == (ran.returncode, ran.stdout), ran.stderr
    assert not {"Traceback", "greened", "fault"} & set(ran.stderr.split())
    assert (library != "dill") == ("Not checked: greenlets" in ran.stderr)


def test_checks_end_where_threads_are_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Greenlets share the thread on which they run, so what one of them holds would count for all."""
    with session(on=RECORD) as opened:
        first, second = Lock("first"), Lock("second")
        with first, second:
            pass
        monkeypatch.setattr(_thread, "start_new_thread", partial(_thread.start_new_thread))
        with second, first:
            pass

    summary = opened.summary()
    assert ((), (), True) == (summary.findings, summary.faults, summary.greenlets)
    assert "Not checked: greenlets" in text_report(from_json(to_json(summary), "report"))


def test_a_factory_that_others_have_put_in_place_meanwhile_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = threading.Lock
    with adopt("program"):
        monkeypatch.setattr(threading, "Lock", _thread.allocate_lock)
    try:
        assert threading.Lock is _thread.allocate_lock
    finally:
        monkeypatch.setattr(threading, "Lock", plain)


class _Pickler(pickle._Pickler):
    """A pickler that has a way for plain locks, as that of dill does."""

    dispatch: ClassVar = dict(pickle._Pickler.dispatch)

    def save_lock(self, lock: threading.Lock) -> None:
        """Save a new lock in its place."""
        save: Callable[..., None] = self.save_reduce  # type: ignore[attr-defined] # it is not in the stubs
        save(threading.Lock, (), obj=lock)

    dispatch[type(threading.Lock())] = save_lock  # type: ignore[assignment] # it takes any object


def test_a_pickler_that_knows_plain_locks_saves_a_checked_one() -> None:
    saved = io.BytesIO()
    with adopt("program"), session(on=RECORD):
        lock = threading.Lock()
        _Pickler(saved).dump(lock)
        with pytest.raises(TypeError, match=r"cannot pickle '_thread\.lock' object"):
            pickle.dumps(lock)

    assert type(pickle.loads(saved.getvalue())) is type(threading.Lock())  # noqa: S301 - made above
