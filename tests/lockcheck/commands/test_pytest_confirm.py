"""`pytest --lockcheck=confirm`: tests are run again, steered into what they found."""

from __future__ import annotations

from pathlib import Path

from support.lockcheck.pytest_runs import run_module
from support.lockcheck.recorded_programs import ONE_BY_ONE
from support.programs import written

from licorne.lockcheck import Rung
from licorne.lockcheck.findings.json_files import read_witness
from licorne.lockcheck.reports.documents import read_document

MODULE = """
import pytest
from licorne.lockcheck import Lock, unit

FIRST, SECOND = Lock("first"), Lock("second")
made = []

@pytest.fixture
def locks():
    made.append(Lock("third"))
    yield made[-1], Lock("fourth")
    made.pop()

def crossed(a, b, *gates, after=lambda: None):
    def nest(*path):
        with path[0]:
            path[1:] and nest(*path[1:])
    turns = one_by_one()
    works = [lambda: nest(turns, *gates, a, b), lambda: nest(turns, *gates, b, a)]
    threads = [threading.Thread(target=work, name=name) for work, name in zip(works, ("one", "two"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    after()

def test_locks_of_a_fixture(locks):
    assert len(made) == 1
    crossed(*locks)

def test_locks_of_the_module():
    crossed(FIRST, SECOND)

def test_the_same_again():
    crossed(FIRST, SECOND)

def test_under_a_gate():
    crossed(Lock("fifth"), Lock("sixth"), Lock("gate"))

def test_in_one_thread():
    a, b = Lock("seventh"), Lock("eighth")
    with unit("one"), a, b:
        pass
    with unit("two"), b, a:
        pass

def test_that_hangs_when_a_thread_gave_way():
    passed = []
    class Counted:
        def __init__(self, lock): self.lock = lock
        def __enter__(self): self.lock.acquire()
        def __exit__(self, *error):
            self.lock.release()
            if error[0] is None: passed.append(1)
    def wait_for_all():
        if len(passed) < 4:
            threading.Event().wait()
    crossed(Counted(Lock("ninth")), Counted(Lock("tenth")), after=wait_for_all)
"""
CONFTEST = "from licorne.lockcheck.commands import pytest_confirm; pytest_confirm.GRACE_SECONDS = 1.0"


def run(folder: Path, *options: str, **environment: str) -> str:
    """Run the module above; return what pytest says."""
    written(folder, CONFTEST, "conftest.py")
    _, said = run_module(folder, ONE_BY_ONE + MODULE, *options, **environment)
    return said


def test_what_a_test_found_is_confirmed_or_has_the_reason_why_not(tmp_path: Path) -> None:
    """A test that finds the same again is not run again; one that nothing comes of keeps its rung."""
    said = run(tmp_path, "-p", "no:xdist", "--lockcheck=confirm", "--lockcheck-json=out.json")
    findings = read_document(str(tmp_path / "out.json")).findings
    confirmed = [finding for finding in findings if finding.rung is Rung.R4]
    (unconfirmed,) = [finding for finding in findings if finding.rung is Rung.R3]

    assert "6 passed, 5 errors" in said
    assert "found 1 at R1, 1 at R3, 3 at R4" in said
    assert 3 == len(confirmed)
    for finding in confirmed:
        path = tmp_path / "lockcheck-witnesses" / f"{finding.fingerprint}.json"
        assert (str(path), Rung.R4) == (finding.replay, read_witness(path).rung)
        assert f"replay file: {path}" in said
    assert "there was no other thread" in "".join(unconfirmed.why)
    assert {"test_locks.py::test_in_one_thread"} == {unconfirmed.test}


def test_without_the_option_the_environment_says_the_level(tmp_path: Path) -> None:
    """Where it names one that tests can be run at."""
    options = ("-p", "no:xdist", "-k", "fixture or module", "--lockcheck-json=out.json")
    said = run(tmp_path, *options, LOCKCHECK="confirm")
    findings = read_document(str(tmp_path / "out.json")).findings

    assert [Rung.R4] * 2 == [finding.rung for finding in findings]
    assert "level confirm: " in said


OVER_A_RESULT = """
import _thread
from concurrent.futures import ThreadPoolExecutor
from licorne.lockcheck import Lock

def test_result():
    lock, over = Lock("lock"), _thread.allocate_lock()
    over.acquire()

    def work():
        with lock:
            pass
        over.release()

    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(work)
        for _ in range(30):  # Where the task is steered, it waits for what follows.
            if over.acquire(timeout=0.01):
                break
        with lock:
            future.result()
"""


def test_what_the_events_of_a_test_predict_is_tried_too(tmp_path: Path) -> None:
    """No lock is taken while another one is held, so the learned graph has nothing."""
    code, said = run_module(tmp_path, OVER_A_RESULT, "--lockcheck=confirm")

    assert 1 == code
    assert "-> the result of test_result.<locals>.work" in said
    assert "found 1 at R4" in said


NO_ROOM = """
from licorne.lockcheck.commands import pytest_confirm

def no_room(*given, **named):
    raise OSError("no room")

pytest_confirm.events_written = no_room
"""


def test_a_test_that_cannot_be_recorded_is_checked_all_the_same(tmp_path: Path) -> None:
    """It warns that nothing is predicted; the graph has the cycle all the same."""
    (tmp_path / "conftest.py").write_text(NO_ROOM, encoding="utf-8")
    code, said = run_module(tmp_path, OVER_A_RESULT, "--lockcheck=confirm")

    assert 1 == code
    assert "found 1 at R4" in said
    assert "lockcheck predicts nothing of this test: no room" in said


BY_A_CONDITION = """
import threading

def test_phases():
    a, b, ready = threading.Lock(), threading.Lock(), threading.Condition()
    waits, done = threading.Event(), []

    def second():
        with ready:
            waits.set()
            ready.wait_for(lambda: done)
        with b, a:
            pass

    thread = threading.Thread(target=second)
    thread.start()
    waits.wait()
    with a, b:
        pass
    with ready:
        done.append(1)
        ready.notify()
    thread.join()
"""


def test_what_the_events_of_a_test_contradict_does_not_fail_it(tmp_path: Path) -> None:
    """The learned graph does not know what a notification orders; no re-run comes there."""
    code, said = run_module(tmp_path, BY_A_CONDITION, "--lockcheck=confirm")

    assert 0 == code
    assert "found 1 at R1" in said
