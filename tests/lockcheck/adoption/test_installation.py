"""Locks that a program makes by `threading` are checked, and the program is not changed."""

from __future__ import annotations

import ast
import json
import queue
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.lockcheck.pytest_runs import run_module
from support.programs import run_lockcheck, written
from support.waiting import EXPIRING_SECONDS, wait_until

from licorne.lockcheck import Kind, LockUsageError, Rung, adopt, session, unit
from licorne.lockcheck.adoption import naming
from licorne.lockcheck.adoption.adopted import is_adopted
from licorne.lockcheck.checking.watch import Watch
from licorne.lockcheck.commands.command import main
from licorne.lockcheck.findings.terms import CLEAN, FOUND, USAGE

pytestmark = pytest.mark.lockcheck(off=True)
"""Sessions are opened here."""

BOTH_WAYS = """
import threading

class Account:
    def __init__(self):
        self.lock = threading.Lock()

mine, yours = Account(), Account()

def give(one, other, taken, goes_on):
    with one.lock:
        taken.set()
        goes_on.wait()
        with other.lock:
            pass

first, second = threading.Event(), threading.Event()
threads = [
    threading.Thread(target=give, args=(mine, yours, first, second)),
    threading.Thread(target=give, args=(yours, mine, second, first)),
]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""
"""Each thread takes what is free, and then what the other one may hold."""
NO_LOCKS = "print(1 + 1)\n"

MAKERS: dict[str, Callable[[], object]] = {
    "Lock": lambda: threading.Lock(),  # noqa: PLW0108 - it is looked up when it is called
    "RLock": lambda: threading.RLock(),  # noqa: PLW0108 - likewise
    "Condition": lambda: threading.Condition()._lock,  # type: ignore[attr-defined]
    "Queue": lambda: queue.Queue[int]().mutex,
    "PriorityQueue": lambda: queue.PriorityQueue[int]().mutex,
}


@pytest.fixture
def adopting() -> Iterator[None]:
    """Adopt what the test makes, in a session."""
    with session(on=dict.fromkeys(Rung, "record")), adopt():
        yield


def shop(folder: Path, text: str) -> str:
    """Write a program; return its path."""
    return written(folder, text, "shop.py")


def run_alone(*words: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own, in the folder of its program."""
    return run_lockcheck(Path(words[-1]).parent, "run", *words)


def test_an_unchanged_program_that_takes_two_locks_both_ways_is_found_at_r2(tmp_path: Path) -> None:
    """Its locks are named as the attribute that has them; nothing in it mentions lockcheck."""
    program = (
        "import threading\na, b = threading.Lock(), threading.Lock()\n"
        "done = []\ndef one():\n    with a, b: pass\ndef two():\n    with b, a: pass\n    done.append(1)\n"
        "late = threading.Thread(target=two)\nlate.start()\n"
        "import time\nwhile not done: time.sleep(0.01)\none()\nlate.join()\n"
    )
    ran = run_alone(shop(tmp_path, program))

    assert (FOUND, "") == (ran.returncode, ran.stdout)
    assert "R2 cycle" in ran.stderr
    assert "wanted b #" in ran.stderr


def test_a_real_deadlock_of_an_unchanged_program_is_broken(tmp_path: Path) -> None:
    """One thread raises, so the program ends; plainly it would hang."""
    ran = run_alone(shop(tmp_path, BOTH_WAYS))

    assert FOUND == ran.returncode
    assert "R5 deadlock" in ran.stderr
    assert "Account.lock #" in ran.stderr


def test_a_program_without_locks_is_not_acquitted(tmp_path: Path) -> None:
    """The verdict says that nothing was looked at."""
    ran = run_alone(shop(tmp_path, NO_LOCKS))

    assert (CLEAN, "2\n") == (ran.returncode, ran.stdout)
    assert "lockcheck, level full: no lock was seen." in ran.stderr
    assert "found nothing" not in ran.stderr


