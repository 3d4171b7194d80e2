"""Where the threads of a process are that was started without lockcheck."""

from __future__ import annotations

import json
import os
import runpy
import shutil
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.waiting import wait_until

from licorne.lockcheck.commands import attach
from licorne.lockcheck.commands.command import main

PROGRAM = textwrap.dedent(
    """
    import threading
    a, b, gate = threading.Lock(), threading.Lock(), threading.Barrier(2)
    def take(first, second):
        def inside():
            with second:
                pass
        with first:
            gate.wait()
            inside()
    for locks in ((a, b), (b, a)):
        threading.Thread(target=take, args=locks, daemon=True).start()
    threading.Event().wait()
    """
)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """Return a program that hangs."""
    path = tmp_path / "hangs.py"
    path.write_text(PROGRAM, "utf-8")
    return path


@pytest.fixture
def hanging(program: Path) -> Iterator[int]:
    """Run it until the end of the test; return the number of its process."""
    with subprocess.Popen([sys.executable, str(program)]) as process:  # noqa: S603 - the program above
        yield process.pid
        process.kill()


def py_spy(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Put a program in the place of `py-spy`, and let no process tell by itself."""
    path = folder / "py-spy"
    path.write_text(f"#!{sys.executable}\n{script}", "utf-8")
    path.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    monkeypatch.delattr(sys, "remote_exec", raising=False)


def dump(program: Path) -> list[dict[str, object]]:
    """Return what `py-spy dump --json` prints, shortened."""
    stacks = {
        "Thread-1 (take)": [("take.<locals>.inside", 6), ("take", 10)],
        "MainThread": [("Condition.wait", 320), ("Event.wait", 622), ("<module>", 13)],
    }
    return [
        {
            "thread_id": 1,
            "thread_name": name,
            "frames": [
                {"filename": threading.__file__ if "wait" in one else str(program), "line": line, "name": one}
                for one, line in frames
            ],
        }
        for name, frames in stacks.items()
    ]


def test_threads_are_shown_with_what_they_wait_for_and_are_inside_of(
    program: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the lines at which `py-spy` sees them; `with` of an outer function is that of its own frame."""
    py_spy(program.parent, monkeypatch, f"print({json.dumps(dump(program))!r})")

    assert main(["attach", "4711"]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[:4] == [
        "Thread-1 (take) waits for a lock, it seems by `with second:`, at",
        f"    {program}:6 in take.<locals>.inside: with second:",
        f"    {program}:10 in take: inside()",
        "      inside of `with first` of line 8",
    ]
    assert lines[4] == "MainThread waits for an event at"
    assert lines[-1].endswith("in <module>: threading.Event().wait()")


def test_a_process_that_cannot_be_looked_at_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the words of `py-spy`; without it, the error names it."""
    py_spy(tmp_path, monkeypatch, "raise SystemExit('Permission denied')")

    assert main(["attach", "4711"]) == 2
    assert capsys.readouterr().err == "lockcheck: attach 4711: Permission denied\n"

    (tmp_path / "py-spy").unlink()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["attach", "4711"]) == 2
    assert "attach 4711: install `py-spy`" in capsys.readouterr().err


def in_this_process(process: int, script: str) -> None:
    """Run a script here, as Python 3.14 does in another process."""
    assert process == 4711
    runpy.run_path(script)


def refuse(process: int, script: str) -> None:
    """Do what it does where the other process has another version of Python."""
    raise RuntimeError(f"{process} cannot run {Path(script).name}")


def test_a_process_tells_by_itself_where_python_can_ask_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its threads, by name."""
    monkeypatch.setattr(sys, "remote_exec", in_this_process, raising=False)
    over = threading.Event()
    thread = threading.Thread(target=over.wait, name="idle")
    thread.start()
    try:
        wait_until(
            lambda: main(["attach", "4711"]) == 0 and "idle waits for an event" in capsys.readouterr().out
        )
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize(
    ("execute", "text"), [(refuse, "cannot be asked: 4711"), (lambda *_: None, "does not answer")]
)
def test_py_spy_is_asked_where_the_process_does_not_tell(
    program: Path,
    execute: Callable[[int, str], None],
    text: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Its main thread may be in a call of C for ever."""
    py_spy(program.parent, monkeypatch, f"print({json.dumps(dump(program))!r})")
    monkeypatch.setattr(sys, "remote_exec", execute, raising=False)
    monkeypatch.setattr(attach, "ANSWER_SECONDS", 0.1)

    assert main(["attach", "4711"]) == 0

    said = capsys.readouterr()
    assert text in said.err
    assert "MainThread waits for an event at" in said.out


@pytest.mark.skipif(shutil.which("py-spy") is None, reason="py-spy is not installed")
def test_a_real_process_that_hangs(hanging: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Both of its threads wait for the lock that the other one has."""

    def shown() -> bool:
        text = capsys.readouterr().out if main(["attach", str(hanging)]) == 0 else ""
        return text.count("it seems by `with second:`") == 2 and text.count("inside of `with first`") == 2

    wait_until(shown)
