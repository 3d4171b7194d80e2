"""The pool of threads that the end of a process does not wait for."""

from __future__ import annotations

import threading

import pytest
from support.programs import run_python
from support.waiting import WAIT_SECONDS, wait_until

from licorne.proxy.wire.server.core import DaemonPool

STUCK = """
import threading
from licorne.proxy.wire.server.core import DaemonPool
pool = DaemonPool(1, "stuck")
begun = threading.Event()
pool.submit(lambda: (begun.set(), threading.Event().wait()))
begun.wait()
print("ends")
"""


def test_tasks_have_their_outcomes_and_as_many_threads_as_they_need() -> None:
    """One after the other one thread is enough; at once there are as many as are allowed."""
    pool = DaemonPool(2, "tested")
    assert [0, 1, 4, 9] == [
        pool.submit(lambda each: each**2, number).result(WAIT_SECONDS) for number in range(4)
    ]
    with pytest.raises(ZeroDivisionError):
        pool.submit(lambda: 1 // 0).result(WAIT_SECONDS)
    meeting = threading.Barrier(2)
    both = [pool.submit(meeting.wait, 20) for _ in range(2)]
    assert {0, 1} == {each.result(WAIT_SECONDS) for each in both}
    assert 2 == sum(thread.name.startswith("tested_") for thread in threading.enumerate())
    pool.shutdown()
    wait_until(
        lambda: not any(each.name.startswith("tested_") for each in threading.enumerate()), "their end"
    )


def test_what_has_not_begun_is_cancelled_on_request() -> None:
    """What has begun goes on; nothing is taken any more."""
    pool = DaemonPool(1, "cancelled")
    go_on, begun = threading.Event(), threading.Event()

    def run() -> bool:
        begun.set()
        return go_on.wait(WAIT_SECONDS)

    runs = pool.submit(run)
    waits = pool.submit(int)
    assert begun.wait(WAIT_SECONDS)
    pool.shutdown(cancel_futures=True)
    go_on.set()

    assert runs.result(WAIT_SECONDS)
    assert waits.cancelled()
    with pytest.raises(RuntimeError, match="is shut down"):
        pool.submit(int)


def test_a_process_ends_while_a_task_is_stuck() -> None:
    """Threads of `concurrent.futures` would keep it."""
    done = run_python("-c", STUCK)
    assert (0, "ends\n") == (done.returncode, done.stdout)
