"""The resolver that asks a directory server: a real one, OpenLDAP's."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.proxy.directory_server import BASE, Directory
from support.proxy.ldap_folders import a_settings_folder

from licorne.proxy.core.resolvers.ldap import LdapResolver, read_ldap_settings
from licorne.proxy.core.resolvers.partition_resolvers import TimedResolver
from licorne.proxy.core.resolvers.resolver import ResolverUnavailableError, UserResolutionError

if TYPE_CHECKING:
    Ask = Callable[..., tuple[str, ...]]


@pytest.fixture
def ask(directory: Directory, tmp_path: Path) -> Ask:
    """Return what looks a user up, with other settings than the usual ones where they are given."""

    def groups_of(user: str, **settings: str) -> tuple[str, ...]:
        folder = a_settings_folder(tmp_path, **{**directory.server.settings(), **settings})
        return LdapResolver(read_ldap_settings(folder)).groups_of(user)

    return groups_of


@pytest.fixture
def secure(directory: Directory) -> dict[str, str]:
    """Return the settings of TLS; the certificate is for `localhost`."""
    return {"Host": "localhost", "Port": str(directory.server.secure_port), "SSL": "true"}


def refusal(ask: Ask, user: str = "ada", **settings: str) -> str:
    with pytest.raises(ResolverUnavailableError) as caught:
        ask(user, **settings)
    return str(caught.value)


# ------------------------------------------------------------------------------------------- groups


@pytest.mark.parametrize(
    ("user", "settings", "groups"),
    [
        # Groups are in the order of their names, which a directory does not promise.
        pytest.param("ada", {}, ("Müller", "Smith, Joe", "dev", "ops"), id="the own group comes first"),
        pytest.param("lone", {}, (), id="a user in no group has the own one"),
        # The directory tells groups; who may submit is the RM's business.
        pytest.param("zed", {}, (), id="a user whom the directory does not have is known all the same"),
        *(
            pytest.param(name, {}, (), id=f"{name!r} is a name and no filter: a star does not find all users")
            for name in ("*", "a*", "*)(uid=ada", "\\2a", "zero\0byte")
        ),
        pytest.param("odd(*)", {}, ("Müller",), id="special characters of a name are escaped"),
        pytest.param(
            "twin", {"BaseDN": f"ou=guests,{BASE}"}, (), id="the base tells two users of one name apart"
        ),
        pytest.param(
            "bob", {"Filter": "(|(uid=%s)(mail=%s))"}, ("dev",), id="each place of the filter gets the name"
        ),
        pytest.param(
            "ada",
            {"GroupAttr": "OBJECTclass", "ReturnAttr": "cn, objectClass"},
            ("inetOrgPerson",),
            id="the configured attribute is read, in any case of letters",
        ),
    ],
)
def test_a_user_is_in_the_group_of_the_same_name_and_in_those_of_the_directory(
    ask: Ask, user: str, settings: dict[str, str], groups: tuple[str, ...]
) -> None:
    """Plain values are names of groups."""
    assert (user, *groups) == ask(user, **settings)


@pytest.mark.parametrize(
    ("user", "settings", "text"),
    [
        ("twin", {}, r"^user 'twin': ldap://127.*has more than one such user$"),
        ("inetOrgPerson", {"Filter": "(objectClass=%s)"}, "more than one such user"),
    ],
)
def test_a_name_that_fits_several_users_is_refused(
    ask: Ask, user: str, settings: dict[str, str], text: str
) -> None:
    """The users cannot be distinguished, and the groups of all of them are too many."""
    with pytest.raises(UserResolutionError, match=text):
        ask(user, **settings)


# ----------------------------------------------------------------------------------------- failures


@pytest.mark.parametrize(
    ("settings", "cause"),
    [
        ({"BindPassword": "wrong"}, "invalidCredentials"),
        # A misspelt base would otherwise put everybody into no group.
        ({"BaseDN": "ou=nowhere,dc=example,dc=com"}, "noSuchObject"),
    ],
)
def test_a_refusal_of_the_server_is_a_failure_with_its_cause(
    ask: Ask, settings: dict[str, str], cause: str
) -> None:
    """The password is not in the message."""
    said = refusal(ask, **settings)

    assert said.startswith("user 'ada': ldap://127.0.0.1:")
    assert said.endswith(f"cannot be asked: {cause}")


def test_a_server_that_is_not_there_is_a_failure_with_its_cause(ask: Ask) -> None:
    """A port that is taken and does not listen refuses."""
    with closing(socket.socket()) as deaf:
        deaf.bind(("127.0.0.1", 0))

        assert "Connection refused" in refusal(ask, Port=str(deaf.getsockname()[1]))


def test_a_server_that_does_not_answer_is_not_waited_for_too_long(tmp_path: Path) -> None:
    """It takes the connection and says nothing."""
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        folder = a_settings_folder(tmp_path, Host="127.0.0.1", Port=str(silent.getsockname()[1]))
        resolver = TimedResolver(LdapResolver(read_ldap_settings(folder)), timeout_seconds=0.05)

        with pytest.raises(ResolverUnavailableError, match=r"^user 'ada': no answer within 0\.05 s$"):
            resolver.groups_of("ada")


@pytest.mark.parametrize(
    ("answer", "cause"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "session terminated by server"),
        (b"", "session terminated by server"),
        (b"\x30\x03\x02\x01\x05", "IndexError: list index out of range"),
    ],
)
def test_a_server_that_talks_nonsense_is_a_failure(tmp_path: Path, answer: bytes, cause: str) -> None:
    """Whatever the library makes of it."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        folder = a_settings_folder(tmp_path, Host="127.0.0.1", Port=str(listener.getsockname()[1]))
        talker = threading.Thread(target=_answer_once, args=(listener, answer))
        talker.start()
        with pytest.raises(ResolverUnavailableError) as caught:
            LdapResolver(read_ldap_settings(folder)).groups_of("ada")
        talker.join()

    assert str(caught.value).endswith(f"cannot be asked: {cause}")


