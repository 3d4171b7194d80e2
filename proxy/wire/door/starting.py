"""Waits for the workers that partitions start with; one that does not start is tried again."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from typing import Final

from ....model.errors import LicorneError, ReplacedError, RequestError
from ...core.scheduler.answering.questions import UnavailableError
from .link import PartitionLink
from .workers import LaunchError, WorkerTable

_AGAIN_SECONDS: Final = 0.05
"""From a worker that has not started to the next try; launchers wait longer after several."""


def wait_until_started(links: Iterable[PartitionLink], what: str, seconds: float) -> None:
    """Wait until each partition has a worker.

    Args:
        links: The links of the partitions, which try again and again.
        what: What fails without a worker, for the errors.
        seconds: How long all may take together.

    Raises:
        RequestError: One can have none.
        UnavailableError: One has none in time, or its link was closed.
        ReplacedError: A newer door has registered the resource manager at one.
    """
    deadline = time.monotonic() + seconds
    for link in links:
        try:
            link.started.result(max(deadline - time.monotonic(), 0.0))
        except TimeoutError as error:
            raise _no_worker(what, link.partition, seconds, link.place.reason) from error
        except LicorneError as error:
            kinds = (UnavailableError, ReplacedError)
            kind = next((each for each in kinds if isinstance(error, each)), RequestError)
            raise kind(f"{what} failed: partition {link.partition!r}: {error}") from error


def start_worker(
    workers: WorkerTable, partition: str, given_up: threading.Event, what: str, seconds: float
) -> None:
    """Start the worker of a partition that is about to be new.

    Args:
        workers: The workers.
        partition: The partition.
        given_up: Set when the caller does not wait any longer.
        what: What fails without a worker, for the errors.
        seconds: How long to try.

    Raises:
        RequestError: There can be none.
        UnavailableError: There is none in time, or it was given up.
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            workers.worker_of(partition, given_up)
        except LaunchError as error:
            raise RequestError(f"{what} failed: {error}") from error
        except LicorneError as error:
            if given_up.wait(_AGAIN_SECONDS) or time.monotonic() >= deadline:
                raise _no_worker(what, partition, seconds, str(error)) from error
        else:
            return


def _no_worker(what: str, partition: str, seconds: float, why: str) -> UnavailableError:
    because = f": {why}" if why else ""
    return UnavailableError(
        f"{what} failed: partition {partition!r} has no worker within {seconds:g} s{because}"
    )
