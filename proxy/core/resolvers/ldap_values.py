"""Readers of the single settings of the directory server; each raises `ValueError` with a clear text."""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import Final

from ....model.configuration.names import flag_of

PLACE_OF_THE_USER: Final = "%s"
_HOST: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,252})")
_ATTRIBUTE: Final = re.compile(r"[A-Za-z][A-Za-z0-9-]*|[0-9]+(\.[0-9]+)+")


def a_text(text: str) -> str:
    """Read a text of one line. No message has the text: it may be a password."""
    if not text:
        raise ValueError("the file is empty")
    if not text.isprintable():
        raise ValueError("holds a line break or another control character")
    return text


def a_host(text: str) -> str:
    """Read the name or the address of a host."""
    a_text(text)
    if _HOST.fullmatch(text):
        return text
    try:
        return str(ip_address(text))
    except ValueError:
        raise ValueError(
            f"{text!r} is no name or address of a host (the scheme and the port are not part of it)"
        ) from None


def a_port(text: str) -> int:
    """Read the number of a port."""
    a_text(text)
    if not re.fullmatch(r"[0-9]{1,9}", text) or not 1 <= int(text) <= 65_535:
        raise ValueError(f"{text!r} is no port, which is a number from 1 to 65535")
    return int(text)


def a_base_name(text: str) -> str:
    """Read the distinguished name of an entry."""
    from ldap3.core.exceptions import LDAPException  # noqa: PLC0415 - an extra
    from ldap3.utils.dn import parse_dn  # noqa: PLC0415 - an extra

    a_text(text)
    try:
        parse_dn(text, strip=True)
    except LDAPException as error:
        raise ValueError(f"{text!r} is no distinguished name: {error}") from None
    return text


def a_filter(text: str) -> str:
    """Read a search filter with the place of the user's name in it."""
    from ldap3.core.exceptions import LDAPException  # noqa: PLC0415 - an extra
    from ldap3.operation.search import parse_filter  # noqa: PLC0415 - an extra

    a_text(text)
    if PLACE_OF_THE_USER not in text:
        raise ValueError(f"{text!r} has no {PLACE_OF_THE_USER}, which stands for the name of the user")
    filled = text.replace(PLACE_OF_THE_USER, "x")
    try:
        parse_filter(  # type: ignore[no-untyped-call] # its stub has no types
            filled, None, auto_escape=False, auto_encode=False, validator=None, check_names=False
        )
    except LDAPException as error:
        raise ValueError(f"{text!r} is no search filter: {error}") from None
    return text


def an_attribute(text: str) -> str:
    """Read the name or the number of an attribute."""
    a_text(text)
    if not _ATTRIBUTE.fullmatch(text):
        raise ValueError(f"{text!r} is no name of an attribute")
    return text


def some_attributes(text: str) -> tuple[str, ...]:
    """Read names of attributes with commas between them."""
    a_text(text)
    return tuple(an_attribute(name.strip()) for name in text.split(","))


def a_flag(text: str) -> bool:
    """Read a switch."""
    a_text(text)
    flag = flag_of(text)
    if flag is None:
        raise ValueError(f"{text!r} is neither true nor false")
    return flag