INVERSION = """
import logging, threading
class Emits(logging.Handler):
    def emit(self, record):
        logging.getLogger("of " + record.getMessage())
handler, log = Emits(), logging.getLogger("shop")
log.addHandler(handler)
def reports():
    log.warning("it")
thread = threading.Thread(target=reports)
thread.start()
logging._acquireLock() if hasattr(logging, "_acquireLock") else logging._lock.acquire()
handler.acquire()
handler.release()
logging._releaseLock() if hasattr(logging, "_releaseLock") else logging._lock.release()
"""


def test_locks_of_the_standard_library_that_a_program_meets_are_checked(tmp_path: Path) -> None:
    """That of `logging` was there before the program began."""
    ran = run_alone(shop(tmp_path, INVERSION))

    assert "logging._lock #" in ran.stderr
    assert "Handler.lock #" in ran.stderr
    assert FOUND == ran.returncode
    assert "Not watched" not in ran.stderr


def test_with_none_nothing_is_adopted(tmp_path: Path) -> None:
    """Then only locks that the program made by this package are checked."""
    ran = run_alone("--adopt=none", shop(tmp_path, "import threading\nwith threading.Lock(): pass\n"))

    assert CLEAN == ran.returncode
    assert "no lock was seen" in ran.stderr


def test_a_scope_that_names_nothing_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The message has the value, and where it came from."""
    assert USAGE == main(["run", "--adopt=shop,,till", shop(tmp_path, NO_LOCKS)])
    assert "--adopt: 'shop,,till' does not say whose locks are adopted" in capsys.readouterr().err
    with pytest.raises(LockUsageError, match="adopt: ''"):
        adopt("")


def test_a_module_is_run_as_by_python(tmp_path: Path) -> None:
    """`run -m` finds modules beside the working directory, and gives them their arguments."""
    shop(tmp_path, "import sys, threading\nwith threading.Lock():\n    print(sys.argv[1:])\n")
    ran = run_lockcheck(tmp_path, "run", "-m", "shop", "--level")

    assert (CLEAN, "['--level']\n") == (ran.returncode, ran.stdout)
    assert "found nothing" in ran.stderr


@pytest.mark.usefixtures("adopting")
@pytest.mark.parametrize("kind", MAKERS)
def test_what_the_program_makes_is_adopted(kind: str) -> None:
    """The classes of `threading` and `queue` stay: the locks inside of them are adopted."""
    assert is_adopted(MAKERS[kind]())


@pytest.mark.usefixtures("adopting")
def test_what_the_standard_library_makes_for_itself_is_not_adopted() -> None:
    """Neither are locks of this package, nor those in threads and futures; those of logs and pools are."""
    from concurrent.futures import Future, ThreadPoolExecutor
    from logging import Handler
    from sched import scheduler

    assert not is_adopted(scheduler()._lock)  # type: ignore[attr-defined]
    assert is_adopted(Handler().lock)
    assert is_adopted(ThreadPoolExecutor()._shutdown_lock)
    assert not is_adopted(Future()._condition._lock)  # type: ignore[attr-defined]
    assert not is_adopted(threading.Thread()._started._cond._lock)  # type: ignore[attr-defined]


def test_with_all_the_standard_library_takes_part() -> None:
    """A scheduler of events makes a lock for itself."""
    from sched import scheduler

    with session(), adopt("all"):
        assert is_adopted(scheduler()._lock)  # type: ignore[attr-defined]
        assert not is_adopted(threading.Thread()._started._cond._lock)  # type: ignore[attr-defined]


def test_patterns_choose_modules() -> None:
    """They are compared with the name of the module that makes the lock."""
    with session(), adopt("elsewhere, *test_installation"):
        assert is_adopted(threading.Lock())
        with adopt("elsewhere"):
            assert not is_adopted(threading.Lock())


def test_without_a_session_locks_are_plain_and_afterwards_the_factories_are_as_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing is left behind, also not in modules that have imported the factory by name."""
    monkeypatch.setitem(globals(), "Imported", threading.Lock)
    before = threading.Lock, threading.RLock
    with adopt():
        assert not is_adopted(threading.Lock())
        with session():
            assert is_adopted(globals()["Imported"]())

    assert before == (threading.Lock, threading.RLock)
    assert globals()["Imported"] is threading.Lock


def make() -> object:
    """Return a lock; the caller names it."""
    return threading.RLock()


