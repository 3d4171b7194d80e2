"""Threads that run into a real deadlock, and which of them gave way."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from support.waiting import WAIT_SECONDS

from licorne.lockcheck import DeadlockError, Finding, Kind, Rung, session
from licorne.lockcheck.checking.policy import FindingAction
from licorne.lockcheck.sessions.session import Session

LEAVE_ALONE: Final[Mapping[Rung, FindingAction]] = {rung: "record" for rung in Rung if rung is not Rung.R5}


@contextmanager
def checked(level: str = "full") -> Iterator[Session]:
    """Check, break real deadlocks, and record everything else."""
    with session(level=level, on=LEAVE_ALONE) as opened:
        yield opened
    assert [] == opened.faults


def deadlocks(opened: Session) -> list[Finding]:
    """Return the real deadlocks that were found."""
    return [finding for finding in opened.findings if finding.rung is Rung.R5]


def found(opened: Session, *rungs: Rung) -> list[tuple[Rung, Kind]]:
    """Return what was found on some rungs."""
    assert [] == opened.faults
    return [(one.rung, one.kind) for one in opened.findings if one.rung in rungs]


@contextmanager
def heard(what: str) -> Iterator[threading.Event]:
    """Give an event that is set when the checker logs something."""
    event, logger = threading.Event(), logging.getLogger("lockcheck")

    class Handler(logging.Handler):
        """Sets it."""

        def emit(self, record: logging.LogRecord) -> None:
            if what in record.getMessage():
                event.set()

    handler = Handler()
    logger.addHandler(handler)
    try:
        yield event
    finally:
        logger.removeHandler(handler)


def run_all(**works: Callable[[], object]) -> list[str]:
    """Run each in a thread of its own, all to their end; return the names of those that gave way."""
    gave_way: list[str] = []

    def run(name: str, work: Callable[[], object]) -> None:
        try:
            work()
        except DeadlockError:
            gave_way.append(name)

    threads = [threading.Thread(target=run, args=pair, name=pair[0], daemon=True) for pair in works.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_SECONDS)
        assert not thread.is_alive(), f"{thread.name} never ends"
    return gave_way
