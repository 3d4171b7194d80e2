"""This process: its settings, which a program makes whose main work is a scheduler, and the build it runs.

A library must not change settings of the whole process: other parts of a program may have their own reasons.
So the commands of Licorne call these functions, and a program that embeds a scheduler may do the same, see
`docs/embedding.md`.

The build is pure Python, or has hot modules compiled by mypyc (docs/compiled.md). A hash of the source code
that decides identifies it, whatever its version is.
"""

from __future__ import annotations

import faulthandler
import gc
import hashlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

_SWITCH_SECONDS: Final = 0.001
_GARBAGE_AFTER: Final = 50_000


def prepare_process() -> None:
    """Set up this process for a scheduler.

    Threads take turns in the interpreter after 1 ms in place of 5: a scheduler and what waits for it, such
    as an event loop, would wait that long for each other. Cyclic garbage is looked for after 50,000 new
    objects in place of 700: a scheduler makes hardly any, and keeps much for long, so that looking for it
    takes up to half of its time. A crash in native code reports on stderr where each thread was.
    """
    if not faulthandler.is_enabled():
        faulthandler.enable()
    sys.setswitchinterval(_SWITCH_SECONDS)
    gc.set_threshold(_GARBAGE_AFTER)


@contextmanager
def collect_garbage_later() -> Iterator[None]:
    """Look for no cyclic garbage meanwhile: for a short work that makes many objects which are kept.

    Where it is off already it stays so. Of two threads in such a work the first one to end turns it on again.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


_PROBE: Final = f"{__package__.partition('.')[0]}.model.resources.resource"
"""A module that is compiled in every compiled build."""


@cache
def is_compiled() -> bool:
    """Return whether the hot modules of the model are machine code."""
    spec = find_spec(_PROBE)
    return spec is not None and spec.origin is not None and not spec.origin.endswith((".py", ".pyc"))


def build_name() -> str:
    """Return what the build is called: `pure Python` or `compiled`."""
    return "compiled" if is_compiled() else "pure Python"


_ROOMS: Final = ("model", "actors", "proxy/si")
"""The rooms that decide and that encode messages; compiled files have their sources next to them."""


@cache
def build_hash() -> str:
    """Return the hash of the sources that this process was started from; it is computed once."""
    return hash_of_sources(Path(__file__).parents[2])


def hash_of_sources(package: Path) -> str:
    """Return a hash of the names and texts of the sources below a package, empty if it has none."""
    digest = hashlib.sha256()
    files = sorted(
        (path.relative_to(package).as_posix(), path)
        for room in _ROOMS
        for path in package.joinpath(room).rglob("*.py")
    )
    for name, path in files:
        text = path.read_bytes().replace(b"\r\n", b"\n")
        digest.update(f"{name} {len(text)}\n".encode())
        digest.update(text)
    return digest.hexdigest()[:16] if files else ""
