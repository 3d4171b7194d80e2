"""Threads of the simulator that may change also between two bytecodes.

A race that needs a change at one certain place in a million is met here within some hundred seeds, on any
interpreter, and met again with the same seed.
"""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Callable, Collection
from types import FrameType
from typing import TYPE_CHECKING, Final

from licorne.proxy.fuzz.thread_control import RandomPicker, ThreadControl

if TYPE_CHECKING:
    from _typeshed import TraceFunction

__all__ = ["BytecodeControl"]

_POINTS_MAX: Final = 1_000_000


class BytecodeControl:
    """One run of some functions at the same time.

    Args:
        seed: Decides who runs next.
        files: Where each bytecode is a point; elsewhere only locks and queues are.
        chance: How likely another thread goes on at a point.
    """

    def __init__(self, seed: int, files: Collection[str], *, chance: float = 0.1) -> None:
        self._files = frozenset(files)
        self._errors: list[BaseException] = []
        picker = RandomPicker(random.Random(seed), chance)  # noqa: S311 - it plays, and keeps no secret
        self.control = ThreadControl(picker, points_max=_POINTS_MAX, on_error=self._errors.append)

    def run(self, *parts: Callable[[], None]) -> None:
        """Run functions to their ends, each on a thread, and raise the first error of any."""

        def main() -> None:
            threads = [threading.Thread(target=self._traced, args=(part,), daemon=True) for part in parts]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

        self.control.run(main)
        if self._errors:
            raise self._errors[0]

    def _traced(self, part: Callable[[], None]) -> None:
        sys.settrace(self._trace)
        try:
            part()
        finally:
            sys.settrace(None)

    def _trace(self, frame: FrameType, event: str, _argument: object) -> TraceFunction | None:
        """Follow a thread's frames, as `sys.settrace` has it."""
        if event == "call":
            if frame.f_code.co_filename not in self._files:
                return None
            frame.f_trace_opcodes = True
        elif event in ("opcode", "line"):
            self.control.point()
        return self._trace
