"""Real deadlocks that locks are part of leave a file by which other runs get stuck in the same way."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeAlias

import pytest
from support.lockcheck.deadlocked import LEAVE_ALONE, deadlocks, run_all
from support.lockcheck.lock_corpus import Guard
from support.lockcheck.pytest_runs import run_module
from support.waiting import WAIT_SECONDS

from licorne.lockcheck import DeadlockError, Kind, Lock, Rung, RWLock, session
from licorne.lockcheck.checking.acquisition_checks import witness_of
from licorne.lockcheck.commands.command import main
from licorne.lockcheck.confirming.confirmation import confirm
from licorne.lockcheck.findings.findings import role_of
from licorne.lockcheck.findings.json_files import read_witness
from licorne.lockcheck.findings.terms import FOUND
from licorne.lockcheck.reports.documents import read_document

Met: TypeAlias = "Callable[[], object]"
"""What a thread calls that holds its first lock: it waits there for the others, or goes on at once."""

IN_A_TEST = """
import sys, threading
from licorne.lockcheck import DeadlockError, Lock

def test_two_threads(meet=True):
    books, desk, both = Lock("books"), Lock("desk"), threading.Barrier(2)

    def take(first, second):
        with first:
            if meet:
                both.wait(60)
            try:
                with second:
                    pass
            except DeadlockError:
                pass

    threads = [
        threading.Thread(target=take, args=locks, name=name, daemon=True)
        for name, locks in {"one": (books, desk), "two": (desk, books)}.items()
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
"""
TWO_THREADS = IN_A_TEST + 'test_two_threads(meet=sys.argv[1:] == ["meet"])\n'


def nested(first: Guard, met: Met, second: Guard) -> None:
    """Take two locks inside each other."""
    with first:
        met()
        with second:
            pass


def two_locks(met: Met) -> dict[str, Callable[[], object]]:
    a, b = Lock("a"), Lock("b", key=1)
    return {"one": lambda: nested(a, met, b), "two": lambda: nested(b, met, a)}


def written_and_read(met: Met) -> dict[str, Callable[[], object]]:
    a, b = RWLock("a"), RWLock("b")
    return {"one": lambda: nested(a.read(), met, b.write()), "two": lambda: nested(b.read(), met, a.write())}


def a_ring(met: Met) -> dict[str, Callable[[], object]]:
    ring = [Lock("fork", key=number) for number in range(3)]
    return {
        f"philosopher-{number}": lambda number=number: nested(ring[number], met, ring[(number + 1) % 3])  # type: ignore[misc] # bound
        for number in range(3)
    }


def a_lock_and_a_join(met: Met) -> dict[str, Callable[[], object]]:
    """A thread waits for the end of one that wants its lock."""
    lock = Lock("a")

    def wants() -> None:
        try:
            met()
            with lock:
                pass
        except DeadlockError:
            return

    def joins() -> None:
        worker = threading.Thread(target=wants, name="worker", daemon=True)
        worker.start()
        with lock:
            met()
            worker.join()

    return {"joiner": joins}


def a_lock_and_a_result(met: Met) -> dict[str, Callable[[], object]]:
    """A task wants the lock of who waits for its result."""
    lock = Lock("books")

    def takes() -> None:
        met()
        with lock:
            pass

    def waits() -> None:
        with ThreadPoolExecutor(2) as pool:
            future = pool.submit(takes)
            with lock:
                met()
                future.result()

    return {"waiter": waits}


@pytest.mark.parametrize(
    ("works", "number"),
    [
        (two_locks, 2),
        (written_and_read, 2),
        (a_ring, 3),
        (a_lock_and_a_join, 2),
        (a_lock_and_a_result, 2),
    ],
)
def test_a_deadlock_that_happened_can_be_replayed(
    works: Callable[[Met], dict[str, Callable[[], object]]], number: int, tmp_path: Path
) -> None:
    """In a run in which nobody waits for anybody, so that as a rule nothing would happen."""
    all_there = threading.Barrier(number)
    with session(on=LEAVE_ALONE, witnesses=tmp_path) as opened:
        run_all(**works(lambda: all_there.wait(WAIT_SECONDS)))
    (happened,) = deadlocks(opened)
    assert happened.replay is not None
    witness = read_witness(tmp_path / f"{happened.fingerprint}.json")
    outcome = confirm(witness, lambda: run_all(**works(int)))

    assert [] == opened.faults
    assert Rung.R5 is witness.rung
    assert number == len(witness.points)
    assert outcome.finding is not None, outcome.reasons
    assert (Rung.R4, Kind.DEADLOCK) == (outcome.finding.rung, outcome.finding.kind)
    assert {role_of(edge.execution) for edge in happened.edges} == {
        role_of(edge.execution) for edge in outcome.finding.edges
    }


def two_joins() -> None:
    """Two threads wait for each other's end, and no lock is in between."""
    threads: dict[str, threading.Thread] = {}
    both = threading.Barrier(2)

    def joins(other: str) -> None:
        threads[threading.current_thread().name] = threading.current_thread()
        both.wait(WAIT_SECONDS)
        threads[other].join()

    run_all(one=lambda: joins("two"), two=lambda: joins("one"))


def one_lock_twice() -> None:
    """A thread waits for what it holds itself."""
    lock = Lock("books")
    with lock, pytest.raises(DeadlockError):
        lock.acquire()


@pytest.mark.parametrize("work", [two_joins, one_lock_twice])
def test_what_nobody_can_be_steered_to_leaves_no_file(work: Callable[[], None], tmp_path: Path) -> None:
    """Ends of threads alone, and what one thread does to itself every time."""
    with session(on=LEAVE_ALONE, witnesses=tmp_path) as opened:
        work()

    (happened,) = deadlocks(opened)
    assert (None, ()) == (happened.replay, happened.points)
    assert [] == list(tmp_path.iterdir())


def test_the_level_order_leaves_no_file(tmp_path: Path) -> None:
    """It does not know where locks were taken."""
    both = threading.Barrier(2)
    with session(level="order", on=LEAVE_ALONE, witnesses=tmp_path) as opened:
        run_all(**two_locks(lambda: both.wait(WAIT_SECONDS)))

    assert [None] == [one.replay for one in deadlocks(opened)]
    assert [] == list(tmp_path.iterdir())


def test_a_deadlock_is_broken_whatever_its_locks_are_called(tmp_path: Path) -> None:
    """Names that are no text, such as of files, can stand in no file."""
    both = threading.Barrier(2)
    unlogged = {**LEAVE_ALONE, Rung.R5: "raise"}  # what is logged has to be text where tests run in parallel
    with session(on=unlogged, witnesses=tmp_path) as opened:
        one, other = Lock("one", key="\udc80"), Lock("other")
        gave_way = run_all(
            one=lambda: nested(one, lambda: both.wait(WAIT_SECONDS), other),
            two=lambda: nested(other, lambda: both.wait(WAIT_SECONDS), one),
        )

    (happened,) = deadlocks(opened)
    assert 1 == len(gave_way)
    assert happened.replay is None
    assert "surrogates not allowed" in happened.why[-1]


def test_a_file_that_cannot_be_written_is_told_and_the_deadlock_is_broken(tmp_path: Path) -> None:
    """Whether it happened, or was steered into."""
    folder = tmp_path / "taken"
    folder.write_text("no folder")
    both = threading.Barrier(2)
    with session(on=LEAVE_ALONE, witnesses=folder) as opened:
        gave_way = run_all(**two_locks(lambda: both.wait(WAIT_SECONDS)))

    (happened,) = deadlocks(opened)
    witness = witness_of(happened)
    assert witness is not None
    outcome = confirm(witness, lambda: run_all(**two_locks(int)), folder=folder)

    assert 1 == len(gave_way)
    assert [] == opened.faults
    assert outcome.finding is not None
    for finding in (happened, outcome.finding):
        assert finding.replay is None
        assert f"no replay file could be written: [Errno 17] File exists: '{folder}'" == finding.why[-1]


def test_run_leaves_a_file_that_replay_forces_the_same_with(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Each in processes of their own; the second time the threads do not wait for each other."""
    program, into, report = tmp_path / "program.py", tmp_path / "into", tmp_path / "report.json"
    program.write_text(TWO_THREADS)
    assert FOUND == main(["run", f"--into={into}", f"--json={report}", str(program), "meet"])
    (happened,) = [one for one in read_document(str(report)).findings if one.rung is Rung.R5]
    assert str(into / f"{happened.fingerprint}.json") == happened.replay
    assert f"replay file: {happened.replay}" in capfd.readouterr().err

    assert FOUND == main(["replay", happened.replay, str(program)])
    assert "Deadlock, confirmed: 2 threads were stuck" in capfd.readouterr().err


def test_confirm_leaves_what_happened_at_its_rung(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """It happened, and was only confirmed besides: the strongest evidence stays, with the new file."""
    program, into, report = tmp_path / "program.py", tmp_path / "into", tmp_path / "report.json"
    program.write_text(TWO_THREADS)
    code = main(["confirm", f"--into={into}", f"--json={report}", str(program), "meet"])
    (finding,) = [one for one in read_document(str(report)).findings if one.replay is not None]

    assert FOUND == code
    assert Rung.R5 is finding.rung
    assert Rung.R4 is read_witness(into / f"{finding.fingerprint}.json").rung
    assert "Confirmed: 1 of 1." in capfd.readouterr().err


def test_a_test_that_deadlocks_leaves_a_file(tmp_path: Path) -> None:
    """Under pytest, at the level `full` too."""
    code, output = run_module(tmp_path, IN_A_TEST, "--lockcheck=full", "--lockcheck-witness=kept")
    (kept,) = (tmp_path / "kept").iterdir()

    assert 1 == code
    assert f"replay file: {kept}" in output
    assert Rung.R5 is read_witness(kept).rung
