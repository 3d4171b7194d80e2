"""What the threads hold and wait for now, as text and on a signal."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from licorne import lockcheck
from licorne.lockcheck import Lock, session, standing
from licorne.lockcheck.checking.standing import report_on_signal

pytestmark = pytest.mark.lockcheck(off=True)
"""Sessions are opened here."""

HEAD = re.compile(r"lockcheck: \d+ threads have taken locks")
"""In a checked run threads of other tests may take locks meanwhile."""
SERVICE = """
import threading

FIRST, SECOND = threading.Lock(), threading.RLock()

def serve():
    with SECOND:
        print("ready", flush=True)
        with FIRST:
            pass

with FIRST:
    threading.Thread(target=serve, name="server", daemon=True).start()
    threading.Event().wait()
"""


def test_each_thread_is_shown_with_what_it_holds_and_waits_for() -> None:
    """With the places in the code."""
    with session(level="full"):
        first, second = Lock("first"), Lock("second")

        def serve() -> None:
            with second, first:
                pass

        with first:
            thread = threading.Thread(target=serve, name="server")
            thread.start()
            said = standing()
            while "waits for first" not in said:
                assert thread.is_alive()
                said = standing()
        thread.join()

    lines = said.splitlines()
    assert HEAD.fullmatch(lines[0])
    assert any(line.startswith("MainThread holds first") for line in lines)
    assert any(line.startswith("server holds second") for line in lines)
    assert sum("with second, first:" in line for line in lines) == 2, "where it was taken, and where it waits"


def test_threads_without_locks_are_shown_where_they_are() -> None:
    """After those that have taken some."""
    begun, over = threading.Event(), threading.Event()

    def idle() -> None:
        begun.set()
        over.wait()

    thread = threading.Thread(target=idle, name="idle")
    thread.start()
    begun.wait()
    with session(), Lock("only"):
        said = standing()
        while "over.wait()" not in said:  # It has begun, and may not have come there yet.
            said = standing()
    over.set()
    thread.join()

    lines = said.splitlines()
    head = next(number for number, line in enumerate(lines) if HEAD.fullmatch(line))
    assert lines.index("idle is at") > head
    assert any("over.wait()" in line for line in lines[lines.index("idle is at") :])


def test_without_a_session_the_stacks_alone_are_shown() -> None:
    """It says that nothing is checked."""
    lines = standing().splitlines()

    assert ["lockcheck: nothing is checked now", True] == [lines[0], "MainThread is at" in lines]
    assert any("test_without_a_session" in line for line in lines)


@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="this system has no SIGUSR1")
def test_a_service_reports_on_a_signal(tmp_path: Path) -> None:
    """An unchanged one, to standard error; it goes on."""
    (tmp_path / "service.py").write_text(SERVICE, "utf-8")
    start = 'import runpy, licorne.lockcheck; runpy.run_path("service.py", run_name="__main__")'
    service = subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-u", "-c", start],
        cwd=tmp_path,
        env={**os.environ, "LOCKCHECK": "full", "LOCKCHECK_ADOPT": "program", "LOCKCHECK_SIGNAL": "USR1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with service:
        try:
            assert service.stdout is not None
            assert service.stderr is not None
            assert service.stdout.readline() == "ready\n"
            service.send_signal(signal.SIGUSR1)
            said = []
            for line in service.stderr:
                said.append(line)
                if line.startswith("server holds SECOND"):
                    break
            assert service.poll() is None
        finally:
            service.kill()

    assert any(line.startswith("MainThread holds FIRST") for line in said)


@pytest.mark.parametrize("name", ["NOTHING", "SIGKILL", "int"])
def test_a_signal_that_cannot_be_handled_is_refused(name: str) -> None:
    """With the name of the variable."""
    with pytest.raises(lockcheck.LockUsageError, match=f"LOCKCHECK_SIGNAL={name}: "):
        report_on_signal(name)
