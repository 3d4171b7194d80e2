"""The processes of workers on this machine, found by what Linux says of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def is_alive(pid: int) -> bool:
    """Return whether there is such a process, not counting one that only waits to be reaped."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def pid_listening_at(address: str) -> int:
    """Return the process that listens on the port of an address."""
    port = f"{int(address.rpartition(':')[2]):04X}"
    wanted = {f"socket:[{inode}]" for inode in _listening(port)}
    for entry in Path("/proc").glob("[0-9]*/fd/*"):
        with suppress(OSError):  # It has just ended.
            if str(entry.readlink()) in wanted:
                return int(entry.parts[2])
    raise AssertionError(f"nobody listens on {address}")


def _listening(port: str) -> Iterator[str]:
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text(encoding="ascii").splitlines()[1:]:
            words = line.split()
            if words[1].endswith(f":{port}") and words[3] == "0A":
                yield words[9]


def public_workers() -> set[int]:
    """Return the processes that serve without TLS on an address for others, as workers of Ray do here."""
    found = set()
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            words = entry.read_bytes().split(b"\0")
            if b"serve" in words and b"--until-stdin-closes" in words and b"--insecure-public" in words:
                found.add(int(entry.parts[2]))
    return found
