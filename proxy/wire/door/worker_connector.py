"""The connections of a door with its workers."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, final

from ....model.errors import RequestError
from ...si import licorne_v1_pb2 as v1
from ...si.build_hash import build_hash
from ..client.errors import ConnectionLostError
from ..client.remote_scheduler import RemoteScheduler
from .worker_checks import check_build, unusable_worker
from .workers import LaunchedWorker

_CONNECT_SECONDS: Final = 20.0
"""How long a worker may take to listen, and to answer a call."""


@final
class WorkerConnector:
    """Makes sessions with workers; each says which door it is of, and when that was started.

    Args:
        token: The bearer token of the workers, if they want one.
        tls: The files with the authorities that vouch for them, a client certificate, and its key.
        note_failure: Gets the id of a resource manager, the name of a callback, and what failed there.
    """

    def __init__(
        self,
        token: str | None,
        tls: tuple[Path | None, Path | None, Path | None],
        note_failure: Callable[[str, str, BaseException], object],
    ) -> None:
        self._token = token
        self._tls = tls
        self._note_failure = note_failure
        self._build = build_hash()
        self._door = v1.DoorStart(
            epoch=time.time_ns(), name=f"process {os.getpid()} on {socket.gethostname()}"
        )
        """Workers refuse a door that is older than the one that has registered a resource manager last."""

    def __call__(self, worker: LaunchedWorker, on_lost: Callable[[RequestError], object]) -> RemoteScheduler:
        """Return a session with a worker.

        Raises:
            LicorneError: It cannot be reached, or refuses the session.
        """
        root_certificates, certificate, key = self._tls
        try:
            scheduler = RemoteScheduler(
                worker.address,
                token=worker.token or self._token,
                root_certificates=root_certificates,
                certificate=certificate,
                key=key,
                on_error=lambda failure: self._note_failure(failure.rm_id, failure.callback, failure.error),
                timeout=_CONNECT_SECONDS,
                send_timeout_seconds=0,
                on_lost=on_lost,
                door=self._door,
                has_listened=worker.has_listened,
            )
        except ConnectionLostError as error:
            with_tls = root_certificates is not None or certificate is not None
            raise unusable_worker(worker, error, with_tls=with_tls) from error
        try:
            check_build(worker, scheduler.server_version, scheduler.server_build, self._build)
        except BaseException:
            scheduler.stop()
            raise
        return scheduler
