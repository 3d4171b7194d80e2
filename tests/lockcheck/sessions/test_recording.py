"""Traces: what a run writes, what survives a crash, and what is said of what does not."""

from __future__ import annotations

import concurrent.futures
import errno
import os
import queue
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.lockcheck.recorded_programs import crossed_program
from support.programs import written
from support.waiting import EXPIRING_SECONDS, WAIT_SECONDS

from licorne.lockcheck import Condition, LockUsageError, RLock, RWLock, session
from licorne.lockcheck.checking import acquisition_checks
from licorne.lockcheck.commands.command import main
from licorne.lockcheck.findings.findings import role_of
from licorne.lockcheck.prediction.prediction import predict
from licorne.lockcheck.sessions.recording import events_written, recording
from licorne.lockcheck.traces.trace import EventKind, TracedLock, TraceFileError, is_trace, read_trace

if TYPE_CHECKING:
    Job = Callable[[], None]

KILLED = """
import sys, threading
from pathlib import Path
from licorne.lockcheck import Lock, RWLock
from licorne.lockcheck.sessions.recording import recording

with recording(Path(sys.argv[1])):
    lock, shared = Lock("lock"), RWLock("shared")

    def work(unit):
        for times in range(100_000):  # the ring holds more
            with shared.read(), lock:
                pass
            if times == 500:
                sys.stdout.write(f"{unit} {times}\\n")
                sys.stdout.flush()
        threading.Event().wait()

    for unit in range(3):
        threading.Thread(target=work, args=(unit,), name=f"worker-{unit}").start()
    threading.Event().wait()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a trace is recorded to."""
    return tmp_path / "locks.lct"


def take(lock: AbstractContextManager[object], meanwhile: Callable[[], None] = lambda: None) -> None:
    """Take a lock at one place in the code, whoever asks, and do something while it is held."""
    with lock:
        meanwhile()


def take_often(lock: AbstractContextManager[object]) -> None:
    """Take a lock so often that it needs several small segments."""
    for _ in range(2000):
        take(lock)


def some_events(path: Path, times: int, segment_bytes: int = 8192, segments: int = 8) -> None:
    """Record a lock that is taken so many times."""
    with recording(path, segment_bytes=segment_bytes, segments=segments):
        lock = RLock("a", key=1)
        for _ in range(times):
            with lock:
                pass


@pytest.mark.parametrize(("after_start", "code"), [("pass", 1), ("thread.join()", 0)])
def test_a_deadlock_that_did_not_happen_is_predicted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], after_start: str, code: int
) -> None:
    """Unless one thread begins after the other has ended."""
    program, trace = written(tmp_path, crossed_program(after_start=after_start)), tmp_path / "locks.lct"

    assert main(["record", "--trace", str(trace), program]) == 0
    assert code == main(["analyze", str(trace)])
    assert ("1 deadlock predicted" if code else "0 deadlocks predicted") in capsys.readouterr().out


def by_a_semaphore(
    semaphore: threading.Semaphore, enters: Callable[[], object], work: Job, then: Job
) -> None:
    """Come through a semaphore that was released after some work."""
    over = plain()
    semaphore.acquire()

    def run() -> None:
        work()
        semaphore.release()
        over.release()

    threading.Thread(target=run).start()
    over.acquire()
    enters()
    then()


def enters(kind: type[threading.Semaphore], work: Job, then: Job) -> None:
    """Enter a semaphore by `with`."""
    semaphore = kind()
    by_a_semaphore(semaphore, semaphore.__enter__, work, then)


def acquires(kind: type[threading.Semaphore], work: Job, then: Job) -> None:
    """Acquire a semaphore."""
    semaphore = kind()
    by_a_semaphore(semaphore, semaphore.acquire, work, then)


def by_a_future(sees: Callable[[Future[None]], object], work: Job, then: Job) -> None:
    """See that a task is done, without waiting for its result."""
    over = plain()
    with ThreadPoolExecutor(2) as pool:  # one that has one thread does not do it at the same time, anyway
        future = pool.submit(work)
        future.add_done_callback(lambda _: over.release())
        over.acquire()
        sees(future)
        then()


def plain() -> threading.Lock:
    """Return a lock that is held, and of which no recording hears."""
    lock = threading.Lock()
    lock.acquire()
    return lock


