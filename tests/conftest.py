"""What all tests begin with."""

from __future__ import annotations

import gc
import signal
from contextlib import suppress

import pytest
from support.machine_code import skipping_machine_code
from support.waiting import WAIT_SECONDS


def pytest_configure() -> None:
    """Hear Ctrl-C, let libraries wait, and skip a test that replaces what is compiled.

    The shell has Ctrl-C ignored by what a script runs in the background. Tests interrupt programs, and a
    program inherits that interrupts are ignored.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    let_libraries_wait()
    pytest.MonkeyPatch.setattr = skipping_machine_code(pytest.MonkeyPatch.setattr)  # type: ignore[method-assign]


def let_libraries_wait() -> None:
    """Lift the limits that they have by default: 200 ms an example, 5 s a request."""
    with suppress(ImportError):
        from hypothesis import HealthCheck, settings

        settings.register_profile("slow", deadline=None, suppress_health_check=[HealthCheck.too_slow])
        settings.load_profile("slow")
    with suppress(ImportError):
        from httpx._config import DEFAULT_TIMEOUT_CONFIG

        vars(DEFAULT_TIMEOUT_CONFIG).update(dict.fromkeys(vars(DEFAULT_TIMEOUT_CONFIG), WAIT_SECONDS))


def pytest_collection_finish() -> None:
    """Exclude the modules and the 11,000 tests from garbage collection: they live until the end.

    Each full collection would visit them, and many tests ask for one.
    """
    gc.collect()
    gc.freeze()
