"""Certificates for tests of TLS, in files and as credentials of gRPC."""

from __future__ import annotations

from pathlib import Path
from typing import final

import grpc
import trustme


@final
class Certificates:
    """An authority, and the certificate of a server on this machine.

    Attributes:
        authority: The file with the certificate of the authority.
        server: The file with the certificate of the server.
        server_key: The file with its key.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._authority = trustme.CA()
        self.authority = folder / "authority.pem"
        self._authority.cert_pem.write_to_path(str(self.authority))
        self.server, self.server_key = self.write("server", self.issue("localhost", "127.0.0.1"))

    def issue(self, *names: str, common_name: str | None = None) -> trustme.LeafCert:
        """Return a new certificate of the authority."""
        return self._authority.issue_cert(*names, common_name=common_name)

    def write(self, name: str, certificate: trustme.LeafCert) -> tuple[Path, Path]:
        """Write a certificate and its key, and return the two files."""
        written, key = self._folder / f"{name}.pem", self._folder / f"{name}-key.pem"
        certificate.cert_chain_pems[0].write_to_path(str(written))
        certificate.private_key_pem.write_to_path(str(key))
        return written, key

    def channel_credentials(self, *names: str) -> grpc.ChannelCredentials:
        """Return the credentials of a client that trusts the authority; with names it has a certificate."""
        return self.channel_credentials_with(self.issue(*names) if names else None)

    def channel_credentials_with(self, certificate: trustme.LeafCert | None) -> grpc.ChannelCredentials:
        """Return the credentials of a client that trusts the authority, and has this certificate or none."""
        if certificate is None:
            return grpc.ssl_channel_credentials(self.authority.read_bytes())
        return grpc.ssl_channel_credentials(
            self.authority.read_bytes(),
            certificate.private_key_pem.bytes(),
            certificate.cert_chain_pems[0].bytes(),
        )
