"""Where the certificate is kept, and who is to trust it: a secret, and the registrations of the webhook.

Replicas share the secret. Who finds none, or one whose certificate is to be replaced, writes a new one; if
another replica was quicker, its certificate is taken. The registrations are a configuration of mutating and
one of validating webhooks, of one name. Authorities are only added to them, and left out once they have
ended: a replica that has read an older secret takes nothing back.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from datetime import datetime
from typing import Final, TypeVar, final
from urllib.parse import quote

import msgspec

from licorne.proxy.kubernetes.struct_types import resolve_structs

from ....actors.services.log import Log
from ..client.api_client import ApiClient
from ..client.errors import ApiError, ApiUnreachable
from ..objects import ObjectMeta
from .certificates import (
    BadCertificateError,
    ServingCertificate,
    joined_bundle,
    new_certificate,
    read_certificate,
)

_ATTEMPTS: Final = 5
"""How often another replica may be quicker."""
_PATIENCE_SECONDS: Final = 5.0
_MERGE: Final = "application/merge-patch+json"
_STRATEGIC: Final = "application/strategic-merge-patch+json"
_CERTIFICATE: Final = "tls.crt"
_KEY: Final = "tls.key"
_BUNDLE: Final = "ca.crt"
_REGISTRATIONS: Final = "/apis/admissionregistration.k8s.io/v1"
_KINDS: Final = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")


_Kind = TypeVar("_Kind")


class _KeptSecret(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    data: dict[str, str] = {}


class _Trust(msgspec.Struct, frozen=True, rename="camel"):
    ca_bundle: str = ""


class _RegisteredHook(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    client_config: _Trust = _Trust()


class _Registration(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    webhooks: tuple[_RegisteredHook, ...] = ()


@final
class CertificateKeeper:
    """Keeps the certificate of the webhook; used by one thread.

    Args:
        client: The API server.
        namespace: Where the secret is.
        secret: The name of the secret.
        registration: The name of the two registrations.
        names: The names and addresses that the certificate is for; the first is that of the service.
        log: Where a new certificate, and what cannot be written, is logged.
        now: Returns the time, with a time zone.
    """

    def __init__(
        self,
        client: ApiClient,
        *,
        namespace: str,
        secret: str,
        registration: str,
        names: tuple[str, ...],
        log: Log,
        now: Callable[[], datetime],
    ) -> None:
        self._client = client
        self._secrets = f"/api/v1/namespaces/{quote(namespace, safe='')}/secrets"
        self._secret = secret
        self._registration = registration
        self._names = names
        self._log = log
        self._now = now

    def certificate(self) -> ServingCertificate:
        """Return the certificate of all replicas, which is new if there was none, or its time has come.

        Raises:
            ApiError, ApiUnreachable: The secret cannot be read or written.
        """
        for _ in range(_ATTEMPTS - 1):
            try:
                return self._read_or_made()
            except ApiError as error:
                if error.status != 409:
                    raise
            except ApiUnreachable as error:
                self._log.warning("the secret of the admission webhook is read again: {}", error)
        return self._read_or_made()

    def _read_or_made(self) -> ServingCertificate:
        secret = self._read_secret()
        data = {} if secret is None else {key: _decoded(value) for key, value in secret.data.items()}
        earlier = data.get(_BUNDLE, b"")
        if data:
            try:
                held = read_certificate(data.get(_CERTIFICATE, b""), data.get(_KEY, b""), earlier)
            except BadCertificateError as error:
                self._log.warning("the secret {} is replaced: {}", self._secret, error)
            else:
                if self._now() < held.renewed_at and held.names == frozenset(self._names):
                    return held
        made = new_certificate(self._names, self._now(), earlier)
        self._write_secret(secret, made)
        self._log.info("the admission webhook has a new certificate, which ends at {}", made.ends_at)
        return made

    def _read_secret(self) -> _KeptSecret | None:
        try:
            path = f"{self._secrets}/{quote(self._secret, safe='')}"
            body = self._client.request("GET", path, patience_seconds=_PATIENCE_SECONDS)
        except ApiError as error:
            if error.status == 404:
                return None
            raise
        return _read(body, _KeptSecret)

    def _write_secret(self, before: _KeptSecret | None, made: ServingCertificate) -> None:
        """Write the secret, unless it has changed since it was read: then the status of the error is 409."""
        parts = {_CERTIFICATE: made.certificate, _KEY: made.key, _BUNDLE: made.bundle}
        metadata = {"name": self._secret}
        document: dict[str, object] = {
            "metadata": metadata,
            "data": {key: base64.b64encode(part).decode() for key, part in parts.items()},
        }
        if before is None:
            whole = {"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", **document}
            self._client.request(
                "POST", self._secrets, body=msgspec.json.encode(whole), patience_seconds=_PATIENCE_SECONDS
            )
            return
        metadata["resourceVersion"] = before.metadata.resource_version
        self._client.request(
            "PATCH",
            f"{self._secrets}/{quote(self._secret, safe='')}",
            body=msgspec.json.encode(document),
            content_type=_MERGE,
            patience_seconds=_PATIENCE_SECONDS,
        )

    def publish(self, bundle: bytes) -> bool:
        """Have the API server trust some authorities for the webhook.

        What hinders it is logged.

        Args:
            bundle: The authorities.

        Returns:
            Whether they are in both registrations now.
        """
        done = [self._published(f"{_REGISTRATIONS}/{kind}", bundle) for kind in _KINDS]
        return all(done)

    def _published(self, collection: str, bundle: bytes) -> bool:
        path = f"{collection}/{quote(self._registration, safe='')}"
        try:
            body = self._client.request("GET", path, patience_seconds=_PATIENCE_SECONDS)
            registration = _read(body, _Registration)
            changes = [
                {"name": hook.name, "clientConfig": {"caBundle": base64.b64encode(wanted).decode()}}
                for hook in registration.webhooks
                if (wanted := self._joined(hook, bundle)) != _decoded(hook.client_config.ca_bundle)
            ]
            if changes:
                metadata = {"resourceVersion": registration.metadata.resource_version}
                patch = {"metadata": metadata, "webhooks": changes}
                self._client.request(
                    "PATCH",
                    path,
                    body=msgspec.json.encode(patch),
                    content_type=_STRATEGIC,
                    patience_seconds=_PATIENCE_SECONDS,
                )
        except (ApiError, ApiUnreachable) as error:
            self._log.warning("{} does not get the authorities of the webhook: {}", path, error)
            return False
        return True

    def _joined(self, hook: _RegisteredHook, bundle: bytes) -> bytes:
        return joined_bundle((_decoded(hook.client_config.ca_bundle), bundle), self._now())


def _decoded(text: str) -> bytes:
    """Return what a text in base64 says, nothing if it is none."""
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        return b""


def _read(body: bytes, kind: type[_Kind]) -> _Kind:
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.DecodeError as error:
        raise ApiUnreachable(f"the answer cannot be read as {kind.__name__}: {error}") from error


resolve_structs(__name__)
