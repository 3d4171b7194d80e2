"""The address of the API server, how it is authenticated, and the identity of the program."""

from __future__ import annotations

import json
import os
import ssl
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final, Protocol, final

import msgspec

from ...base.files.input_files import InputError, read_text
from ..decoding import resolve_structs
from .errors import CredentialError

SERVICE_ACCOUNT_FOLDER: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""The folder in which a pod finds the token of its service account."""
_TOKEN_AGE_MAX_SECONDS: Final = 5.0
"""The maximum age of a token from a file before the file is read again."""
_PLUGIN_TIMEOUT_SECONDS: Final = 60.0


@final
@dataclass(frozen=True, slots=True)
class Credentials:
    """The address of an API server, and the means of authentication.

    Attributes:
        server: Its address, for example `https://10.96.0.1:443`, with a path if a proxy needs one.
        identity: The source of token and certificate.
        namespace: The namespace that the program uses by default.
        authorities: The authorities that sign the server's certificate, PEM; `None` for those of the system.
        verifies_server: Whether the server's certificate is checked. urllib3 warns where it is not.
        tls_name: The name in the server's certificate, if it differs from the address.
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
        folder: The folder of the service account.

    Raises:
        InputError: A file of the service account exists and cannot be read.
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
    """Return the TLS context for a server.

    Raises:
        CredentialError: Authorities, certificate or key are not PEM, or do not belong together.
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
    """Load a certificate and its key; OpenSSL takes them only from a file."""
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
    """Return the message of OpenSSL without the position in its source."""
    return str(error).partition(" (_ssl.c")[0]


@final
@dataclass(frozen=True, slots=True)
class Secret:
    """The authentication of a request. Certificate and key are PEM; both exist or neither."""

    token: str | None = field(default=None, repr=False)
    certificate: str | None = field(default=None, repr=False)
    key: str | None = field(default=None, repr=False)


class Identity(Protocol):
    """The source of the secret. Threads may share it."""

    def secret(self) -> Secret:
        """Return the present secret.

        Raises:
            InputError: A file cannot be read, and never could.
            CredentialError: A plugin has failed.
        """

    def renew(self, refused: Secret) -> bool:
        """Get another secret after the server has refused one; return whether there is another.

        Raises:
            CredentialError: A plugin has failed.
        """


@final
class FixedIdentity:
    """A secret that never changes."""

    def __init__(self, secret: Secret) -> None:
        self._secret = secret

    def secret(self) -> Secret:
        """Return the secret."""
        return self._secret

    def renew(self, refused: Secret) -> bool:
        """Return `False`: there is no other secret."""
        return refused != self._secret


@final
class TokenFileIdentity:
    """A token in a file, which another program replaces from time to time.

    Args:
        path: The file.
        fixed: Certificate and key in addition to the token, if any.
        now: The clock, seconds.
    """

    def __init__(
        self, path: Path, fixed: Secret = Secret(), now: Callable[[], float] = time.monotonic
    ) -> None:
        self._path = path
        self._fixed = fixed
        self._now = now
        self._lock = threading.Lock()
        self._secret: Secret | None = None
        self._read_at = 0.0

    def secret(self) -> Secret:
        """Return the token of the file, which is read again 5 seconds after the last reading.

        Raises:
            InputError: The file cannot be read, and never could.
        """
        with self._lock:
            if self._secret is None or self._now() - self._read_at >= _TOKEN_AGE_MAX_SECONDS:
                self._secret = self._read()
                self._read_at = self._now()
            return self._secret

    def renew(self, refused: Secret) -> bool:
        """Read the file again; return whether it has another token."""
        with self._lock:
            self._secret = self._read()
            self._read_at = self._now()
            return self._secret != refused

    def _read(self) -> Secret:
        try:
            return Secret(_token_in(self._path), self._fixed.certificate, self._fixed.key)
        except InputError:
            # While the file is being replaced, the last token remains valid.
            if self._secret is None:
                raise
            return self._secret


def _token_in(path: Path) -> str:
    """Return the token in a file."""
    token = read_text(path).strip()
    if not token:
        raise InputError(path, "there is no token in it")
    return token


@final
@dataclass(frozen=True, slots=True)
class ExecPlugin:
    """A program that prints credentials, as a kubeconfig describes it.

    Attributes:
        command: The program and its arguments.
        environment: All variables that it gets.
        api_version: `client.authentication.k8s.io/v1` or `…/v1beta1`.
        cluster: The document of the cluster for the plugin, `None` for none.
        install_hint: Instructions for a missing program.
    """

    command: tuple[str, ...]
    environment: Mapping[str, str]
    api_version: str
    cluster: Mapping[str, object] | None = None
    install_hint: str = ""


class _ExecStatus(msgspec.Struct, frozen=True, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: datetime | None = None


class _ExecCredential(msgspec.Struct, frozen=True, rename="camel"):
    """The output of a plugin."""

    api_version: str
    kind: str = ""
    status: _ExecStatus | None = None


@final
class ExecIdentity:
    """The credentials of a plugin, which runs again when they have expired or the server refuses them.

    Args:
        plugin: The plugin.
        now: The time of day, seconds since 1970.
    """

    def __init__(self, plugin: ExecPlugin, now: Callable[[], float] = time.time) -> None:
        self._plugin = plugin
        self._now = now
        self._lock = threading.Lock()
        self._secret: Secret | None = None
        self._expires_at: float | None = None

    def secret(self) -> Secret:
        """Return the credentials of the plugin; run it if they have expired.

        Raises:
            CredentialError: The plugin has failed.
        """
        with self._lock:
            expired = self._expires_at is not None and self._now() >= self._expires_at
            return self._run() if self._secret is None or expired else self._secret

    def renew(self, refused: Secret) -> bool:
        """Run the plugin again, unless another thread has done so since; always return `True`.

        Raises:
            CredentialError: The plugin has failed.
        """
        with self._lock:
            if self._secret is None or self._secret == refused:
                self._run()
            return True

    def _run(self) -> Secret:
        status = _run_plugin(self._plugin)
        self._secret = Secret(
            status.token or None, status.client_certificate_data or None, status.client_key_data or None
        )
        expires = status.expiration_timestamp
        self._expires_at = None if expires is None else expires.timestamp()
        return self._secret


def _run_plugin(plugin: ExecPlugin) -> _ExecStatus:
    """Run a plugin once.

    Raises:
        CredentialError: It is missing, fails, takes more than a minute, or prints no credentials.
    """
    spec: dict[str, object] = {"interactive": False}
    if plugin.cluster is not None:
        spec["cluster"] = plugin.cluster
    question = {"kind": "ExecCredential", "apiVersion": plugin.api_version, "spec": spec}
    try:
        done = subprocess.run(  # noqa: S603 - the user's own file names the program
            plugin.command,
            env={**plugin.environment, "KUBERNETES_EXEC_INFO": json.dumps(question)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PLUGIN_TIMEOUT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        hint = f"; {plugin.install_hint}" if plugin.install_hint else ""
        raise CredentialError(f"the plugin {plugin.command[0]!r} cannot be run: {error}{hint}") from error
    if done.returncode != 0:
        text = done.stderr.decode("utf-8", "replace").strip()
        raise CredentialError(f"the plugin {plugin.command[0]!r} ended with {done.returncode}: {text}")
    return _printed(plugin, done.stdout)


def _printed(plugin: ExecPlugin, output: bytes) -> _ExecStatus:
    """Return the credentials in the output of a plugin.

    Raises:
        CredentialError: The output has none, or is incomplete. The message never contains the output, which
            is secret.
    """
    place = f"the plugin {plugin.command[0]!r} printed"
    try:
        printed = msgspec.json.decode(output, type=_ExecCredential)
    except msgspec.DecodeError as error:
        raise CredentialError(f"{place} no ExecCredential: {error}") from error
    if printed.kind != "ExecCredential" or printed.api_version != plugin.api_version:
        found = f"{printed.kind!r} of {printed.api_version!r}"
        raise CredentialError(f"{place} {found}, not an ExecCredential of {plugin.api_version!r}")
    status = printed.status or _ExecStatus()
    if bool(status.client_certificate_data) != bool(status.client_key_data):
        raise CredentialError(f"{place} a certificate without its key, or a key without its certificate")
    if not status.token and not status.client_certificate_data:
        raise CredentialError(f"{place} neither a token nor a certificate")
    return status


resolve_structs(__name__)
