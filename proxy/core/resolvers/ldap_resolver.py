"""The resolver that asks a directory server. It needs the extra `ldap`."""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Final, final

from .ldap_settings import PLACE_OF_THE_USER
from .resolver import ResolverSettingsError, ResolverUnavailableError, UserResolutionError

if TYPE_CHECKING:
    from ldap3 import Connection, Server, Tls

    from .ldap_settings import LdapSettings

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