class Shop:
    """Has locks in several places."""

    door: object

    def __init__(self) -> None:
        self.door = make()
        self.tills = [threading.Lock() for _ in range(2)]
        self.jobs = queue.Queue[int]()


@pytest.mark.usefixtures("adopting")
def test_a_lock_has_the_name_of_what_it_is_assigned_to() -> None:
    """A helper that makes locks is no name for all of them."""
    shop, local = Shop(), threading.Lock()
    names = [getattr(lock, "identity").name for lock in (shop.door, shop.tills[1], shop.jobs.mutex, local)]  # noqa: B009

    function = "test_a_lock_has_the_name_of_what_it_is_assigned_to"
    assert ["Shop.door", "Shop.tills[]", "Shop.jobs", f"{function}.local"] == names


def test_under_pytest_the_locks_of_the_program_are_adopted(tmp_path: Path) -> None:
    """With `none` they are not, and the summary says that no lock was seen."""
    module = (
        "import threading\nfrom licorne.lockcheck import unit\na, b = threading.Lock(), threading.Lock()\n"
        "def test_both_ways():\n    with unit('one'), a, b: pass\n    with unit('two'), b, a: pass\n"
    )
    _, found = run_module(tmp_path, module, "--lockcheck=full")
    _, nothing = run_module(tmp_path, module, "--lockcheck=full", "--lockcheck-adopt=none")

    assert "found 1 at R2" in found
    assert "no lock was seen" in nothing


@pytest.mark.usefixtures("adopting")
def test_a_lock_that_another_thread_releases_is_a_signal() -> None:
    """It may be taken by the thread that waits for the signal, and blocks nothing."""
    with session(on=dict.fromkeys(Rung, "record")) as checked:
        done = threading.Lock()
        done.acquire()
        helper = threading.Thread(target=done.release)
        helper.start()
        done.acquire()
        wait_until(lambda: not helper.is_alive())  # To join it may be a finding: a wait under the lock.
        done.release()
        with unit("one"), threading.Lock():
            pass

    assert () == checked.findings


@pytest.mark.usefixtures("adopting")
def test_who_waits_for_a_signal_within_a_limit_may_take_it_more_than_once() -> None:
    """As the workers of trio do: the function that waits never releases the lock."""
    with session(on=dict.fromkeys(Rung, "record")) as checked:
        job, own = threading.Lock(), threading.Lock()

        def work() -> None:
            while job.acquire(timeout=EXPIRING_SECONDS):
                pass

        def mistaken() -> None:
            own.acquire()
            own.acquire(timeout=EXPIRING_SECONDS)
            own.release()

        for target in (work, mistaken):
            worker = threading.Thread(target=target)
            worker.start()
            worker.join()

    assert [Kind.RECURSION] == [finding.kind for finding in checked.findings]
    assert ".own " in checked.findings[0].text


@pytest.mark.usefixtures("adopting")
@pytest.mark.parametrize("ends_first", [True, False])
def test_a_lock_that_another_thread_releases_may_outlive_the_one_that_took_it(*, ends_first: bool) -> None:
    """That its thread ended while it held the lock is taken back, also where it is raised at the end."""
    with session() as checked:
        taken, may_end = threading.Lock(), threading.Event()

        def work() -> None:
            taken.acquire()
            may_end.wait()

        helper = threading.Thread(target=work)
        helper.start()
        while not taken.locked():
            pass
        if not ends_first:
            taken.release()
        may_end.set()
        helper.join()
        if ends_first:
            taken.release()

    assert [] == [finding for finding in checked.findings if finding.kind is Kind.LEAK]


@pytest.mark.usefixtures("adopting")
def test_a_lock_is_a_signal_also_if_it_is_released_while_the_wait_for_it_is_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    report = Watch.report_step

    def slowly(*given: object, **named: object) -> None:
        helper.start()
        helper.join()
        report(*given, **named)  # type: ignore[arg-type]

    with session(on=dict.fromkeys(Rung, "record")) as checked:
        done = threading.Lock()
        done.acquire()
        helper = threading.Thread(target=done.release)
        monkeypatch.setattr(Watch, "report_step", slowly)
        done.acquire()

    assert () == checked.findings


