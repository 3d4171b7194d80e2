"""The settings of the directory server: one file for each in a folder, as secrets are mounted.

One error has all that is wrong. No message has the password.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Final, TypeVar, final

from ....actors.services.log import Log
from ....model.configuration.names import did_you_mean, flag_of
from .resolver import ResolverSettingsError

FILE_BYTES_MAX: Final = 65_536
_OPTIONAL: Final = ("Insecure", "SSL")
_NAMES: Final = (
    "Host",
    "Port",
    "BaseDN",
    "Filter",
    "GroupAttr",
    "ReturnAttr",
    "BindUser",
    "BindPassword",
    *_OPTIONAL,
)
_Value = TypeVar("_Value")
PLACE_OF_THE_USER: Final = "%s"
_HOST: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,252})")
_ATTRIBUTE: Final = re.compile(r"[A-Za-z][A-Za-z0-9-]*|[0-9]+(\.[0-9]+)+")


@dataclass(frozen=True, slots=True, kw_only=True)
class LdapSettings:
    """The address of the directory server, and the search."""

    host: str
    port: int
    base_name: str
    """The entry below which users are searched for."""
    filter: str
    """The search filter of a user; each `%s` in it is replaced by the name."""
    group_attribute: str
    return_attributes: tuple[str, ...]
    bind_user: str
    bind_password: str = field(repr=False)
    insecure: bool
    """With TLS: take any certificate."""
    ssl: bool

    @property
    def url(self) -> str:
        """The server, for messages."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'ldaps' if self.ssl else 'ldap'}://{host}:{self.port}"


def read_ldap_settings(folder: Path, log: Log | None = None) -> LdapSettings:
    """Read the settings; harmless problems are logged.

    Entries that begin with two dots, and folders, are skipped: mounted secrets have such entries.

    Raises:
        ResolverSettingsError: Settings are missing or cannot be used; the error has all of them.
    """
    log = log or Log()
    files = _SettingFiles(folder, log)
    settings = LdapSettings(
        host=files.value("Host", a_host, ""),
        port=files.value("Port", a_port, 0),
        base_name=files.value("BaseDN", a_base_name, ""),
        filter=files.value("Filter", a_filter, ""),
        group_attribute=files.value("GroupAttr", an_attribute, ""),
        return_attributes=files.value("ReturnAttr", some_attributes, ()),
        bind_user=files.value("BindUser", a_text, ""),
        bind_password=files.value("BindPassword", a_text, ""),
        insecure=files.value("Insecure", a_flag, False),
        ssl=files.value("SSL", a_flag, False),
    )
    returned = {name.lower() for name in settings.return_attributes}
    if settings.group_attribute and returned and settings.group_attribute.lower() not in returned:
        names = ",".join(settings.return_attributes)
        files.problem(
            "ReturnAttr", f"{names!r} does not have the attribute of GroupAttr, {settings.group_attribute!r}"
        )
    if files.problems:
        raise ResolverSettingsError(tuple(files.problems))
    if settings.insecure:
        log.warning(  # noqa: PLE1205 - loguru's braces
            "{}: {}",
            folder / "Insecure",
            "the certificate of the directory server is not checked"
            if settings.ssl
            else "without SSL there is no certificate, and the setting has no effect",
        )
    return settings


@final
class _SettingFiles:
    """The texts of the settings, and what is wrong with them."""

    def __init__(self, folder: Path, log: Log) -> None:
        self._folder = folder
        self._log = log
        self.problems: list[str] = []
        self._unreadable: set[str] = set()
        self._texts: dict[str, str] = {}
        try:
            files = sorted(path for path in folder.iterdir() if not path.name.startswith(".."))
            files = [path for path in files if not path.is_dir()]
        except OSError as error:
            raise ResolverSettingsError((f"{folder}: {error.strerror}",)) from error
        for path in files:
            if path.name in _NAMES:
                self._read(path)
            else:
                self._check_unknown(path.name)

    def problem(self, name: str, text: str) -> None:
        """Note what is wrong with a setting."""
        self.problems.append(f"{self._folder / name}: {text}")

    def value(self, name: str, read: Callable[[str], _Value], absent: _Value) -> _Value:
        """Return a setting; `absent` also stands for one that cannot be used."""
        if name not in self._texts:
            if name not in _OPTIONAL and name not in self._unreadable:
                self.problem(name, "the file is missing")
            return absent
        try:
            return read(self._texts[name])
        except ValueError as error:
            self.problem(name, str(error))
            return absent

    def _read(self, path: Path) -> None:
        try:
            self._texts[path.name] = _text_of(path)
        except ValueError as error:
            self._unreadable.add(path.name)
            self.problem(path.name, str(error))

    def _check_unknown(self, name: str) -> None:
        """Refuse what is probably a misspelt setting: `ssl` for `SSL` would send the password in clear."""
        meant = did_you_mean(name, _NAMES)
        if meant:
            self.problem(name, f"the setting {name!r} is not known{meant}")
        else:
            self._log.warning("{}: the setting {!r} is not known and not used", self._folder / name, name)


def _text_of(path: Path) -> str:
    """Return the text of a file without blanks around it; raise `ValueError` with a clear text."""
    try:
        with path.open("rb") as file:
            content = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise ValueError(error.strerror) from error
    if len(content) > FILE_BYTES_MAX:
        raise ValueError(f"the file has more than {FILE_BYTES_MAX} bytes")
    try:
        return content.decode("utf-8").strip()
    except UnicodeDecodeError:
        raise ValueError("the file is not UTF-8") from None


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
