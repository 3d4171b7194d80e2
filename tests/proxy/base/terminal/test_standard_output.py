"""Every command with an output that cannot be written to: in processes of their own, as a user meets it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Final

import pytest
from support.waiting import PROGRAM_SECONDS

ROOT: Final = Path(__file__).parents[4]
DAILY: Final = str(ROOT / "examples" / "daily.yaml")
LIFE: Final = str(ROOT / "tests" / "conformance" / "app-states" / "life.jsonl")
FULL: Final = Path("/dev/full")

COMMANDS: Final = {
    "version": ["--version"],
    "help": ["simulate", "--help"],
    "replay": ["replay", LIFE],
    "simulate": ["simulate", DAILY],
    "validate": ["validate", "--json", DAILY],
    "explain": ["explain", "app1", "--input", LIFE],
    "dry-run": ["dry-run", "--input", DAILY, "--user", "u", "--queue", "root.batch", "--at", "0"],
    "lockcheck": ["lockcheck", "--help"],
}


def run(
    *arguments: str,
    output: int | IO[bytes] | None = subprocess.PIPE,
    variables: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Run the command line with some standard output."""
    kept = {"PYTHONPATH"}  # It says which build is tested.
    environment = {
        key: value for key, value in os.environ.items() if key in kept or not key.startswith("PYTHON")
    }
    return subprocess.run(  # noqa: S603 - our own program, by our own interpreter
        [sys.executable, "-m", "licorne", *arguments],
        stdout=output,
        stderr=subprocess.PIPE,
        env=environment | dict(variables or {}),
        timeout=PROGRAM_SECONDS,
        check=False,
    )


@pytest.mark.skipif(not FULL.exists(), reason="there is no disk that is always full here")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_full_disk_is_an_ordinary_error(command: str) -> None:
    """One line on standard error, no traceback, and the status of what cannot be done."""
    with FULL.open("wb") as output:
        ended = run(*COMMANDS[command], output=output)

    assert (2, 1) == (ended.returncode, len(ended.stderr.splitlines()))
    assert ended.stderr.endswith(b": No space left on device\n")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_closed_pipe_ends_a_command_silently(command: str) -> None:
    """As with `| head -1`, when `head` has gone: with the status of a program that SIGPIPE ends."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        ended = run(*COMMANDS[command], output=writer)
    finally:
        os.close(writer)

    assert (141, b"") == (ended.returncode, ended.stderr)


def test_a_pipe_that_is_closed_late_ends_a_command_silently(tmp_path: Path) -> None:
    """Something was read, and the rest of a long output is not."""
    path = tmp_path / "long.jsonl"
    path.write_text('{"schedule": 1}\n' * 20_000, encoding="utf-8")
    with subprocess.Popen(  # noqa: S603 - our own program, by our own interpreter
        [sys.executable, "-m", "licorne", "replay", str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        first = json.loads(process.stdout.readline())
        process.stdout.close()
        said = process.stderr.read()

    assert {"line": 1, "scheduled": 0} == first
    assert (141, b"") == (process.returncode, said)


@pytest.mark.parametrize("arguments", ["'$0' -m licorne --version >&-", "'$0' -m licorne replay - <&-"])
def test_a_stream_that_is_closed_from_the_start_is_an_ordinary_error(arguments: str) -> None:
    """A shell may start a program without one."""
    ended = subprocess.run(  # noqa: S603 - our own program, by our own interpreter
        ["/bin/sh", "-c", arguments.replace("'$0'", '"$0"'), sys.executable],
        capture_output=True,
        timeout=PROGRAM_SECONDS,
        check=False,
    )

    assert (2, 1) == (ended.returncode, len(ended.stderr.splitlines()))
    assert b" is closed\n" in ended.stderr


@pytest.mark.skipif(not FULL.exists(), reason="there is no disk that is always full here")
def test_an_error_that_cannot_be_said_is_in_the_status_still() -> None:
    """Both streams go to the full disk."""
    with FULL.open("wb") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "licorne", "replay", "/nowhere"],
            stdout=full,
            stderr=full,
            timeout=PROGRAM_SECONDS,
            check=False,
        )

    assert 2 == ended.returncode


def test_characters_that_an_encoding_lacks_are_escaped_as_json_does(tmp_path: Path) -> None:
    """A document in a narrow encoding stays one, with names of files that are no text in it."""
    name = os.fsencode(tmp_path) + b"/\xc3\xa9\xf0\x9f\xa6\x84\xff.yaml"
    Path(os.fsdecode(name)).write_text("partitions: []\n", encoding="utf-8")

    ended = run("validate", "--json", os.fsdecode(name), variables={"PYTHONIOENCODING": "ascii"})

    assert (0, b"") == (ended.returncode, ended.stderr)
    assert os.fsdecode(name) == json.loads(ended.stdout)[0]["file"]


def test_the_package_is_a_command_and_says_its_version_and_build() -> None:
    """As `licorne` is, and in the words of the package."""
    from licorne import __version__
    from licorne.proxy.base.process import build_name

    ended = run("--version")

    said = f"licorne {__version__} ({build_name()})\n".encode()
    assert (0, said, b"") == (ended.returncode, ended.stdout, ended.stderr)


def test_help_has_no_frames_in_a_pipe() -> None:
    """They are for people at a terminal."""
    ended = run("--help")

    assert 0 == ended.returncode
    assert b"simulate" in ended.stdout
    assert ended.stdout.isascii()