@pytest.mark.parametrize(
    "comes",
    [
        partial(enters, threading.Semaphore),
        partial(acquires, threading.Semaphore),
        partial(acquires, threading.BoundedSemaphore),
        partial(by_a_future, lambda future: concurrent.futures.wait([future])),
        partial(by_a_future, lambda future: next(concurrent.futures.as_completed([future]))),
        partial(by_a_future, lambda future: future.done()),
    ],
    ids=["with", "semaphore", "bounded semaphore", "wait", "as_completed", "done"],
)
def test_what_needs_no_wait_orders_what_follows(path: Path, comes: Callable[[Job, Job], None]) -> None:
    """Who comes through came after, whether or not it had to wait."""
    with recording(path):
        a, b = RLock("a"), RLock("b")

        def first() -> None:
            with a, b:
                pass

        def second() -> None:
            with b, a:
                pass

        comes(first, second)

    assert predict(read_trace(path)).found == ()


def unhashable(kind: type[Any]) -> Any:
    """Return a class of things of a kind that have an equality of its own, and no hash therefore."""
    return type("Unhashable", (kind,), {"__eq__": lambda self, other: type(self) is type(other)})


def notified() -> None:
    """Notify a condition."""
    condition = unhashable(threading.Condition)()
    with condition:
        condition.notify()


@pytest.mark.parametrize(
    "use",
    [
        lambda: unhashable(threading.Event)().set(),
        notified,
        lambda: unhashable(threading.Semaphore)().release(),
        lambda: unhashable(threading.Barrier)(1).wait(),
        lambda: unhashable(queue.Queue)().put(1),
        lambda: unhashable(Future)().set_result(1),
    ],
    ids=["event", "condition", "semaphore", "barrier", "queue", "future"],
)
def test_what_has_no_hash_ends_no_recording(path: Path, use: Callable[[], object]) -> None:
    """It is a thing like any other."""
    with recording(path) as opened:
        use()
        take(RLock("a"))
    trace = read_trace(path)

    assert [] == opened.faults
    assert () == trace.notices
    assert {EventKind.SIGNAL, EventKind.TOOK, EventKind.LEFT} <= {event.kind for event in trace.events}


def test_things_that_are_equal_are_told_apart(path: Path) -> None:
    """Who waits for the one is not woken by the other."""

    class Equal(threading.Event):
        def __eq__(self, other: object) -> bool:
            return isinstance(other, Equal)

        def __hash__(self) -> int:
            return 7

    one, other = Equal(), Equal()
    with recording(path):
        one.clear()
        other.clear()
    signalled = [event.object for event in read_trace(path).events if event.kind is EventKind.SIGNAL]

    assert 2 == len(set(signalled))


def test_a_future_without_a_hash_has_its_result_where_everything_is_checked() -> None:
    """What is hooked works as without a session."""
    with session(), ThreadPoolExecutor(1) as pool:
        future = unhashable(Future)()
        pool.submit(future.set_result, 7).result()

        assert 7 == future.result()


def test_a_future_is_given_its_result_by_name_as_ever(tmp_path: Path) -> None:
    """What is hooked takes all that it takes without a session."""
    done, failed = Future[int](), Future[int]()
    with recording(tmp_path / "locks.lct"):
        done.set_result(result=7)
        failed.set_exception(exception=KeyError(7))

    assert 7 == done.result()
    assert isinstance(failed.exception(), KeyError)


def test_a_trace_says_lock_mode_and_place(path: Path) -> None:
    """As they can be found again in another run."""
    with recording(path), RWLock("queue", key="root.a").read():
        pass
    trace = read_trace(path)
    took, left = (event for event in trace.events if event.kind in {EventKind.TOOK, EventKind.LEFT})

    assert (took.mode, left.mode) == ("R", "R")
    assert str(trace.locks[took.object]) == "queue root.a"
    assert "RWLock" in trace.sites[took.site].source
    assert trace.notices == ()


def test_a_trace_tells_files_apart_that_read_alike(tmp_path: Path) -> None:
    """Their code is equal, but for the file that it is from."""
    path, files = tmp_path / "locks.lct", ["one.py", "other.py"]
    with recording(path):
        for file in files:
            names: dict[str, Callable[[AbstractContextManager[object]], None]] = {}
            exec(compile("def take(lock):\n    with lock: pass", file, "exec"), names)  # noqa: S102 - ours
            names["take"](RLock("a"))

    assert files == [site.file for site in read_trace(path).sites.values()]


def test_a_lock_that_an_exit_stack_enters_is_noted_where_the_program_is(path: Path) -> None:
    """Each time, not only where it was entered first."""
    with recording(path):
        lock = RLock("a")
        with ExitStack() as stack:
            stack.enter_context(lock)  # one
        with ExitStack() as stack:
            stack.enter_context(lock)  # two
    trace = read_trace(path)
    sources = [trace.sites[event.site].source for event in trace.events if event.kind is EventKind.TOOK]

    assert ["one", "two"] == [source.partition("# ")[2] for source in sources]


