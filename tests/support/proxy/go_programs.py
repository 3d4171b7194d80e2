"""The programs in `tests/interop/go`, built with the code of the messages that protoc makes for Go."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

_ROOT: Final = Path(__file__).parents[3]
SOURCES: Final = _ROOT / "tests" / "interop" / "go"
OLDER_PROTO: Final = SOURCES / "proto" / "older.proto"
_PROTOS: Final = {"si": _ROOT / "proxy" / "si" / "si.proto", "oldersi": OLDER_PROTO}
"""The sources of the messages, by the package of Go that they become."""
_LOCK: Final = _ROOT / ".cache" / "go-build.lock"
_PLUGINS: Final = {
    "go": "google.golang.org/protobuf/cmd/protoc-gen-go",
    "go-grpc": "google.golang.org/grpc/cmd/protoc-gen-go-grpc",
}


def has_go() -> bool:
    """Return whether Go is installed."""
    return shutil.which("go") is not None


def build(folder: Path) -> Path:
    """Build the programs in an empty folder; return the folder in which they are.

    They are vetted, their layout is checked, and their own tests run. The first time Go loads modules, and
    compiles gRPC: that takes a minute or two.

    Raises:
        AssertionError: A step failed; the text has what it said.
    """
    module, programs = folder / "module", folder / "bin"
    shutil.copytree(SOURCES, module)
    _LOCK.parent.mkdir(exist_ok=True)
    with _LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # Two at once would compile everything twice.
        _go(module, "build", "-o", f"{programs}/", *_PLUGINS.values())
        for package, source in _PROTOS.items():
            _generate(source, package, module, programs)
        _go(module, "vet", "./...")
        _go(module, "test", "./wire")
        _go(module, "build", "-o", f"{programs}/", "./current", "./older")
    assert "" == _run(["gofmt", "-l", "current", "older", "wire"], module), "these are not formatted by gofmt"
    return programs


def _generate(source: Path, package: str, module: Path, programs: Path) -> None:
    """Have protoc write the code of one source into a package of the module."""
    folder = module / package
    folder.mkdir()
    name = f"licorne.test/interop/{package}"
    command = [sys.executable, "-m", "grpc_tools.protoc", f"--proto_path={source.parent}", source.name]
    for plugin, path in _PLUGINS.items():
        command += [
            f"--plugin=protoc-gen-{plugin}={programs / Path(path).name}",
            f"--{plugin}_out={folder}",
            f"--{plugin}_opt=paths=source_relative,M{source.name}={name}",
        ]
    _run(command, module)


def _go(module: Path, *arguments: str) -> None:
    # No toolchain is loaded beside the one that is there, and no version control is asked.
    _run(["go", *arguments], module, GOTOOLCHAIN="local", GOFLAGS="-buildvcs=false -mod=readonly")


def _run(command: list[str], folder: Path, **environment: str) -> str:
    """Run a command, and return what it said."""
    outcome = subprocess.run(  # noqa: S603 - our own commands
        command,
        cwd=folder,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert 0 == outcome.returncode, f"{' '.join(command)}\n{outcome.stdout}"
    return outcome.stdout
