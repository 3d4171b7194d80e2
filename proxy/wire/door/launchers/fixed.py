"""Workers at addresses that do not change: systemd, Kubernetes or an operator starts them."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Final, final

from .....model.errors import LicorneError
from ....si.arguments import check_texts
from ...server.access import Address, read_address
from ..workers import GrowingPauses, LaunchedWorker, LaunchError

_FORM: Final = "expected PARTITION=HOST:PORT,..., for example batch=10.0.0.7:3333,default=[fd00::7]:3333"


@final
class FixedLauncher:
    """A launcher for workers at known addresses; it does not start or end any process.

    Args:
        addresses: The address `HOST:PORT` of each partition's worker, see `read_worker_addresses`.
    """

    def __init__(self, addresses: Mapping[str, str]) -> None:
        check_texts("addresses", addresses)
        self._addresses = dict(addresses)
        self._pauses = GrowingPauses()
        self._lock = threading.Lock()
        self._counts: dict[str, int] = {}
        """The number of workers that each partition has had."""

    def start(self, partition: str, given_up: threading.Event) -> LaunchedWorker:
        """Return the worker of a partition; its address is always the same.

        If it was lost soon after the last call, there is a pause first, see `GrowingPauses`.

        Raises:
            LaunchError: The partition has no address; the text names those with one.
            LicorneError: The start was given up.
        """
        address = self._addresses.get(partition)
        if address is None:
            named = ", ".join(sorted(self._addresses)) or "none"
            raise LaunchError(f"partition {partition!r} has no worker: --workers names {named}")
        self._pauses.wait(partition, given_up)
        self._pauses.started(partition)
        with self._lock:
            number = self._counts[partition] = self._counts.get(partition, 0) + 1
        return LaunchedWorker(partition, address, number)

    def lost(self, worker: LaunchedWorker) -> None:
        """Note that the next `start` may have to wait."""
        self._pauses.failed(worker.partition)

    def stop(self) -> None:
        """Do nothing: others end the workers."""


def read_worker_addresses(text: str) -> dict[str, str]:
    """Read `PARTITION=HOST:PORT,...`: the address at which the worker of each partition serves `licorne.v1`.

    Each partition has its own worker: a resource manager registers at a worker once, with one partition.

    Raises:
        LicorneError: The text has another form, or has a partition or an address twice; the error quotes it.
    """
    found: dict[str, Address] = {}
    for part in text.split(","):
        partition, equals, where = (piece.strip() for piece in part.partition("="))
        if not equals or not partition:
            raise LicorneError(f"--workers: {_FORM}, got {part.strip()!r}")
        try:
            address = read_address(where)
        except LicorneError as error:
            raise LicorneError(f"--workers: partition {partition!r}: {error}") from error
        if address.port == 0:
            raise LicorneError(f"--workers: partition {partition!r}: {where!r} has no port to connect to")
        if partition in found:
            raise LicorneError(f"--workers: partition {partition!r} is given twice")
        for other, taken in found.items():
            if taken == address:
                raise LicorneError(
                    f"--workers: the partitions {other!r} and {partition!r} have the same address {address}: "
                    "each partition needs a separate worker"
                )
        found[partition] = address
    return {partition: str(address) for partition, address in found.items()}
