"""Addresses to listen on: `HOST:PORT`, and whether only this machine can reach them."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import Final

from ....model.errors import LicorneError

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
        LicorneError: It is no such text; the message quotes it.
    """
    found = _FORM.fullmatch(text)
    if found is None or int(found["port"]) > 65_535:
        raise LicorneError(
            f"{text!r} is no address: expected HOST:PORT, for example 127.0.0.1:3333 or [::1]:0"
        )
    return Address(found["host"].strip("[]"), int(found["port"]))