def _answer_once(listener: socket.socket, answer: bytes) -> None:
    connection, _ = listener.accept()
    with closing(connection):
        connection.recv(1000)
        connection.sendall(answer)


# ---------------------------------------------------------------------------------------------- TLS


def test_a_certificate_of_a_known_authority_is_good(
    ask: Ask, directory: Directory, secure: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The authorities are those of the system or of `SSL_CERT_FILE`."""
    monkeypatch.setenv("SSL_CERT_FILE", str(directory.authority))

    assert ("bob", "dev") == ask("bob", **secure)


def test_a_certificate_of_an_unknown_authority_is_refused(ask: Ask, secure: dict[str, str]) -> None:
    """Nothing has been sent to the server by then."""
    said = refusal(ask, **secure)

    assert said.startswith("user 'ada': ldaps://localhost:")
    assert "CERTIFICATE_VERIFY_FAILED" in said


def test_a_certificate_for_another_host_is_refused(
    ask: Ask, directory: Directory, secure: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is for `localhost`, not for its address."""
    monkeypatch.setenv("SSL_CERT_FILE", str(directory.authority))

    assert "IP address mismatch" in refusal(ask, **{**secure, "Host": "127.0.0.1"})


def test_who_wants_to_be_insecure_takes_any_certificate(ask: Ask, secure: dict[str, str]) -> None:
    """Neither the authority nor the host is looked at."""
    assert ("bob", "dev") == ask("bob", **{**secure, "Host": "127.0.0.1", "Insecure": "true"})


def test_tls_to_a_port_without_is_a_failure(ask: Ask, secure: dict[str, str], directory: Directory) -> None:
    """As is any server that speaks something else."""
    assert "cannot be asked" in refusal(ask, **{**secure, "Port": str(directory.server.port)})
