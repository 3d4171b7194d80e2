"""What a process knows of its threads."""

from __future__ import annotations

import threading

from licorne.lockcheck import Lock, session
from licorne.lockcheck.holding.runtime import local, runtime

TRIES = 1_000


def test_the_late_end_of_a_thread_is_none_of_the_one_that_has_its_number_now() -> None:
    """Without a global lock what a thread kept for itself may be dropped long after it has ended."""
    kept: list[object] = []
    known: list[bool] = []

    def first() -> None:
        with lock:
            kept.append(local.end)

    def second() -> None:
        with lock:
            kept.clear()
            known.append(runtime.running.get(threading.get_ident()) is local.execution)

    with session():
        lock = Lock("lock")
        for _ in range(TRIES):
            numbers = []
            for work in (first, second):
                thread = threading.Thread(target=work)
                thread.start()
                numbers.append(thread.ident)
                thread.join()
            if numbers[0] == numbers[1]:
                break

    assert numbers[0] == numbers[1], "no number was given twice: then this shows nothing"
    assert all(known)
