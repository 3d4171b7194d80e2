"""The certificate of the webhook, and the authorities that an API server trusts for it.

Each certificate has a separate authority, whose key is discarded after it has signed: no stored key can sign
another certificate. The bundle of authorities holds those of earlier certificates until they end, so a server
with the last certificate and one with the new one are both trusted.

Replicas share the secret. A replica that finds no secret, or a certificate that is due for replacement,
writes a new one; if another replica was faster, its certificate is used. The registrations are a
configuration of mutating webhooks and one of validating webhooks, with the same name. Authorities are only
added to them, and removed after they have expired: a replica that has read an older secret removes none.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import secrets
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from ssl import SSLContext
from typing import Final, TypeVar, final
from urllib.parse import quote

import msgspec
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from ....actors.services.log import Log
from ....model.errors import LicorneError
from ..client.api_client import ApiClient
from ..client.errors import ApiError, ApiUnreachable
from ..decoding import resolve_structs
from ..objects import ObjectMeta

LIFETIME: Final = timedelta(days=90)
_SKEW: Final = timedelta(hours=1)
"""How far the clock of an API server may be behind."""
_PEM: Final = serialization.Encoding.PEM
_BEGIN: Final = b"-----BEGIN CERTIFICATE-----"
_ATTEMPTS: Final = 5
"""How often another replica may be faster before the keeper gives up."""
_PATIENCE_SECONDS: Final = 5.0
_MERGE: Final = "application/merge-patch+json"
_STRATEGIC: Final = "application/strategic-merge-patch+json"
_CERTIFICATE: Final = "tls.crt"
_KEY: Final = "tls.key"
_BUNDLE: Final = "ca.crt"
_SIGNING_KEY: Final = "users.key"
_SIGNING_KEY_BYTES: Final = 32
_REGISTRATIONS: Final = "/apis/admissionregistration.k8s.io/v1"
_KINDS: Final = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
_Kind = TypeVar("_Kind")
_Kept = TypeVar("_Kept")


class BadCertificateError(LicorneError):
    """A certificate, its key or an authority cannot be used."""


@final
@dataclass(frozen=True, slots=True)
class ServingCertificate:
    """A certificate with its key, and the authorities that are to be trusted; all of them as PEM."""

    certificate: bytes
    key: bytes
    bundle: bytes
    """The authority of the certificate, and the authorities of earlier certificates."""
    made_at: datetime
    ends_at: datetime
    names: frozenset[str]
    """The names and addresses of the server."""

    @property
    def renewed_at(self) -> datetime:
        """The time of its replacement: after two thirds of its validity."""
        return self.made_at + (self.ends_at - self.made_at) * 2 / 3

    def load_into(self, context: SSLContext) -> None:
        """Make a context for servers present the certificate from its next connection on."""
        with tempfile.NamedTemporaryFile() as file:  # Only this user can read it.
            file.write(self.certificate + self.key)
            file.flush()
            context.load_cert_chain(file.name)


def new_certificate(names: Iterable[str], now: datetime, earlier_bundle: bytes = b"") -> ServingCertificate:
    """Return a new certificate of a new authority.

    Args:
        names: The names and addresses of the server; the first is its common name as well.
        now: The time, with a time zone.
        earlier_bundle: The authorities that stay trusted until they end.
    """
    all_names = tuple(names)
    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority_name = _name(f"{all_names[0][:40]} {x509.random_serial_number() % 10**12}")
    authority = (
        _builder(authority_name, authority_name, authority_key.public_key(), now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(authority_key.public_key()), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    key = ec.generate_private_key(ec.SECP256R1())
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    certificate = (
        _builder(_name(all_names[0][:64]), authority_name, key.public_key(), now)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([_general(name) for name in all_names]), critical=False)
        .add_extension(identifier, critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    key_pem = key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    bundle = joined_bundle((authority.public_bytes(_PEM), earlier_bundle), now)
    return read_certificate(certificate.public_bytes(_PEM), key_pem, bundle)


def read_certificate(certificate: bytes, key: bytes, bundle: bytes) -> ServingCertificate:
    """Return a certificate that was stored.

    Raises:
        BadCertificateError: A part cannot be read, or the parts do not belong together.
    """
    try:
        read = x509.load_pem_x509_certificate(certificate)
        private = serialization.load_pem_private_key(key, None)
        names = read.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, TypeError, UnsupportedAlgorithm, x509.ExtensionNotFound) as error:
        raise BadCertificateError(f"the certificate or its key cannot be read: {error}") from error
    if private.public_key() != read.public_key():
        raise BadCertificateError("the key is not that of the certificate")
    if not any(authority.subject == read.issuer for authority in _authorities(bundle)):
        raise BadCertificateError("the authority of the certificate is not among those to be trusted")
    return ServingCertificate(
        certificate=certificate,
        key=key,
        bundle=bundle,
        made_at=read.not_valid_before_utc + _SKEW,
        ends_at=read.not_valid_after_utc,
        names=frozenset(str(name.value) for name in names),
    )


def joined_bundle(bundles: Sequence[bytes], now: datetime) -> bytes:
    """Return the authorities of several bundles that have not expired, each once and in order.

    Unreadable parts are left out.
    """
    found = (authority for bundle in bundles for authority in _authorities(bundle))
    lasting = (each.public_bytes(_PEM) for each in found if each.not_valid_after_utc > now)
    return b"".join(dict.fromkeys(lasting))


def _authorities(bundle: bytes) -> list[x509.Certificate]:
    found: list[x509.Certificate] = []
    for part in bundle.split(_BEGIN)[1:]:
        try:
            found.append(x509.load_pem_x509_certificate(_BEGIN + part))
        except ValueError:
            continue
    return found


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + LIFETIME)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


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
        secret: The name of the secret with the certificate.
        registration: The name of the two registrations.
        names: The names and addresses that the certificate is for; the first is that of the service.
        log: The log for new certificates and failed writes.
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
        """Return the certificate that all replicas share; make one if none is stored, or replacement is due.

        Raises:
            ApiError, ApiUnreachable: The secret cannot be read or written.
        """
        return self._again_after_conflicts(self._read_or_made)

    def signing_key(self) -> bytes:
        """Return the key that all replicas sign users with; it is made once and never replaced.

        Raises:
            ApiError, ApiUnreachable: The secret cannot be read or written.
        """
        return self._again_after_conflicts(self._read_or_made_key)

    def _read_or_made_key(self) -> bytes:
        secret = self._read_secret()
        held = b"" if secret is None else _decoded(secret.data.get(_SIGNING_KEY, ""))
        if len(held) >= _SIGNING_KEY_BYTES:
            return held
        made = secrets.token_bytes(_SIGNING_KEY_BYTES)
        self._write_secret(secret, {_SIGNING_KEY: made})
        self._log.info("the admission webhook has a new key, which it signs users with")
        return made

    def _again_after_conflicts(self, read_or_made: Callable[[], _Kept]) -> _Kept:
        for _ in range(_ATTEMPTS - 1):
            try:
                return read_or_made()
            except ApiError as error:
                if error.status != 409:
                    raise
            except ApiUnreachable as error:
                self._log.warning("the secret of the admission webhook is read again: {}", error)
        return read_or_made()

    def _read_or_made(self) -> ServingCertificate:
        secret = self._read_secret()
        data = {} if secret is None else {key: _decoded(value) for key, value in secret.data.items()}
        earlier = data.get(_BUNDLE, b"")
        if data.get(_CERTIFICATE):
            try:
                held = read_certificate(data.get(_CERTIFICATE, b""), data.get(_KEY, b""), earlier)
            except BadCertificateError as error:
                self._log.warning("the secret {} is replaced: {}", self._secret, error)
            else:
                if self._now() < held.renewed_at and held.names == frozenset(self._names):
                    return held
        made = new_certificate(self._names, self._now(), earlier)
        self._write_secret(secret, {_CERTIFICATE: made.certificate, _KEY: made.key, _BUNDLE: made.bundle})
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

    def _write_secret(self, before: _KeptSecret | None, parts: Mapping[str, bytes]) -> None:
        """Write parts of the secret; raise a 409 if it has changed since it was read."""
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
        """Make the API server trust these authorities for the webhook.

        Failures are logged.

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
    """Return the decoded text of base64, empty if it is not base64."""
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
