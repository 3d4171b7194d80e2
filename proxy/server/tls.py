"""The credentials of a server: its certificate and key, and the authorities of its clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

import grpc

from ...model.errors import LicorneError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["server_credentials"]

_PEM = b"-----BEGIN "


def server_credentials(
    certificate: Path | None, key: Path | None, client_authorities: Path | None
) -> grpc.ServerCredentials | None:
    """Return the credentials for TLS, `None` for a server without; files are PEM.

    With client authorities each client must have a certificate of one of them.

    Raises:
        LicorneError: A file is missing, cannot be read, or has no PEM.
    """
    if certificate is None and key is None:
        if client_authorities is not None:
            raise LicorneError("--client-ca needs TLS: give --tls-cert and --tls-key, too")
        return None
    if certificate is None or key is None:
        raise LicorneError("--tls-cert and --tls-key belong together: only one of them is given")
    return grpc.ssl_server_credentials(
        [(_pem(key), _pem(certificate))],
        root_certificates=None if client_authorities is None else _pem(client_authorities),
        require_client_auth=client_authorities is not None,
    )


def _pem(path: Path) -> bytes:
    """Return the content of a PEM file.

    Raises:
        LicorneError: It cannot be read, or has no PEM.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise LicorneError(f"{path}: cannot be read: {error.strerror or error}") from error
    if _PEM not in content:
        raise LicorneError(f"{path}: no PEM: a line that begins with -----BEGIN is wanted")
    return content
