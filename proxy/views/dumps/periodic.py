"""State dumps in files, from time to time."""

from __future__ import annotations

import os
import shutil
import threading
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from time import time_ns
from typing import TYPE_CHECKING, Final, Self, final

from ....actors.services.log import Log
from ....model.errors import LicorneError
from .state_dump import state_dump_file

if TYPE_CHECKING:
    from ...core.scheduler.scheduler import Scheduler

DUMPS_KEPT: Final = 10
"""How many files are kept; the oldest one is removed for a new one."""
_PATTERN: Final = "licorne-state-*.json"
_UNFINISHED: Final = "licorne-state-*.unfinished"


@final
class PeriodicDumps:
    """Writes a state dump of one scheduler every so often; `with` starts and ends it.

    Args:
        scheduler: The scheduler; it is not stopped.
        folder: Where the files are; other files there are left alone.
        interval_seconds: From one dump to the next.

    Raises:
        LicorneError: the folder cannot be written to, or the interval is not above 0.
    """

    def __init__(self, scheduler: Scheduler, folder: Path, interval_seconds: float) -> None:
        if not interval_seconds > 0:
            raise LicorneError(
                f"an interval of {interval_seconds} seconds between state dumps is not above 0"
            )
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise LicorneError(f"no state dumps can be written to {folder}: {error}") from error
        if not os.access(folder, os.W_OK):
            raise LicorneError(f"no state dumps can be written to {folder}: it cannot be written to")
        for left in folder.glob(_UNFINISHED):  # By a process that was killed.
            with suppress(OSError):
                left.unlink()
        self._scheduler = scheduler
        self._folder = folder
        self._interval_seconds = interval_seconds
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="licorne-dumps", daemon=True)
        self._log = Log()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        self._thread.join()

    def write(self) -> Path:
        """Write a dump now; return its file. It gets its name when it is complete.

        Raises:
            RequestError: as for `state_dump`.
            OSError: the file cannot be written.
        """
        moment = datetime.fromtimestamp(time_ns() / 1e9, UTC).strftime("%Y%m%dT%H%M%S.%f")
        path = self._folder / f"licorne-state-{moment}.json"
        unfinished = path.with_suffix(".unfinished")
        try:
            with state_dump_file(self._scheduler) as source, unfinished.open("wb") as target:
                shutil.copyfileobj(source, target)
                target.flush()
                os.fsync(target.fileno())  # Else the new name may be on the disk before the text is.
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)
        # What is named after a later time was written before the clock was set back: it goes first.
        by_age = sorted(self._folder.glob(_PATTERN), key=lambda each: (each.name <= path.name, each.name))
        for old in by_age[:-DUMPS_KEPT]:
            old.unlink(missing_ok=True)
        return path

    def _run(self) -> None:
        while not self._closed.wait(self._interval_seconds):
            try:
                self.write()
            except (LicorneError, OSError) as error:
                self._log.warning("no state dump was written to {}: {}", self._folder, error)
