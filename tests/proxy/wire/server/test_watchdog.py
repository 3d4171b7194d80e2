"""The end of a process whose interpreter is held, by the process that watches it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from shutil import which
from typing import Final

import pytest
from support.proxy.processes import is_watchdog
from support.proxy.worker_processes import is_alive
from support.waiting import WAIT_SECONDS, wait_until

from licorne.proxy.wire.server import watchdog_process

HEAD: Final = """
import ctypes, os, signal, sys, threading, time
from licorne.proxy.wire.server import watchdog

watchdog.PATIENCE_SECONDS, watchdog.INPUT_SECONDS, watchdog.ALIVE_SECONDS = 0.3, 0.3, 0.05

def say(line):
    os.write(1, line.encode() + b"\\n")

def hold():
    say("held")
    ctypes.PyDLL(None).sleep(60)  # It keeps the lock of the interpreter.

def hold_on_a_thread():
    threading.Thread(target=hold, daemon=True).start()
    time.sleep(60)
"""
WATCHED: Final = (
    HEAD
    + """
dog = watchdog.Watchdog(reads_input="input" in sys.argv)
is_asked = threading.Lock()
is_asked.acquire()
def end(*_):
    dog.stopping()
    is_asked.release()
signal.signal(signal.SIGTERM, end)
dog.watch(signal.SIGTERM)
"""
)
SERVING: Final = (
    HEAD
    + """
from licorne.proxy.shell.command_line import main
def wait_then_hold():
    os.read(0, 1)
    hold()
threading.Thread(target=wait_then_hold, daemon=True).start()
sys.argv[0] = "licorne"
main()
"""
)
KUBECONFIG: Final = """
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: u, user: {token: t}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
"""
PARENT_IS_FIRST: Final = ("unshare", "--pid", "--fork", "--mount-proc")


@contextmanager
def running(
    program: str, *arguments: str, before: tuple[str, ...] = (), environment: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[str]]:
    """Run a program that is killed behind the block if it has not ended."""
    command = [*before, sys.executable, "-c", program, *arguments]
    with subprocess.Popen(  # noqa: S603 - our own interpreter
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **(environment or {})},
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def line_of(process: subprocess.Popen[str]) -> str:
    """Return the next line that a program prints."""
    assert process.stdout is not None
    return process.stdout.readline().rstrip("\n")


def child_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()[0])


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Wait for the end of a program; return its status and what it has said on standard error."""
    _, errors = process.communicate(timeout=WAIT_SECONDS)
    return process.returncode, errors


def test_a_process_whose_interpreter_is_held_is_killed() -> None:
    """Its handler never runs. The log says why it was killed, and where its threads were."""
    with running(WATCHED + "hold_on_a_thread()") as process:
        assert "held" == line_of(process)
        process.send_signal(signal.SIGTERM)
        status, errors = ended(process)

    assert -signal.SIGKILL == status
    assert f"Python has not run for 0.3 s: process {process.pid} is killed" in errors
    assert "in hold" in errors


def test_an_interpreter_that_is_held_after_the_reaction_is_killed_as_well() -> None:
    """A request that was in the queue may be the one that holds it."""
    with running(WATCHED + "say('ready'); is_asked.acquire(); hold_on_a_thread()") as process:
        assert "ready" == line_of(process)
        process.send_signal(signal.SIGTERM)
        assert "held" == line_of(process)
        status, errors = ended(process)

    assert -signal.SIGKILL == status
    assert "in hold" in errors


def test_an_orderly_end_may_take_longer() -> None:
    """While Python runs nothing is lost by waiting."""
    with running(WATCHED + "say('ready'); is_asked.acquire(); time.sleep(0.6); say('done')") as process:
        assert "ready" == line_of(process)
        process.send_signal(signal.SIGTERM)
        assert "done" == line_of(process)
        assert (0, "") == ended(process)


def test_an_interpreter_that_frees_its_memory_is_left_alone() -> None:
    """Its threads do not run then, and that of a large cluster takes seconds on a busy machine."""
    freed = """
class Large:
    def __del__(self, free=ctypes.PyDLL(None).usleep, say=say):
        free(900_000)
        say("freed")
large = Large()
"""
    with running(WATCHED + freed + "say('ready'); is_asked.acquire()") as process:
        assert "ready" == line_of(process)
        process.send_signal(signal.SIGTERM)
        assert "freed" == line_of(process)
        assert (0, "") == ended(process)


def test_a_second_signal_ends_the_process_at_once() -> None:
    """Whatever its threads do."""
    with running(WATCHED + "say('ready'); is_asked.acquire(); say('asked'); time.sleep(60)") as process:
        assert "ready" == line_of(process)
        process.send_signal(signal.SIGTERM)
        assert "asked" == line_of(process)
        process.send_signal(signal.SIGTERM)
        assert (-signal.SIGTERM, "") == ended(process)


def test_nothing_is_killed_that_was_not_asked_to_end() -> None:
    """A program may hold its interpreter for a while: that is slow, and is no reason."""
    with running(WATCHED + "ctypes.PyDLL(None).usleep(600_000); say('done')") as process:
        assert "done" == line_of(process)
        assert (0, "") == ended(process)


