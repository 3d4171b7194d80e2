"""The resolver that asks a directory server, and its settings. It needs the extra `ldap`.

The settings are one file for each in a folder, as secrets are mounted. One error names everything that is
wrong. No message has the password.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar, final

from ....actors.services.log import Log
from ....model.configuration.names import did_you_mean, flag_of
from .resolver import ResolverSettingsError, ResolverUnavailableError, UserResolutionError

if TYPE_CHECKING:
    from ldap3 import Connection, Server, Tls

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
            f"{text!r} is not a name or address of a host (the scheme and the port are not part of it)"
        ) from None


def a_port(text: str) -> int:
    """Read the number of a port."""
    a_text(text)
    if not re.fullmatch(r"[0-9]{1,9}", text) or not 1 <= int(text) <= 65_535:
        raise ValueError(f"{text!r} is not a port, which is a number from 1 to 65535")
    return int(text)


def a_base_name(text: str) -> str:
    """Read the distinguished name of an entry."""
    from ldap3.core.exceptions import LDAPException  # noqa: PLC0415 - an extra
    from ldap3.utils.dn import parse_dn  # noqa: PLC0415 - an extra

    a_text(text)
    try:
        parse_dn(text, strip=True)
    except LDAPException as error:
        raise ValueError(f"{text!r} is not a distinguished name: {error}") from None
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
        raise ValueError(f"{text!r} is not a search filter: {error}") from None
    return text


def an_attribute(text: str) -> str:
    """Read the name or the number of an attribute."""
    a_text(text)
    if not _ATTRIBUTE.fullmatch(text):
        raise ValueError(f"{text!r} is not a name of an attribute")
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


STEP_SECONDS: Final = 5
"""How long the server may take to connect, and how long for each answer."""


def check_ldap_is_installed() -> None:
    """Check that the extra is installed.

    Raises:
        ResolverSettingsError: It is not.
    """
    try:
        import ldap3  # noqa: F401, PLC0415 - an extra
    except ImportError as error:
        problem = f"the package {error.name} is not installed; it comes with the extra licorne[ldap]"
        raise ResolverSettingsError((problem,)) from error


@final
class LdapResolver:
    """Asks a directory server for the groups of a user.

    Every user is known, and is in the group of the same name; the directory has the other groups. For each
    look-up a connection is made, bound and closed. References to other servers are not followed.

    Args:
        settings: The address of the server, and the search.

    Raises:
        ResolverSettingsError: The extra `ldap` is not installed.
    """

    __slots__ = ("_settings",)

    def __init__(self, settings: LdapSettings) -> None:
        check_ldap_is_installed()
        self._settings = settings

    def groups_of(self, user: str) -> tuple[str, ...]:
        """Return the group with the name of the user, then the groups of the directory by name.

        Raises:
            ResolverUnavailableError: The server cannot be asked.
            UserResolutionError: The search finds more than one user.
        """
        try:
            entries = self._search(user)
        except Exception as error:  # on bad data ldap3 raises errors of any class, also an IndexError
            raise ResolverUnavailableError(
                f"user {user!r}: {self._settings.url} cannot be asked: {_words(error)}"
            ) from error
        if len(entries) > 1:
            raise UserResolutionError(f"user {user!r}: {self._settings.url} has more than one such user")
        found = {name for entry in entries for value in entry if (name := group_name(value)) is not None}
        return (user, *sorted(found - {user}))

    def _search(self, user: str) -> list[list[str]]:
        """Return the values of the group attribute for each entry that was found, two entries at most."""
        from ldap3 import SUBTREE, Connection  # noqa: PLC0415 - an extra
        from ldap3.core.exceptions import LDAPException, LDAPSizeLimitExceededResult  # noqa: PLC0415 - an extra
        from ldap3.utils.conv import escape_filter_chars  # noqa: PLC0415 - an extra

        settings = self._settings
        connection = Connection(
            _server(settings),  # A new one each time: it keeps the state of its connection.
            user=settings.bind_user,
            password=settings.bind_password,
            read_only=True,
            raise_exceptions=True,
            receive_timeout=STEP_SECONDS,
            auto_referrals=False,
        )
        try:
            connection.bind()
            try:
                connection.search(
                    settings.base_name,
                    settings.filter.replace(PLACE_OF_THE_USER, escape_filter_chars(user)),
                    search_scope=SUBTREE,
                    attributes=list(settings.return_attributes),
                    size_limit=2,
                    time_limit=STEP_SECONDS,
                )
            except LDAPSizeLimitExceededResult:
                return [[], []]
            return list(self._entries(connection))
        finally:
            with suppress(LDAPException, OSError):  # The answer is valid, even if the server goes down now.
                connection.unbind()
            if connection.socket is not None:  # It could not connect, and ldap3 does not close the socket.
                connection.socket.close()

    def _entries(self, connection: Connection) -> Iterable[list[str]]:
        for entry in connection.response or ():
            if entry["type"] == "searchResEntry":
                values = entry["raw_attributes"].get(self._settings.group_attribute, ())
                yield [value.decode("utf-8", "replace") for value in values]


def _server(settings: LdapSettings) -> Server:
    """Describe the server; nothing is connected yet."""
    from ldap3 import NONE, Server  # noqa: PLC0415 - an extra

    return Server(
        settings.host,
        port=settings.port,
        use_ssl=settings.ssl,
        tls=_tls(settings),
        get_info=NONE,
        connect_timeout=STEP_SECONDS,
    )


def _tls(settings: LdapSettings) -> Tls:
    """Return TLS as Python does it: ldap3 compares the host by itself, and does not know addresses."""
    from ldap3 import Tls  # noqa: PLC0415 - an extra

    class StandardTls(Tls):
        def wrap_socket(self, connection: Connection, do_handshake: bool = False) -> None:  # noqa: FBT001, FBT002 - as ldap3 calls it
            context = ssl.create_default_context()
            if settings.insecure:
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE
            connection.socket = context.wrap_socket(
                connection.socket, server_hostname=settings.host, do_handshake_on_connect=do_handshake
            )

    return StandardTls()


def _words(error: Exception) -> str:
    """Return the text of an error, in one line."""
    from ldap3.core.exceptions import LDAPException, LDAPOperationResult  # noqa: PLC0415 - an extra

    if isinstance(error, LDAPOperationResult):
        return " ".join(f"{error.description} {error.message or ''}".split())
    text = " ".join(str(error).split())
    return text if isinstance(error, LDAPException) and text else f"{type(error).__name__}: {text}"


_PLAIN: Final = re.compile(r"[^=\\,+]+")
# There is one way to match a text: if `\s*` and a value could share out blanks, 30 parts would take years.
_COMMON_NAME: Final = re.compile(
    r"""(?:[A-Za-z0-9.-]+ \s* = (?:\\. | [^\\,+])* \+ \s*)*?   # other parts of the first component
        (?:cn | 2\.5\.4\.3) \s* = \s*+
        (?P<value> (?:\\. | [^\\,+])*)
        (?: [,+] | \Z)""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
_ESCAPED: Final = re.compile(r"(?:\\[0-9A-Fa-f]{2})+|\\.| +", re.DOTALL)


def group_name(value: str) -> str | None:
    """Return the name of a group, `None` if the value names none."""
    value = value.strip()
    if _PLAIN.fullmatch(value):
        return value
    match = _COMMON_NAME.match(value)
    name = _unescaped(match["value"]) if match else ""
    return name or None


def _unescaped(value: str) -> str:
    r"""Resolve `\,` and the bytes of `\C3\BC`; blanks at the end count only where they are escaped."""

    def character(match: re.Match[str]) -> str:
        text = match[0]
        if not text.startswith("\\"):
            return "" if match.end() == len(value) else text
        if len(text) == 2:
            return text[1]
        return bytes.fromhex(text.replace("\\", "")).decode("utf-8", "replace")

    return _ESCAPED.sub(character, value)
