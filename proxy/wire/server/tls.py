"""The credentials of a server: its certificate and key, and the authorities of its clients."""

from __future__ import annotations

import ssl
from pathlib import Path

import grpc

from ....model.errors import LicorneError

_PEM = b"-----BEGIN "


def server_credentials(
    certificate: Path | None, key: Path | None, client_authorities: Path | None
) -> grpc.ServerCredentials | None:
    """Return the credentials for TLS, `None` for a server without; files are PEM.

    With client authorities each client must have a certificate of one of them.

    Raises:
        LicorneError: A file is missing, cannot be read, has no PEM, or not what it is to have.
    """
    if certificate is None and key is None:
        if client_authorities is not None:
            raise LicorneError("--client-ca needs TLS: give --tls-cert and --tls-key, too")
        return None
    if certificate is None or key is None:
        raise LicorneError("--tls-cert and --tls-key belong together: only one of them is given")
    pair = (_pem(key), _pem(certificate))
    roots = None if client_authorities is None else _pem(client_authorities)
    _check(certificate, key, client_authorities)
    return grpc.ssl_server_credentials([pair], root_certificates=roots, require_client_auth=roots is not None)


def _check(certificate: Path, key: Path, client_authorities: Path | None) -> None:
    """Check what gRPC would only refuse when it listens, without a word about the file.

    Raises:
        LicorneError: A file has no certificate, or the key is not that of the certificate, or has a password.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(
            certificate, key, password=""
        )  # Without one OpenSSL would ask on the terminal.
    except ssl.SSLError as error:
        text = "expected a certificate and its key without a password"
        raise LicorneError(f"{certificate}, {key}: {text}: {_reason(error)}") from error
    if client_authorities is not None:
        try:
            context.load_verify_locations(client_authorities)
        except ssl.SSLError as error:
            raise LicorneError(f"{client_authorities}: expected certificates: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    """Return what OpenSSL says, without the place in its source."""
    return str(error).partition(" (_ssl.c")[0]


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
        raise LicorneError(f"{path}: no PEM: expected a line that begins with -----BEGIN")
    return content
