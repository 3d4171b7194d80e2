"""The build of Licorne that runs: a hash of the source code that decides, whatever its version says."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Final

_ROOMS: Final = ("model", "actors", "proxy/si")
"""What decides and what is said on the wire; the files of compiled builds have their sources beside them."""


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