@pytest.mark.usefixtures("adopting")
@pytest.mark.parametrize(("failures", "by_name"), [(2, True), (1000, False)])
def test_a_source_that_cannot_be_read_at_once_is_read_again(
    monkeypatch: pytest.MonkeyPatch, failures: int, *, by_name: bool
) -> None:
    """CPython 3.11 raises a `SystemError` at times if two threads do so; a place is a name too."""
    left, parse = iter(range(failures)), ast.parse

    def fails_first(source: str) -> ast.Module:
        if next(left, None) is not None:
            raise SystemError("AST constructor recursion depth mismatch")
        return parse(source)

    monkeypatch.setattr(naming, "_targets_by_file", {})
    monkeypatch.setattr(naming, "_found", {})
    monkeypatch.setattr(ast, "parse", fails_first)
    with session() as opened:
        local = threading.Lock()
    name: str = getattr(local, "identity").name  # noqa: B009
    assert by_name == name.endswith(".local")
    assert by_name != name.startswith(f"{Path(__file__).name}:")
    assert [] == opened.faults


# ------------------------------------------------------------------------------- reports of a program


def test_a_report_begins_with_words_and_shows_the_program_alone(tmp_path: Path) -> None:
    """No frame of what runs it, and names of files from the working directory or their package on."""
    ran = run_alone(shop(tmp_path, INVERSION))

    said = ran.stderr.splitlines()
    places = [line.strip() for line in said if re.match(r"    \S+:\d+ in ", line)]
    assert said[1].startswith(("Possible deadlock, not seen yet: ", "Deadlock, which happened: "))
    assert {"logging/__init__.py", "shop.py"} == {place.partition(":")[0] for place in places}


def test_the_place_of_a_finding_in_sarif_is_in_the_program(tmp_path: Path) -> None:
    """Where the lock is taken by a library, the program that called it is shown beside the code."""
    run_alone("--sarif=out.sarif", shop(tmp_path, INVERSION))

    (run,) = json.loads((tmp_path / "out.sarif").read_text("utf-8"))["runs"]
    (result,) = [one for one in run["results"] if one["level"] == "error"]
    (location,) = result["locations"]
    artifact = {"uri": "shop.py", "uriBaseId": "ROOT"}
    assert artifact == location["physicalLocation"]["artifactLocation"]


def test_run_can_confirm_what_it_found(tmp_path: Path) -> None:
    """As `confirm` would, without a second first run."""
    text = "import threading, time\na, b = threading.Lock(), threading.Lock()\n"
    text += "def f():\n    with a, b: pass\ndef g():\n    with b, a: pass\n"
    text += "for one in f, g:\n    threading.Thread(target=one).start(); time.sleep(0.1)\n"

    ran = run_alone("--confirm", shop(tmp_path, text))

    assert FOUND == ran.returncode
    assert "Deadlock, confirmed: " in ran.stderr
    assert "Confirmed: 1 of 1." in ran.stderr


@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="this platform has no such signal")
def test_a_running_program_says_where_its_threads_are(tmp_path: Path) -> None:
    """On a signal, which its start names."""
    text = "import os, signal, threading\nlock = threading.Lock()\n"
    text += "with lock:\n    os.kill(os.getpid(), signal.SIGUSR1)\n"

    ran = run_alone(shop(tmp_path, text))

    assert re.match(r"lockcheck: `kill -USR1 \d+` shows what each thread holds and waits for\n", ran.stderr)
    assert re.search(r"MainThread holds lock #\d+", ran.stderr)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems leave it running")
def test_what_confirm_runs_ends_with_it(tmp_path: Path) -> None:
    """Also if it is killed."""
    text = "import os, pathlib, time\npathlib.Path('number').write_text(str(os.getpid()))\ntime.sleep(600)\n"
    number = tmp_path / "number"
    command = (sys.executable, "-m", "licorne.lockcheck", "confirm", shop(tmp_path, text))
    with subprocess.Popen(command, cwd=tmp_path) as confirming:  # noqa: S603 - our own interpreter
        wait_until(lambda: number.exists() and bool(number.read_text("utf-8")))
        confirming.kill()

    wait_until(lambda: not Path("/proc", number.read_text("utf-8")).exists())
