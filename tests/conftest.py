"""What all tests begin with."""

from __future__ import annotations

import signal


def pytest_configure() -> None:
    """Hear Ctrl-C where the shell has switched it off, as it does for what a script runs in the background.

    Tests interrupt programs, and a program inherits that interrupts are ignored.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