def test_a_signal_writes_the_stacks_and_nothing_else_happens() -> None:
    """For people who look at a process that seems to hang."""
    with running(WATCHED + "say('ready'); sys.stdin.read(1); say('goes on')") as process:
        assert "ready" == line_of(process)
        process.send_signal(signal.SIGUSR2)
        assert process.stderr is not None
        while "Current thread" not in (line := process.stderr.readline()):
            assert line, "it has ended"
        process.communicate("x", timeout=WAIT_SECONDS)
        assert 0 == process.returncode


def test_the_watchdog_ends_with_its_process_however_that_ends() -> None:
    """It does not react to signals that a terminal or systemd sends to all processes of a group."""
    with running(WATCHED + "say('ready'); time.sleep(60)") as process:
        assert "ready" == line_of(process)
        watchdog = child_of(process.pid)
        wait_until(lambda: is_watchdog(watchdog))
        wait_until(lambda: _ignores(watchdog, signal.SIGINT))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            os.kill(watchdog, number)
        assert is_alive(watchdog)
        process.kill()
        wait_until(lambda: not is_alive(watchdog))


def _ignores(pid: int, number: signal.Signals) -> bool:
    lines = Path(f"/proc/{pid}/status").read_text("ascii").splitlines()
    ignored = next(line.split()[1] for line in lines if line.startswith("SigIgn:"))
    return bool(int(ignored, 16) >> (number - 1) & 1)


def test_a_worker_whose_interpreter_is_held_ends_after_who_has_started_it() -> None:
    """No thread of it can see that its standard input has ended."""
    with running(WATCHED + "hold_on_a_thread()", "input") as process:
        assert "held" == line_of(process)
        assert process.stdin is not None
        process.stdin.close()
        process.stdin = None
        status, errors = ended(process)

    assert -signal.SIGKILL == status
    assert "the parent process has ended, and Python has not run for 0.3 s" in errors


def test_a_worker_that_sees_the_end_of_its_input_decides_itself() -> None:
    """It may serve those who are connected to it."""
    with running(
        WATCHED + "sys.stdin.read(); dog.input_ended(); time.sleep(0.6); say('done')", "input"
    ) as process:
        assert process.stdin is not None
        process.stdin.close()
        process.stdin = None
        assert "done" == line_of(process)
        assert (0, "") == ended(process)


def _first_process_is_possible() -> bool:
    if which(PARENT_IS_FIRST[0]) is None:
        return False
    return subprocess.run([*PARENT_IS_FIRST, "true"], check=False, capture_output=True).returncode == 0  # noqa: S603


@pytest.mark.skipif(not _first_process_is_possible(), reason="it needs the right to make a name space")
def test_the_first_process_of_a_container_ends_as_well() -> None:
    """The kernel ignores a SIGKILL for it that comes from within: it ends itself, by another signal."""
    with running(WATCHED + "hold_on_a_thread()", before=PARENT_IS_FIRST) as process:
        assert "held" == line_of(process)
        os.kill(child_of(process.pid), signal.SIGTERM)
        status, errors = ended(process)

    assert signal.SIGRTMAX == status
    assert "process 1 is killed" in errors


def test_an_end_that_takes_for_ever_is_cut_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also while the interpreter runs, as it does while a thread waits for what never comes."""
    monkeypatch.setattr(watchdog_process, "_ORDERLY_SECONDS", 0.2)
    signals, asks = os.pipe()
    alive, says = os.pipe()
    watch = watchdog_process.HangWatch(watchdog_process.WatchedProcess(os.getppid()), signals, alive, 60, 60)
    why: Future[str] = Future()
    thread = threading.Thread(target=lambda: why.set_result(watch.wait()))
    thread.start()
    os.write(asks, b"x")
    while not why.done():
        os.write(says, b".")
        threading.Event().wait(0.01)
    thread.join()
    for end in (signals, asks, alive, says):
        os.close(end)

    assert "a signal asks for the end, which has taken 0.2 s" == why.result()


@pytest.mark.parametrize(
    ("command", "number"),
    [
        ("serve", signal.SIGTERM),
        ("serve", signal.SIGINT),
        ("door", signal.SIGTERM),
        ("kubernetes", signal.SIGINT),
    ],
)
def test_a_signal_ends_each_server_whose_interpreter_is_held(
    command: str, number: signal.Signals, tmp_path: Path
) -> None:
    """Within 5 s, here less: the time is set by the test. A thread without Python may get one signal."""
    configuration = tmp_path / "config"
    configuration.write_text(KUBECONFIG, encoding="utf-8")
    options = {"kubernetes": ["--kubeconfig", str(configuration), "--no-lease"]}.get(
        command, ["--address", "127.0.0.1:0"]
    )
    with running(SERVING, command, "--no-rest", *options) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        if command == "kubernetes":
            while "scheduling pods" not in (line := process.stderr.readline()):
                assert line, "it has ended"
        else:
            assert "listening on" in line_of(process)
        process.stdin.write("x")
        process.stdin.flush()
        assert "held" == line_of(process)
        process.send_signal(number)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.send_signal(number)  # A thread of gRPC got the first one.
        status, errors = ended(process)

    assert -signal.SIGKILL == status
    assert "Python has not run for 0.3 s" in errors
    assert "in hold" in errors
