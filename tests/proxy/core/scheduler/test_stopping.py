"""The end of a scheduler: once, for all that wait for it, and again after a failure."""

from __future__ import annotations

import threading

import pytest
from support.waiting import WAIT_SECONDS

from licorne.proxy.core.scheduler.calling import Stopping


@pytest.mark.parametrize("on_thread", [True, False])
def test_an_end_that_fails_raises_its_error_and_may_be_tried_again(*, on_thread: bool) -> None:
    """A stepped scheduler is ended by the thread that stops it."""
    done: list[str] = []

    def halt() -> None:
        done.append("halt")
        if len(done) == 1:
            raise OSError("not yet")

    stopping = Stopping(halt, lambda: done.append("finish"), on_thread=on_thread)
    with pytest.raises(OSError, match="not yet"):
        stopping.wait(inside_callback=False)
    for _ in range(2):
        stopping.wait(inside_callback=False)
    assert done == ["halt", "halt", "finish"]


@pytest.mark.parametrize("on_thread", [True, False])
def test_no_lock_is_held_while_it_ends(*, on_thread: bool) -> None:
    """Another thread may stop it meanwhile: it waits for the same end."""
    begun, go_on = threading.Event(), threading.Event()

    def halt() -> None:
        begun.set()
        assert go_on.wait(WAIT_SECONDS)

    stopping = Stopping(halt, lambda: None, on_thread=on_thread)
    first = threading.Thread(target=stopping.wait, kwargs={"inside_callback": False})
    first.start()
    assert begun.wait(WAIT_SECONDS)
    assert stopping._lock.acquire(timeout=WAIT_SECONDS)
    stopping._lock.release()
    other = threading.Thread(target=stopping.wait, kwargs={"inside_callback": False})
    other.start()
    go_on.set()
    for thread in (first, other):
        thread.join(WAIT_SECONDS)
        assert not thread.is_alive()
