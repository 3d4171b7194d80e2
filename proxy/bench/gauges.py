"""The gauges of a measurement: clocks, and the memory of this process.

They are handed in, so that the measuring code can be tested without time or memory of its own.
"""

from __future__ import annotations

import gc
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_STATM: Final = Path("/proc/self/statm")


def resident_bytes() -> int:
    """Return the memory this process occupies now.

    On a system without `/proc` this is the peak: differences are then too small rather than too large.
    """
    if not _STATM.exists():
        return peak_bytes()
    return int(_STATM.read_text(encoding="ascii").split()[1]) * resource.getpagesize()


def peak_bytes() -> int:
    """Return the most memory this process ever occupied."""
    unit = 1 if sys.platform == "darwin" else 1_024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauges:
    """The gauges that the measuring code reads; by default the real ones."""

    clock_seconds: Callable[[], float] = time.perf_counter
    cpu_seconds: Callable[[], float] = time.process_time
    sleep_seconds: Callable[[float], None] = time.sleep
    # Called before memory is read, so that garbage is not taken for something that is kept.
    collect_garbage: Callable[[], int] = gc.collect
    resident_bytes: Callable[[], int] = resident_bytes
    peak_bytes: Callable[[], int] = peak_bytes