def test_a_condition_leaves_its_lock_and_takes_it_again(path: Path) -> None:
    """As often as it was held."""
    with recording(path):
        lock = RLock("a")
        condition = Condition(lock)
        with lock, condition:
            condition.wait(EXPIRING_SECONDS)
    trace = read_trace(path)
    (serial,) = (number for number, traced in trace.locks.items() if traced.name == "a")
    kinds = [event.kind for event in trace.events if event.object == serial]

    assert [EventKind.TOOK] * 2 + [EventKind.LEFT] * 2 == kinds[:4] == kinds[4:]


def is_full(*_: object) -> None:
    """Find no room on a disk."""
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="the system cannot reserve room on a disk")
def test_a_full_disk_ends_the_trace_and_the_program_goes_on(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is counted once; all that was written until then is there."""
    with recording(path, segment_bytes=8192) as opened:
        lock = RLock("a")
        monkeypatch.setattr(os, "posix_fallocate", is_full)
        for _ in range(1000):
            with lock:
                pass
        monkeypatch.undo()
    trace = read_trace(path)

    assert ["OSError: [Errno 28] No space left on device"] == opened.faults
    assert 900 < len(trace.events) < 1024
    assert trace.notices == (f"the trace was not closed: it is cut off at offset {24 + 8192}",)


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="the system cannot reserve room on a disk")
def test_where_there_is_no_room_for_a_trace_no_program_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is reported before anything is written."""
    monkeypatch.setattr(os, "posix_fallocate", is_full)
    program = tmp_path / "program.py"
    program.write_text("print('runs')")
    code = main(["record", "--trace", str(tmp_path / "locks.lct"), str(program)])
    output = capsys.readouterr()

    assert (2, "") == (code, output.out)
    assert "No space left" in output.err


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="the system kills no processes")
def test_a_killed_process_leaves_all_that_its_threads_had_done(path: Path) -> None:
    """But for the one event that each was about to write."""
    command = [sys.executable, "-c", KILLED, str(path)]
    program = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603 - our own program
    try:
        assert program.stdout is not None
        lines = [program.stdout.readline().split() for _ in range(3)]
    finally:
        program.kill()
        program.communicate()
    output = {int(execution): int(times) for execution, times in lines}
    trace = read_trace(path)
    left = Counter(
        trace.executions[event.execution].name for event in trace.events if event.kind is EventKind.LEFT
    )

    assert -signal.SIGKILL == program.returncode
    assert {0, 1, 2} == set(output)
    assert all(left[f"worker-{execution}"] >= 2 * times for execution, times in output.items())
    assert trace.notices[-1].startswith("the trace was not closed: it is cut off at offset ")
    assert predict(trace).found == ()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
def test_a_child_that_is_forked_writes_nothing_into_the_trace_of_its_parent(tmp_path: Path) -> None:
    """Neither events nor the end; it can have a trace of its own."""
    path, own = tmp_path / "locks.lct", tmp_path / "child.lct"
    with recording(path) as opened:
        lock = RLock("a")
        take(lock)
        child = os.fork()
        if child == 0:
            signal.alarm(WAIT_SECONDS)  # a signal without a handler ends the child
            take(lock)
            with events_written(own):
                take(lock)
            os._exit(len(opened.faults))
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        take(lock)
    kinds = [[event.kind for event in read_trace(one).events] for one in (path, own)]

    assert code == 0
    assert kinds[0].count(EventKind.TOOK) == kinds[0].count(EventKind.LEFT) == 2
    assert kinds[1].count(EventKind.TOOK) == kinds[1].count(EventKind.LEFT) == 1
    assert () == read_trace(path).notices == read_trace(own).notices


def test_a_child_ends_a_recording_that_a_thread_of_its_parent_was_writing_to(tmp_path: Path) -> None:
    """The thread is not there to end its turn."""
    writes, goes_on = plain(), plain()
    put: list[bool] = []

    class Key:
        """Put into words while its lock is written down for the first time."""

        def __str__(self) -> str:
            if not put:
                put.append(True)
                writes.release()
                goes_on.acquire()
            return "key"

    with ExitStack() as child_ends, recording(tmp_path / "locks.lct"):
        thread = threading.Thread(target=take, args=[RLock("a", key=Key())])
        thread.start()
        writes.acquire()
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(WAIT_SECONDS)
            child_ends.callback(os._exit, 0)
        else:
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            goes_on.release()
            thread.join()

    assert code == 0


