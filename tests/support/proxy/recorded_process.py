"""A process that schedules under load, is recorded, and writes what its resource manager hears to its output.

It runs until it is killed: `python recorded_process.py FOLDER`.
"""

from __future__ import annotations

import os
import sys
from itertools import count
from pathlib import Path

from support.proxy.manager_requests import (
    ONE,
    application_request,
    ask_request,
    node_request,
    release_request,
)
from support.proxy.recorded_traffic import JudgingHearing

from licorne import Recording, Scheduler


class WritingHearing(JudgingHearing):
    """Writes each callback before it returns."""

    def keep(self, callback: str) -> None:
        os.write(1, callback.encode() + b"\n")


def main(folder: Path) -> None:
    """Ask and release for ever."""
    with Scheduler(record=Recording(folder, rotate_bytes=20_000)) as scheduler:
        scheduler.register("rm", WritingHearing(), configuration=ONE)
        scheduler.update_node(node_request(*(f"n{number}" for number in range(20)), memory=1_000))
        scheduler.update_application(application_request("app"))
        for number in count():
            scheduler.update_allocation(ask_request(*(f"k{number}-{part}" for part in range(5)), memory=7))
            if number > 5:
                scheduler.update_allocation(release_request(f"k{number - 5}-0"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
