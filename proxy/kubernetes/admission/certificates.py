"""The certificate of the webhook, and the authorities that an API server trusts for it.

Each certificate has an authority of its own, whose key is thrown away once it has signed: nothing that is
kept can sign another one. The bundle of authorities holds those of earlier certificates until they end, so a
server with the last certificate and one with the new one are both trusted.
"""

from __future__ import annotations

import ipaddress
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from ssl import SSLContext
from typing import Final, final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from ....model.errors import LicorneError

LIFETIME: Final = timedelta(days=90)
_SKEW: Final = timedelta(hours=1)
"""How far the clock of an API server may be behind."""
_PEM: Final = serialization.Encoding.PEM
_BEGIN: Final = b"-----BEGIN CERTIFICATE-----"


class BadCertificateError(LicorneError):
    """What should be a certificate, its key or an authority cannot be used."""


@final
@dataclass(frozen=True, slots=True)
class ServingCertificate:
    """A certificate with its key, and the authorities that are to be trusted; all of them as PEM."""

    certificate: bytes
    key: bytes
    bundle: bytes
    """The authority of the certificate, and those of earlier ones."""
    made_at: datetime
    ends_at: datetime
    names: frozenset[str]
    """The names and addresses of the server."""

    @property
    def renewed_at(self) -> datetime:
        """When it is to be replaced: after two thirds of its time."""
        return self.made_at + (self.ends_at - self.made_at) * 2 / 3

    def load_into(self, context: SSLContext) -> None:
        """Let a context for servers present the certificate from its next connection on."""
        with tempfile.NamedTemporaryFile() as file:  # It can be read by this user alone.
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
    """Return a certificate that was kept.

    Raises:
        BadCertificateError: Something cannot be read, or the parts do not belong together.
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
    """Return the authorities of several bundles that have not ended, each once and in order.

    What cannot be read is left out.
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
