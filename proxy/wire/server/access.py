"""Who may connect: addresses to listen on, certificates, tokens, and the resource manager (RM) of each peer.

An address is `HOST:PORT`; this module also tells whether only this machine can reach it.

The rules come from a YAML file:

```yaml
tokens:
  - token: 5f2d3c...       # a bearer token: 16 visible ASCII characters at least
    rm: cluster-a          # the one RM that its holder may speak for; without it any
certificates:
  - name: shim.cluster-a   # the common name, or a DNS name, of a client certificate
    rm: cluster-a
```
"""

from __future__ import annotations

import hmac
import ipaddress
import re
import ssl
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Final, final

import grpc
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ....model.configuration.problems import ConfigurationError, Problem, RuleFinding
from ....model.errors import LicorneError
from ...base.files.input_files import LocatedYaml, read_located_yaml
from .calls import StatusError

_FORM: Final = re.compile(r"(?P<host>\[[0-9A-Fa-f:.%]+\]|[^\[\]:]+):(?P<port>[0-9]{1,5})")


@dataclass(frozen=True, slots=True)
class Address:
    """A host and a port; the port 0 stands for one that is free."""

    host: str
    """A name or a number; an IPv6 number has no brackets here."""
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Return whether only programs on this machine can reach it."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def with_port(self, port: int) -> Address:
        """Return the address with another port."""
        return Address(self.host, port)


def read_address(text: str) -> Address:
    """Read `HOST:PORT`; an IPv6 number stands in brackets.

    Raises:
        LicorneError: It is not such a text; the message quotes it.
    """
    found = _FORM.fullmatch(text)
    if found is None or int(found["port"]) > 65_535:
        raise LicorneError(
            f"{text!r} is not an address: expected HOST:PORT, for example 127.0.0.1:3333 or [::1]:0"
        )
    return Address(found["host"].strip("[]"), int(found["port"]))


_TOKEN: Final = re.compile(r"[!-~]{16,}")
"""A token travels in a header, which has visible characters of ASCII alone."""
_MESSAGES: Final = {
    "extra_forbidden": "a value of this name is not known here",
    "missing": "this value is missing",
    "model_type": "expected a mapping with names and values",
}
_QUOTED: Final = re.compile(r"'.{16,}'", re.DOTALL)
_STEP: Final = re.compile(r"[^.\[\]]+")
_KNOWN_STEP: Final = re.compile(r"tokens|certificates|token|name|rm|document|[0-9]{1,4}")
_PEM = b"-----BEGIN "


@final
@dataclass(frozen=True, slots=True)
class Peer:
    """The peer at the other end of a connection."""

    rm_id: str | None = None
    """The one RM that it may speak for; `None` for any."""

    def check_may_speak_for(self, rm_id: str) -> None:
        """Refuse a message in the name of an RM that is not the peer's.

        Raises:
            StatusError: It is not (PERMISSION_DENIED).
        """
        if self.rm_id is not None and rm_id != self.rm_id:
            raise StatusError(
                grpc.StatusCode.PERMISSION_DENIED,
                f"this token or certificate speaks for RM {self.rm_id!r}, not for {rm_id!r}",
            )


ANYBODY: Final = Peer()
_Name = Annotated[str, Field(min_length=1)]


class _Token(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, hide_input_in_errors=True)

    token: str
    rm: _Name | None = None


