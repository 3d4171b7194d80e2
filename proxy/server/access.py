"""Who may connect, and for which resource manager (RM) a peer may speak.

The rules come from a YAML file:

```yaml
tokens:
  - token: 5f2d3c...       # a bearer token, of 16 characters at least
    rm: cluster-a          # the one RM that its holder may speak for; without it any
certificates:
  - name: shim.cluster-a   # the common name, or a DNS name, of a client certificate
    rm: cluster-a
```
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, final

import grpc
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..files.located_yaml import read_located_yaml
from .statuses import StatusError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

__all__ = ["ANYBODY", "AccessRules", "Peer", "read_access_rules"]

_TOKEN_LENGTH_MIN: Final = 16


@final
@dataclass(frozen=True, slots=True)
class Peer:
    """Who is at the other end of a connection."""

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

    token: Annotated[str, Field(min_length=_TOKEN_LENGTH_MIN)]
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

    @property
    def has_tokens(self) -> bool:
        """Return whether there are bearer tokens."""
        return bool(self._tokens)

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
            "a bearer token (authorization: Bearer ...) or a certificate is wanted",
        )


def read_access_rules(path: Path) -> AccessRules:
    """Read the rules from a file.

    Raises:
        InputError: The file cannot be read.
        ConfigurationError: It has no such rules; the error has all problems, with their places, and no token.
    """
    located = read_located_yaml(path)
    try:
        rules = _Rules.model_validate(located.value)
    except ValidationError as error:
        found = [located.finding(each["loc"], each["msg"]) for each in error.errors(include_input=False)]
        raise located.error(found) from None  # The cause would show the tokens.
    if not rules.tokens and not rules.certificates:
        raise located.error([located.finding([], "neither tokens nor certificates: no peer would be let in")])
    return AccessRules(
        [(each.token, each.rm) for each in rules.tokens], {each.name: each.rm for each in rules.certificates}
    )
