"""The settings of the whole process that a program makes whose main work is a scheduler."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator

import pytest

from licorne.proxy.base.process import collect_garbage_later, prepare_process


@pytest.fixture(autouse=True)
def settings_restored() -> Iterator[None]:
    """Give this process back what it had."""
    threshold, interval, enabled = gc.get_threshold(), sys.getswitchinterval(), gc.isenabled()
    yield
    gc.set_threshold(*threshold)
    sys.setswitchinterval(interval)
    if enabled:
        gc.enable()


def test_a_process_is_prepared_for_a_scheduler() -> None:
    """Threads take turns more often than by default, and garbage is looked for less often."""
    prepare_process()

    assert 50_000 == gc.get_threshold()[0]
    assert pytest.approx(0.001) == sys.getswitchinterval()


def test_garbage_is_looked_for_again_after_a_short_work_that_failed() -> None:
    """Meanwhile it is not."""
    seen: list[bool] = []

    def broken() -> None:
        with collect_garbage_later():
            seen.append(gc.isenabled())
            raise ValueError("broke")

    with pytest.raises(ValueError, match="broke"):
        broken()

    assert [False, True] == [*seen, gc.isenabled()]


def test_a_collector_that_is_off_stays_off() -> None:
    """The program has decided that."""
    gc.disable()
    with collect_garbage_later():
        pass

    assert not gc.isenabled()
