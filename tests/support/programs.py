"""Programs that tests write down and run by an interpreter of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from support.waiting import PROGRAM_SECONDS

_FORK_EACH: Final = """
import json, os, sys
{imports}
for line in sys.stdin:
    program, folder = json.loads(line)
    if not (child := os.fork()):
        break
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
else:
    sys.exit()
os.chdir(folder)
for number, name, flags in ((0, os.devnull, 0), (1, "output", 0o101), (2, "errors", 0o101)):
    os.dup2(os.open(name, flags), number)
exec(program, {{"__name__": "__main__"}})
"""


def written(folder: Path, text: str, name: str = "program.py") -> str:
    """Write a program; return its path."""
    path = folder / name
    path.write_text(text, "utf-8")
    return str(path)


def run_python(
    *words: str, folder: Path | None = None, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the interpreter to its end, in a folder and an environment, or in those of the tests."""
    return subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PROGRAM_SECONDS,
        check=False,
    )


def outcome_of(code: str, folder: Path, environment: Mapping[str, str] | None = None) -> tuple[str, str]:
    """Run code in a fresh interpreter in a folder; return what it wrote to its output and to its errors."""
    ran = run_python(
        "-W", "error", "-c", code, folder=folder, environment={**os.environ, **(environment or {})}
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout, ran.stderr


def run_lockcheck(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the command of lockcheck in a folder."""
    return run_python("-m", "licorne.lockcheck", *words, folder=folder)


@contextmanager
def forking_python(imports: str) -> Iterator[Callable[[str, Path], subprocess.CompletedProcess[str]]]:
    """Start an interpreter that raises on warnings and imports modules; give what runs a program in a folder.

    Each program runs in a fork of that interpreter, since the imports take longer than most programs.
    """
    command = [sys.executable, "-W", "error", "-c", _FORK_EACH.format(imports=imports)]
    with subprocess.Popen(  # noqa: S603 - our own interpreter
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as interpreter:
        assert interpreter.stdin
        assert interpreter.stdout
        orders, ends = interpreter.stdin, interpreter.stdout

        def run(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
            print(json.dumps([program, str(folder)]), file=orders, flush=True)
            code = int(ends.readline())
            output, errors = ((folder / name).read_text(encoding="utf-8") for name in ("output", "errors"))
            return subprocess.CompletedProcess(command, code, output, errors)

        yield run
        orders.close()
