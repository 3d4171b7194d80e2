"""How a client reaches its server: the address, TLS and the token."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

import grpc

from ...model.errors import LicorneError
from .connection import Connection

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ..si import licorne_v1_pb2 as v1

__all__ = ["Transport"]


@final
class Transport:
    """What is needed to connect, as often as it is needed; files are read once.

    Raises:
        LicorneError: A file cannot be read, or only one of certificate and key is given.
    """

    def __init__(
        self,
        address: str,
        token: str | None,
        root_certificates: Path | None,
        certificate: Path | None,
        key: Path | None,
    ) -> None:
        self.address = address
        self._metadata = [] if token is None else [("authorization", f"Bearer {token}")]
        if (certificate is None) != (key is None):
            raise LicorneError("a client certificate and its key belong together: only one of them is given")
        self._credentials: grpc.ChannelCredentials | None = None
        if root_certificates is not None or certificate is not None:
            self._credentials = grpc.ssl_channel_credentials(
                _content(root_certificates), _content(key), _content(certificate)
            )

    def connect(
        self,
        receive: Callable[[v1.SchedulerMessage], None],
        on_lost: Callable[[Connection], None],
        timeout: float,
    ) -> Connection:
        """Connect; see `Connection`.

        Raises:
            ConnectionLostError: The server cannot be reached.
            RequestError: It refuses the session.
        """
        return Connection(
            self.address,
            credentials=self._credentials,
            metadata=self._metadata,
            receive=receive,
            on_lost=on_lost,
            timeout=timeout,
        )


def _content(path: Path | None) -> bytes | None:
    """Return the content of a file, `None` for no file.

    Raises:
        LicorneError: It cannot be read.
    """
    if path is None:
        return None
    try:
        return path.read_bytes()
    except OSError as error:
        raise LicorneError(f"{path}: cannot be read: {error.strerror or error}") from error
