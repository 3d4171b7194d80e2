"""Locks that are held for too long: reported while they are held, with the holder's place at that moment.

If a limit is set, a thread of its own checks what the executions hold, a few times within a limit. A hold is
reported once. The holder goes on: no error can be raised in the middle of its work.

Where the interpreter has no global lock the holder runs on meanwhile, and CPython crashes when one thread
walks the frames of another one that runs. So there only the place where the lock was taken is reported.
"""

from __future__ import annotations

import sys
import threading
from time import perf_counter_ns
from types import FrameType
from typing import Final, final

from ..findings.errors import LockUsageError
from ..findings.evidence import Kind, Rung
from ..findings.findings import Edge, Finding, fingerprint_of, place_text
from ..holding.chains import Acquisition, Execution, TrieNode, held_names, held_nodes
from ..holding.interpreter import has_global_lock
from ..holding.runtime import fails_open, runtime
from ..holding.stacks import capture, resolve
from .watch import Watch

ANY: Final = "*"
"""Stands for all classes that have no limit of their own."""

_CHECKS_PER_LIMIT: Final = 4
_PAUSE_SECONDS_MIN: Final = 0.001
_PAUSE_SECONDS_MAX: Final = 0.1
_START: Final = threading.Thread.start
_JOIN: Final = threading.Thread.join
"""The methods as they are while nothing is checked."""


@final
class HoldWatch:
    """Finds locks that are held longer than the limit of their class.

    Args:
        watch: takes the findings.
        seconds: the limits by class of locks.

    Raises:
        LockUsageError: a limit is not positive.
    """

    def __init__(self, watch: Watch, seconds: dict[str, float]) -> None:
        self._watch = watch
        self._seconds: dict[str, float] = {}
        for name, limit in seconds.items():
            self.limit(name, limit)
        self._reported: set[tuple[int, int]] = set()
        """Holds that were reported and go on: the lock, and since when."""
        self._stopped = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="lockcheck long holds", daemon=True)

    def limit(self, name: str, seconds: float) -> None:
        """Set the limit of a class of locks.

        Raises:
            LockUsageError: it is not positive.
        """
        if seconds <= 0:
            raise LockUsageError(f"{name} cannot be held for at most {seconds:g} s")
        self._seconds = {**self._seconds, name: seconds}

    @fails_open(None)
    def start(self) -> None:
        """Start the thread that checks."""
        self._stopped.acquire()
        _START(self._thread)

    @fails_open(None)
    def stop(self) -> None:
        """Stop the thread that checks, and wait for its end."""
        self._stopped.release()
        _JOIN(self._thread)

    def _run(self) -> None:
        while not self._stopped.acquire(timeout=self._pause()):
            self._watch.guarded(self._check_holds, lambda: None)

    def _pause(self) -> float:
        shortest = min(self._seconds.values()) / _CHECKS_PER_LIMIT
        return max(_PAUSE_SECONDS_MIN, min(shortest, _PAUSE_SECONDS_MAX))

    def _check_holds(self) -> None:
        going_on = set()
        for thread, execution in list(runtime.running.items()):
            for node in held_nodes(execution.node):
                since, acquisition = node.since, node.acquisition
                if acquisition is None or not since or not self._is_long(acquisition, since):
                    continue
                hold = acquisition.lock.serial, since
                if hold not in self._reported and not self._report(thread, execution, node, since):
                    continue
                going_on.add(hold)
        self._reported = going_on

    def _is_long(self, acquisition: Acquisition, since: int) -> bool:
        limit = self._limit_of(acquisition)
        return limit is not None and not acquisition.lock.answers and perf_counter_ns() - since > limit * 1e9

    def _limit_of(self, acquisition: Acquisition) -> float | None:
        return self._seconds.get(acquisition.lock.name, self._seconds.get(ANY))

    def _report(self, thread: int, execution: Execution, node: TrieNode, since: int) -> bool:
        """Report a hold, unless it has ended in the meantime; return whether it goes on."""
        stack = capture(_frame_of(thread)) if has_global_lock() else ()
        still = runtime.running.get(thread) is execution and any(
            one is node for one in held_nodes(execution.node)
        )
        if node.acquisition is None or not still or node.since != since:
            return False
        held = str(node.acquisition)
        limit = self._limit_of(node.acquisition)
        edge = Edge(
            execution=execution.name,
            held=held,
            wanted="None",
            all_held=held_names(execution.node),
            hold_stack=resolve(node.stack),
            want_stack=resolve(stack),
        )
        seconds = (perf_counter_ns() - since) / 1e9
        finding = Finding(
            Rung.R0,
            Kind.LONG_HOLD,
            f"{execution.name} has held {held} for {seconds:.3f} s and holds it still",
            (edge,),
            clause=f"{node.acquisition.lock.name} is held for at most {limit:g} s",
            fingerprint=fingerprint_of(
                Kind.LONG_HOLD.value,
                node.acquisition.lock.name,
                node.acquisition.mode,
                place_text(edge.hold_stack),
            ),
        )
        self._watch.report_elsewhere(finding)
        return True


def _frame_of(thread: int) -> FrameType | None:
    """Return the frame in which a thread is now, by its number."""
    return sys._current_frames().get(thread)  # noqa: SLF001 - the documented way to look at another thread
