"""The servers of Kubernetes as programs: where they are kept, and how they are built.

No package of Debian or of PyPI brings a kube-apiserver, but its modules are published, and an ordinary
`go build` makes the program of `tests/cluster/` of them. That takes about 17 minutes of a processor on a new
machine, so the result is kept outside the checkout, under a key of all that it is made of.

    PYTHONPATH=tests .venv/bin/python -m support.kubernetes.building    # `make cluster` runs this
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MODULE = Path(__file__).parents[2] / "cluster"
SERVERS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
_VERSION = "v1.37.2"  # what the servers call themselves: clients compare it with their own
_SETTINGS = {
    "gitVersion": _VERSION,
    "gitMajor": "1",
    "gitMinor": "37",
}


class UnbuiltError(Exception):
    """The servers cannot be started on this machine; the message says what is missing, and how to get it."""


def cache_folder() -> Path:
    """Return the folder of all builds on this machine; `LICORNE_CLUSTER_CACHE` names another one."""
    return Path(os.environ.get("LICORNE_CLUSTER_CACHE") or Path.home() / ".cache/licorne/cluster")


def build_folder() -> Path:
    """Return the folder of the servers as this checkout describes them, whether they are built or not.

    Raises:
        UnbuiltError: Go is not installed, whose version is a part of the folder's name.
    """
    go = shutil.which("go")
    if go is None:
        raise UnbuiltError("the servers of Kubernetes need Go to be built, and `go` is not on the path")
    command = [go, "env", "GOVERSION"]
    version = subprocess.run(command, cwd=MODULE, check=True, capture_output=True).stdout  # noqa: S603 - no shell
    digest = hashlib.sha256(version)
    for name in ("go.mod", "go.sum", "main.go"):
        digest.update((MODULE / name).read_bytes())
    return cache_folder() / digest.hexdigest()[:16]


def built_servers() -> Path:
    """Return the folder in which the servers lie ready, under the names of `SERVERS`.

    Raises:
        UnbuiltError: They were not built.
    """
    folder = build_folder()
    if not folder.is_dir():
        raise UnbuiltError(f"the servers of Kubernetes are not in {folder}: `make cluster` builds them")
    return folder


def build() -> Path:
    """Build the servers unless they are there, and return their folder.

    They are built beside it, and the folder gets its name when it is complete. Who finds another build in
    progress waits for it.

    Raises:
        UnbuiltError: Go is not installed.
        subprocess.CalledProcessError: Go refused; what it says went to standard error.
    """
    folder = build_folder()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            with tempfile.TemporaryDirectory(dir=folder.parent, prefix="unfinished-") as room:
                unfinished = Path(room) / folder.name
                _build_into(unfinished)
                unfinished.rename(folder)
    return folder


def _build_into(folder: Path) -> None:
    folder.mkdir()
    first, *others = (folder / name for name in SERVERS)
    stamps = [f"-X k8s.io/component-base/version.{name}={value}" for name, value in _SETTINGS.items()]
    subprocess.run(  # noqa: S603 - no shell
        [
            *("go", "build", "-mod=readonly", "-buildvcs=false", "-trimpath", "-p", "2"),
            *("-ldflags", " ".join(["-s", "-w", *stamps]), "-o", str(first), "."),
        ],
        cwd=MODULE,
        env=os.environ | {"CGO_ENABLED": "0"},
        check=True,
    )
    for other in others:
        other.hardlink_to(first)


def main() -> None:
    """Build what is missing, and say where it lies and how long it took."""
    start = time.monotonic()
    try:
        folder = build()
    except UnbuiltError as error:
        sys.exit(str(error))
    print(f"the servers of Kubernetes {_VERSION} are in {folder} ({time.monotonic() - start:.0f} s)")  # noqa: T201


if __name__ == "__main__":
    main()
