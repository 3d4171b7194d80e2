"""A real directory server for tests: OpenLDAP's `slapd` with a data base of its own, on a free port."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ldap3 import NONE, Connection, Server
from support.waiting import happens

BASE: Final = "dc=example,dc=com"
ADMINISTRATOR: Final = f"cn=admin,{BASE}"
PASSWORD: Final = "open sesame"  # noqa: S105 - of a server that lives for a second
_FOLDERS: Final = ("/usr/sbin", "/usr/local/sbin", "/usr/libexec", "/usr/local/libexec")
_SCHEMAS: Final = ("core", "cosine", "inetorgperson")
_STARTS_MAX: Final = 5


@dataclass(frozen=True, slots=True)
class DirectoryServer:
    """A server that runs, for as long as the test that started it."""

    port: int
    secure_port: int

    def settings(self) -> dict[str, str]:
        """Return how it is asked, without TLS."""
        return {
            "Host": "127.0.0.1",
            "Port": str(self.port),
            "BaseDN": BASE,
            "Filter": "(&(objectClass=inetOrgPerson)(uid=%s))",
            "BindUser": ADMINISTRATOR,
            "BindPassword": PASSWORD,
        }

    def add(self, *entries: tuple[str, Sequence[str], Mapping[str, str | Sequence[str]]]) -> None:
        """Add entries, each with its name, its classes and its attributes, as the administrator."""
        server = Server("127.0.0.1", self.port, get_info=NONE)
        with Connection(server, ADMINISTRATOR, PASSWORD, raise_exceptions=True) as connection:
            for name, classes, attributes in entries:
                connection.add(name, list(classes), dict(attributes))  # type: ignore[no-untyped-call] # its stub


@dataclass(frozen=True, slots=True)
class Directory:
    """A server with people in it, and the authority that its certificate comes from."""

    server: DirectoryServer
    authority: Path


def slapd_path() -> str | None:
    """Return where the server's program is, `None` if it is not installed."""
    return shutil.which("slapd", path=":".join(_FOLDERS))


@contextmanager
def serving(folder: Path) -> Iterator[DirectoryServer]:
    """Run a server with nothing but its base, and an overlay that keeps `memberOf` up to date.

    Args:
        folder: For its configuration and its data; `server.pem` in it is its certificate with its key.
    """
    path = slapd_path()
    assert path is not None, "slapd is not installed: make slapd"
    configuration = folder / "slapd.conf"
    configuration.write_text(_configuration(folder))
    (folder / "data").mkdir()
    for _ in range(_STARTS_MAX):
        server = DirectoryServer(free_port(), free_port())
        urls = f"ldap://127.0.0.1:{server.port} ldaps://127.0.0.1:{server.secure_port}"
        process = subprocess.Popen([path, "-d", "0", "-f", str(configuration), "-h", urls])  # noqa: S603 - no shell
        try:
            if _answers(process, server.secure_port):
                server.add((BASE, ["dcObject", "organization"], {"dc": "example", "o": "example"}))
                yield server
                return
        finally:
            process.terminate()
            process.wait()
    raise AssertionError(f"slapd did not start in {_STARTS_MAX} tries; its errors are above")


def _configuration(folder: Path) -> str:
    certificate = folder / "server.pem"
    return "\n".join(
        [
            *(f"include /etc/ldap/schema/{schema}.schema" for schema in _SCHEMAS),
            "modulepath /usr/lib/ldap",
            "moduleload back_mdb",
            "moduleload memberof",
            f"TLSCACertificateFile {certificate}",
            f"TLSCertificateFile {certificate}",
            f"TLSCertificateKeyFile {certificate}",
            "database mdb",
            f"suffix {BASE}",
            f"rootdn {ADMINISTRATOR}",
            f'rootpw "{PASSWORD}"',
            f"directory {folder / 'data'}",
            "overlay memberof",
            "",
        ]
    )


def free_port() -> int:
    """Return a port that is free now; who comes first may take it."""
    with closing(socket.socket()) as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def _answers(process: subprocess.Popen[bytes], port: int) -> bool:
    """Wait until the server takes connections; return whether it does, or has ended."""

    def connects() -> bool:
        with closing(socket.socket()) as caller:
            return caller.connect_ex(("127.0.0.1", port)) == 0

    return happens(lambda: process.poll() is not None or connects()) and process.poll() is None
