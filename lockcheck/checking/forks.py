"""Locks that a child of a fork takes: a thread that has one of them at the fork is not there to release it.

What the other threads of the parent took, as far as their last steps are known, is noted before each fork.
If the child takes such a lock without a limit, that is a finding, unless the thread that forks had the lock,
or the child made it anew. It does not matter that the lock happened to be free. That is the rule of lockdep.

The child writes the finding to a file that it shares with its parent, which the session of the parent reads.
"""

from __future__ import annotations

import io
import os
import pickle
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, final

from ..findings.findings import Finding, finding_text, fingerprint_of, place_text
from ..findings.terms import Kind, Level, LockCheckError, Rung
from ..holding.chains import Execution, TrieNode, held_nodes
from ..holding.runtime import fails_open, local, nodes_of, runtime
from .policy import edges_of_both
from .watch import Watch, current

_MADE_ANEW: Final = frozenset({"_global_shutdown_lock"})
"""Locks of the standard library that it makes anew in a child, by the plain locks inside of them."""
_WHY: Final = (
    "only the thread that forks goes on in the child: what another one holds is never released there",
    "take no lock between fork and exec, start processes by `spawn`, or make the lock anew in the child",
)


@dataclass(frozen=True, slots=True)
class _Taken:
    """A lock that another thread took before a fork."""

    node: TrieNode
    is_held: bool


_noted: Final[dict[int, _Taken]] = {}
"""What other threads took before the fork that goes on now, by the number of the lock."""
_left: Final[dict[int, _Taken]] = {}
"""The same in a child, as long as it has not taken the lock."""


@final
class SharedFile:
    """A file that a process shares with the children of its forks, which write findings to it."""

    def __init__(self) -> None:
        with tempfile.TemporaryFile() as file:
            self._file: Final = os.dup(file.fileno())
        self._process: Final = os.getpid()
        self._status: Final = os.fstat(self._file)
        self._read = 0

    @fails_open(None)
    def __del__(self) -> None:
        if self._is_open():
            os.close(self._file)

    def _is_open(self) -> bool:
        """Return whether it is: a process may close all files that it was born with, and open others."""
        with suppress(OSError):
            return os.path.samestat(self._status, os.fstat(self._file))
        return False

    def write(self, finding: Finding) -> None:
        """Write a finding, if the file is open."""
        if self._is_open():
            os.write(self._file, pickle.dumps(finding))

    def read(self) -> list[Finding]:
        """Return what children have written since the last call; nothing in a child."""
        found: list[Finding] = []
        if self._process == os.getpid() and self._is_open():
            size = os.fstat(self._file).st_size - self._read
            written = io.BytesIO(os.pread(self._file, size, self._read))
            while written.tell() < size:
                found.append(pickle.load(written))  # noqa: S301 - only the children can open it
            self._read += size
        return found


def _note() -> None:
    """Note before a fork what other threads have taken."""
    _noted.clear()
    watch = current()
    if watch is not None and watch.policy.level >= Level.FULL and not watch.policy.order_disabled:
        watch.guarded_on(local.execution, lambda: _note_others(watch, local.execution), lambda: None)


def _note_others(watch: Watch, mine: Execution) -> None:
    for other in list(runtime.running.values()):
        if other is not mine:
            _noted.update((serial, _Taken(node, is_held=False)) for serial, node in _locks(nodes_of(other)))
            _noted.update(
                (serial, _Taken(node, is_held=True)) for serial, node in _locks(held_nodes(other.node))
            )
    if _noted and watch.children is None:
        watch.children = SharedFile()


def _locks(nodes: Iterable[TrieNode]) -> Iterator[tuple[int, TrieNode]]:
    """Yield the locks that one thread alone can hold, by number, and where they were taken."""
    for node in nodes:
        lock = node.acquisition.lock if node.acquisition is not None else None
        if lock is None or not lock.alive or lock.answers or lock.ends or (lock.permits or 1) > 1:
            continue
        if lock.name not in _MADE_ANEW:
            yield lock.serial, node


@fails_open(None)
def _forked() -> None:
    """Begin to look at what the child takes."""
    _left.clear()
    _left.update(_noted)
    for node in held_nodes(local.execution.node):
        if node.acquisition is not None:
            made_anew(node.acquisition.lock.serial)
    if _left:
        cut = runtime.cut_tries()
        del cut  # keys of locks may have finalizers


def made_anew(serial: int) -> None:
    """Note that a lock is free in a child, also where a function of another module runs first there."""
    _noted.pop(serial, None)
    _left.pop(serial, None)


def check_fork(watch: Watch, node: TrieNode) -> None:
    """Check an acquisition in a child of a fork against those in its parent.

    Raises:
        DeadlockPossibleError: that is the policy for what was found.
    """
    wanted = node.acquisition
    if not _left or wanted is None or wanted.attempt != "block":
        return
    taken = _left.pop(wanted.lock.serial, None)
    acquisition = taken.node.acquisition if taken is not None else None
    if taken is None or acquisition is None or wanted.mode == acquisition.mode == "R":
        return
    parent, had = taken.node.execution.name, "had" if taken.is_held else "may have had"
    edges = edges_of_both(
        acquisition, wanted, holder=parent, hold_stack=taken.node.stack,
        execution=f"a fork of {node.execution.name}", stack=node.stack,
    )  # fmt: skip
    places = place_text(edges[0].hold_stack), place_text(edges[1].want_stack)
    finding = Finding(
        Rung.R2,
        Kind.FORK,
        f"{wanted} is taken in a forked process, and {parent} {had} it at the fork",
        edges,
        _WHY,
        fingerprint=fingerprint_of("fork", wanted.lock.name, *places),
    )
    if watch.children is not None:
        watch.children.write(finding)
    if taken.is_held:  # the child waits for ever
        watch.tell(finding, finding_text(finding, watch.graph.site_counts()))
    watch.report(finding)


@fails_open(None)
def hear_children(watch: Watch) -> None:
    """Note what children of forks have found."""
    for finding in watch.children.read() if watch.children is not None else ():
        error = watch.act_on(watch.note(finding))
        if isinstance(error, LockCheckError):
            watch.deferred.append(error)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_note, after_in_parent=_noted.clear, after_in_child=_forked)