def test_a_torn_tail_is_cut_off(path: Path) -> None:
    """The rest is read, and a notice says where it ends."""
    some_events(path, 3)
    whole, data = read_trace(path), bytearray(path.read_bytes())
    end = len(data.rstrip(b"\0"))
    data[end - 20 : end] = b"\xff" * 20  # the end of the trace, and what was left last
    path.write_bytes(data)
    torn = read_trace(path)

    assert torn.events == whole.events[: len(torn.events)]
    assert 0 < len(torn.events) < len(whole.events)
    assert torn.notices[0].startswith("the trace was not closed: it is cut off at offset ")


def test_a_full_ring_loses_its_beginning_and_says_so(path: Path) -> None:
    """What is left has its names."""
    some_events(path, 3000, segments=2)
    trace = read_trace(path)

    assert "segments were written over" in trace.notices[0]
    assert {"a 1"} == {str(lock) for lock in trace.locks.values()}
    assert predict(trace).found == ()


def test_what_is_left_over_in_a_ring_is_not_taken_for_events(path: Path) -> None:
    """Where a name had no room at the end of a segment, older events still stand there."""
    with recording(path, segment_bytes=8192, segments=2):
        for number in range(1000):
            take(RLock("a", key="x" * (number % 200)))
    trace = read_trace(path)

    assert "segments were written over" in trace.notices[0]
    assert len(trace.notices) == 1
    assert predict(trace).found == ()


def test_what_the_checker_itself_triggers_is_left_out_wholly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as by a finalizer: also where a new segment has begun before it releases its lock."""
    path, plain = tmp_path / "locks.lct", acquisition_checks._keeps_leaf
    with recording(path, segment_bytes=8192) as opened:
        lock, other = RLock("a"), RLock("b")
        take(lock)

        def in_another_thread() -> None:
            thread = threading.Thread(target=lambda: take_often(other))
            thread.start()
            thread.join()

        def with_finalizer(*given: object) -> bool:
            monkeypatch.undo()
            take(lock, in_another_thread)
            return plain(*given)  # type: ignore[arg-type] # passed on

        monkeypatch.setattr(acquisition_checks, "_keeps_leaf", with_finalizer)
        take(RLock("new"))
    trace = read_trace(path)
    kinds = [
        event.kind for event in trace.events if trace.locks.get(event.object) == TracedLock("a", None, None)
    ]

    assert [] == opened.faults
    assert [EventKind.TOOK, EventKind.LEFT] == [kind for kind in kinds if kind < EventKind.SIGNAL]


LAST_OF_FIRST_SEGMENT = 24 + 8192 - 8


def with_a_wrong_byte(data: bytes) -> bytes:
    """Return a trace of which a record is broken that is not in its last segment."""
    place = LAST_OF_FIRST_SEGMENT + 1
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


@pytest.mark.parametrize(
    ("change", "is_one", "message"),
    [
        pytest.param(
            lambda _: b"something else, long enough for a head",
            False,
            "the magic at offset 0 is missing",
            id="a foreign file is refused with the offset",
        ),
        pytest.param(
            lambda data: data[:-1],
            True,
            "the head at offset 16 says",
            id="a trace that was cut is refused with the offset of its head",
        ),
        pytest.param(
            lambda data: data.replace(b"LOCKTRACE2", b"LOCKTRACE1", 1),
            True,
            "a trace of version 1, where version 2 is read: record it anew",
            id="a trace of another version is refused with both, and not taken for something else",
        ),
        pytest.param(
            with_a_wrong_byte,
            True,
            f"the record at offset {LAST_OF_FIRST_SEGMENT} is broken: the checksum",
            id="what is broken before the last segment is refused with the offset",
        ),
    ],
)
def test_a_file_that_is_no_whole_trace_is_refused(
    path: Path, change: Callable[[bytes], bytes], *, is_one: bool, message: str
) -> None:
    """By the command too."""
    some_events(path, 1000)
    path.write_bytes(change(path.read_bytes()))

    assert is_one == is_trace(path)
    with pytest.raises(TraceFileError, match=message):
        read_trace(path)
    assert main(["analyze", str(path)]) == 2


def test_a_ring_that_is_too_small_is_refused(tmp_path: Path) -> None:
    """It could not hold one event with its names."""
    with (
        pytest.raises(LockUsageError, match="a trace of 1 segments of 8192 bytes cannot be"),
        recording(tmp_path / "t", segment_bytes=8192, segments=1),
    ):
        pass


@pytest.mark.parametrize(
    ("name", "role"),
    [("Thread-3 (work)", "work"), ("Thread-3", "Thread"), ("pool-0_1", "pool"), ("MainThread", "MainThread")],
)
def test_a_role_has_no_numbers(name: str, role: str) -> None:
    """They differ from run to run."""
    assert role == role_of(name)
