"""Where the API server is, how it is recognised, and who the program is for it."""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from ...base.files.input_errors import InputError
from ...base.files.input_files import read_text
from .errors import CredentialError
from .identities import Identity, Secret, TokenFileIdentity

SERVICE_ACCOUNT_FOLDER: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where a pod finds the token of its service account."""


@final
@dataclass(frozen=True, slots=True)
class Credentials:
    """How to speak with one API server.

    Attributes:
        server: Its address, for example `https://10.96.0.1:443`, with a path if a proxy needs one.
        identity: Where token and certificate come from.
        namespace: The namespace that the program works in unless it names another.
        authorities: The authorities that sign the server's certificate, PEM; `None` for those of the system.
        verifies_server: Whether the server's certificate is checked. urllib3 warns where it is not.
        tls_name: The name in the server's certificate, if it is not that of the address.
    """

    server: str
    identity: Identity
    namespace: str = "default"
    authorities: str | None = None
    verifies_server: bool = True
    tls_name: str | None = None


def in_cluster_credentials(
    environment: Mapping[str, str] = os.environ, folder: Path = SERVICE_ACCOUNT_FOLDER
) -> Credentials | None:
    """Return the credentials of the pod that the program runs in, `None` outside a pod.

    Args:
        environment: Variables of the environment: `KUBERNETES_SERVICE_HOST` and `KUBERNETES_SERVICE_PORT`.
        folder: Where the service account is.

    Raises:
        InputError: A file of the service account is there and cannot be read.
    """
    host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT")
    token = folder / "token"
    if not host or not port or not token.exists():
        return None
    authorities = read_text(folder / "ca.crt")
    if "-----BEGIN " not in authorities:
        raise InputError(folder / "ca.crt", "there is no certificate in it")
    namespace = folder / "namespace"
    return Credentials(
        f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        TokenFileIdentity(token),
        read_text(namespace).strip() if namespace.exists() else "default",
        authorities,
    )


def ssl_context(credentials: Credentials, secret: Secret) -> ssl.SSLContext:
    """Return how TLS is spoken with a server.

    Raises:
        CredentialError: Authorities, certificate or key are no PEM, or do not belong together.
    """
    try:
        context = ssl.create_default_context(cadata=credentials.authorities)
    except ssl.SSLError as error:
        raise CredentialError(f"the authorities of {credentials.server}: {_openssl(error)}") from error
    if not credentials.verifies_server:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if secret.certificate is not None and secret.key is not None:
        _load_pair(context, secret.certificate, secret.key)
    return context


def _load_pair(context: ssl.SSLContext, certificate: str, key: str) -> None:
    """Load a certificate and its key; OpenSSL takes them from a file alone."""
    with tempfile.TemporaryDirectory(prefix="licorne-") as folder:
        pair = Path(folder) / "pair.pem"
        pair.touch(mode=0o600)
        pair.write_text(f"{certificate}\n{key}\n", encoding="utf-8")
        try:
            context.load_cert_chain(pair, password="")
        except ssl.SSLError as error:
            text = "the client's certificate and its key, without a password"
            raise CredentialError(f"{text}, cannot be used: {_openssl(error)}") from error


def _openssl(error: Exception) -> str:
    """Return what OpenSSL says, without the place in its source."""
    return str(error).partition(" (_ssl.c")[0]
