"""Settings of the whole process, which a program makes whose main work is a scheduler.

A library must not change them: other parts of a program may have reasons of their own. So the commands of
Licorne call these functions, and a program that embeds a scheduler may do the same, see `docs/embedding.md`.
"""

from __future__ import annotations

import faulthandler
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_SWITCH_SECONDS: Final = 0.001
_GARBAGE_AFTER: Final = 50_000


def prepare_process() -> None:
    """Set up this process for a scheduler.

    Threads take turns in the interpreter after 1 ms in place of 5: a scheduler and what waits for it, such
    as an event loop, would wait that long for each other. Cyclic garbage is looked for after 50,000 new
    objects in place of 700: a scheduler makes hardly any, and keeps much for long, so that looking for it
    takes up to half of its time. A crash in native code says on stderr where each thread was.
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