class _Certificate(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    name: _Name
    rm: _Name | None = None


class _Rules(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    tokens: list[_Token] = []
    certificates: list[_Certificate] = []


@final
class AccessRules:
    """The peers that are let in; without tokens and certificates every peer is."""

    def __init__(
        self,
        tokens: Sequence[tuple[str, str | None]] = (),
        certificates: Mapping[str, str | None] | None = None,
    ) -> None:
        self._tokens = [(token.encode(), Peer(rm_id)) for token, rm_id in tokens]
        self._certificates = {name: Peer(rm_id) for name, rm_id in (certificates or {}).items()}

    def with_token(self, token: str) -> AccessRules:
        """Return these rules with one more token, whose holder may speak for any RM."""
        tokens = [(known.decode(), peer.rm_id) for known, peer in self._tokens]
        return AccessRules(
            [*tokens, (token, None)], {name: peer.rm_id for name, peer in self._certificates.items()}
        )

    @property
    def has_certificates(self) -> bool:
        """Return whether there are rules for client certificates."""
        return bool(self._certificates)

    @property
    def tokens(self) -> tuple[str, ...]:
        """Return all bearer tokens that are let in."""
        return tuple(token.decode() for token, _ in self._tokens)

    def peer(self, metadata: Mapping[str, str], names: Sequence[str]) -> Peer:
        """Return the peer of a call.

        Args:
            metadata: Of the call; `authorization` has the token.
            names: Those in the client's certificate, which has been verified.

        Raises:
            StatusError: The peer is not let in (UNAUTHENTICATED).
        """
        if not self._tokens and not self._certificates:
            return ANYBODY
        for name in names:
            if name in self._certificates:
                return self._certificates[name]
        kind, _, given = metadata.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            # All are compared, each in constant time: how long it takes tells nothing about a token.
            matching = [peer for token, peer in self._tokens if hmac.compare_digest(token, given.encode())]
            if matching:
                return matching[0]
            raise StatusError(grpc.StatusCode.UNAUTHENTICATED, "the bearer token is not known here")
        if names:
            text = f"no rule lets in the certificate of {', '.join(names)}"
            raise StatusError(grpc.StatusCode.UNAUTHENTICATED, text)
        raise StatusError(
            grpc.StatusCode.UNAUTHENTICATED,
            "a bearer token (authorization: Bearer ...) or a certificate is required",
        )


def read_access_rules(path: Path) -> AccessRules:
    """Read the rules from a file.

    Raises:
        InputError: The file cannot be read.
        ConfigurationError: It has no such rules; the error has all problems, with their places, and no token.
    """
    try:
        located = read_located_yaml(path)
        rules = _rules_of(located)
        findings = [*_findings(located, rules)]
        if findings:
            raise located.error(findings)
    except ConfigurationError as error:
        raise ConfigurationError(tuple(_without_token(each) for each in error.problems)) from None
    return AccessRules(
        [(each.token, each.rm) for each in rules.tokens], {each.name: each.rm for each in rules.certificates}
    )


def _rules_of(located: LocatedYaml) -> _Rules:
    """Return the rules of a file.

    Raises:
        ConfigurationError: It has no such rules.
    """
    try:
        return _Rules.model_validate(located.value)
    except ValidationError as error:
        found = [
            located.finding(each["loc"], _MESSAGES.get(each["type"], each["msg"]))
            for each in error.errors(include_input=False)
        ]
        raise located.error(found) from None  # The cause would show the tokens.


def _findings(located: LocatedYaml, rules: _Rules) -> Iterator[RuleFinding]:
    """Yield what is wrong with rules that have the right form."""
    if not rules.tokens and not rules.certificates:
        yield located.finding([], "neither tokens nor certificates: no peer would be let in")
    first: dict[tuple[str, str], int] = {}
    for index, token in enumerate(rules.tokens):
        way = ("tokens", index, "token")
        if not _TOKEN.fullmatch(token.token):
            yield located.finding(way, "a token has 16 visible ASCII characters at least, and no spaces")
        if first.setdefault(("token", token.token), index) != index:
            yield located.finding(way, f"tokens[{first['token', token.token]}] is the same token")
    for index, certificate in enumerate(rules.certificates):
        if first.setdefault(("name", certificate.name), index) != index:
            text = f"certificates[{first['name', certificate.name]}] is for the same name"
            yield located.finding(("certificates", index, "name"), text)


def _without_token(problem: Problem) -> Problem:
    """Return a problem that quotes nothing that may be a token, not even one in the place of a key."""
    path = _STEP.sub(lambda step: step[0] if _KNOWN_STEP.fullmatch(step[0]) else "?", problem.path)
    return replace(problem, path=path, text=_QUOTED.sub("'?'", problem.text))


def server_credentials(
    certificate: Path | None, key: Path | None, client_authorities: Path | None
) -> grpc.ServerCredentials | None:
    """Return the credentials for TLS, `None` for a server without; files are PEM.

    With client authorities each client must have a certificate of one of them.

    Raises:
        LicorneError: A file is missing, cannot be read, has no PEM, or has other contents than expected.
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
    """Return the message of OpenSSL, without the place in its source."""
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
