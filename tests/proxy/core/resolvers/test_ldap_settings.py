"""The settings of the directory server: what they may be, and what is said about bad ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from loguru import logger
from support.proxy.ldap_folders import SETTINGS, a_settings_folder

from licorne.proxy.core.resolvers.ldap import FILE_BYTES_MAX, LdapSettings, read_ldap_settings
from licorne.proxy.core.resolvers.resolver import ResolverSettingsError


def problems_of(folder: Path) -> list[str]:
    """Return what is wrong with the settings in a folder, without the path of the folder."""
    with pytest.raises(ResolverSettingsError) as caught:
        read_ldap_settings(folder)
    return [problem.removeprefix(f"{folder}/") for problem in caught.value.problems]


@pytest.fixture
def remarks() -> Iterator[list[str]]:
    """Return what is logged meanwhile."""
    heard: list[str] = []
    handler = logger.add(lambda message: heard.append(message.record["message"]), level="WARNING")
    logger.enable("licorne")
    yield heard
    logger.disable("licorne")
    logger.remove(handler)


def test_each_file_is_a_setting(tmp_path: Path) -> None:
    """Without the two optional ones there is no TLS."""
    expected = LdapSettings(
        host="localhost",
        port=389,
        base_name="dc=example,dc=com",
        filter="(&(objectClass=person)(uid=%s))",
        group_attribute="memberOf",
        return_attributes=("memberOf",),
        bind_user="cn=admin,dc=example,dc=com",
        bind_password=SETTINGS["BindPassword"],
        insecure=False,
        ssl=False,
    )
    assert expected == read_ldap_settings(a_settings_folder(tmp_path))


def test_blanks_around_a_value_do_not_count(tmp_path: Path) -> None:
    """Editors end a file with a line break."""
    folder = a_settings_folder(tmp_path, Host=" ldap.example.com\n", BindPassword="\tsecret \r\n")

    settings = read_ldap_settings(folder)

    assert ("ldap.example.com", "secret") == (settings.host, settings.bind_password)


def test_what_a_mount_of_secrets_brings_along_is_no_setting(tmp_path: Path, remarks: list[str]) -> None:
    """The files are links into a folder that begins with two dots."""
    folder = a_settings_folder(tmp_path, Host=None, Port=None)
    real = folder / "..2026_11_21"
    real.mkdir()
    (folder / "..data").symlink_to(real)
    for name in ("Host", "Port"):
        (real / name).write_text(SETTINGS[name])
        (folder / name).symlink_to(folder / "..data" / name)
    (folder / "..stamp").write_text("2026")
    (folder / "lost+found").mkdir()

    assert "ldap://localhost:389" == read_ldap_settings(folder).url
    assert [] == remarks


@pytest.mark.parametrize(
    ("host", "ssl", "url"),
    [
        ("10.0.0.1", "false", "ldap://10.0.0.1:389"),
        ("::1", "F", "ldap://[::1]:389"),
        ("a-b.example", "true", "ldaps://a-b.example:389"),
    ],
)
def test_the_server_can_be_named_or_numbered(tmp_path: Path, host: str, ssl: str, url: str) -> None:
    """A host is a name or an address of either kind."""
    assert url == read_ldap_settings(a_settings_folder(tmp_path, Host=host, SSL=ssl)).url


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("Host", "ldap://localhost", "'ldap://localhost' is not a name or address of a host"),
        ("Host", "localhost:389", "'localhost:389' is not a name or address of a host"),
        ("Host", "two hosts", "'two hosts' is not a name or address of a host"),
        ("Host", "", "the file is empty"),
        ("Port", "0", "'0' is not a port, which is a number from 1 to 65535"),
        ("Port", "65536", "'65536' is not a port"),
        ("Port", "ldap", "'ldap' is not a port"),
        ("Port", "+389", "'+389' is not a port"),
        ("Port", "3" * 5000, "is not a port"),
        ("BaseDN", "example.com", "'example.com' is not a distinguished name: attribute type not present"),
        ("BaseDN", "dc=a,,dc=b", "'dc=a,,dc=b' is not a distinguished name"),
        ("BaseDN", " ", "the file is empty"),
        ("Filter", "(uid=bob)", "'(uid=bob)' has no %s, which stands for the name of the user"),
        ("Filter", "(&(uid=%s)", "'(&(uid=%s)' is not a search filter: invalid filter"),
        ("Filter", "(uid=%s))", "is not a search filter"),
        ("Filter", "uid=%s", "is not a search filter"),
        ("Filter", "", "the file is empty"),
        ("GroupAttr", "member of", "'member of' is not a name of an attribute"),
        ("GroupAttr", "", "the file is empty"),
        ("ReturnAttr", "memberOf,", "the file is empty"),
        ("ReturnAttr", "memberOf,*", "'*' is not a name of an attribute"),
        ("ReturnAttr", "cn,mail", "'cn,mail' does not have the attribute of GroupAttr, 'memberOf'"),
        ("BindUser", "", "the file is empty"),
        ("BindUser", "cn=admin\nx", "holds a line break or another control character"),
        ("BindPassword", "\n", "the file is empty"),
        ("Insecure", "flase", "'flase' is neither true nor false"),
        ("SSL", "yes", "'yes' is neither true nor false"),
        ("SSL", "", "the file is empty"),
    ],
)
def test_a_bad_setting_is_refused_by_name_and_value(tmp_path: Path, name: str, value: str, text: str) -> None:
    """The text begins with the file; there is one text a setting."""
    (problem,) = problems_of(a_settings_folder(tmp_path, **{name: value}))

    assert problem.startswith(f"{name}: ")
    assert text in problem


@pytest.mark.parametrize("name", SETTINGS)
def test_each_of_the_first_eight_settings_is_required(tmp_path: Path, name: str) -> None:
    """None of them has a default: the nominal ones of the recorded core could not come into effect."""
    assert [f"{name}: the file is missing"] == problems_of(a_settings_folder(tmp_path, **{name: None}))


def test_all_bad_settings_are_reported_at_once(tmp_path: Path) -> None:
    """Who mends them needs one try."""
    folder = a_settings_folder(tmp_path, Host=None, Port="x", SSL="maybe")

    assert ["Host", "Port", "SSL"] == [problem.split(":")[0] for problem in problems_of(folder)]


def test_the_password_is_never_shown(tmp_path: Path) -> None:
    """Neither in an error nor where the settings are written out."""
    settings = read_ldap_settings(a_settings_folder(tmp_path))
    (tmp_path / "ldap" / "BindPassword").write_text("open\0sesame")

    said = " ".join([repr(settings), *problems_of(tmp_path / "ldap")])

    assert "BindPassword: holds a line break or another control character" in said
    assert "sesame" not in said


def test_a_misspelt_setting_is_refused(tmp_path: Path) -> None:
    """To pass over `ssl` would send the password in clear."""
    folder = a_settings_folder(tmp_path, ssl="true", Host=None, Hots="localhost")

    assert [
        "Hots: the setting 'Hots' is not known; did you mean 'Host'?",
        "ssl: the setting 'ssl' is not known; did you mean 'SSL'?",
        "Host: the file is missing",
    ] == problems_of(folder)


def test_an_unknown_setting_is_remarked_on(tmp_path: Path, remarks: list[str]) -> None:
    """A folder of secrets may hold something for others."""
    folder = a_settings_folder(tmp_path, **{"ca.crt": "..."})

    read_ldap_settings(folder)

    assert [f"{folder}/ca.crt: the setting 'ca.crt' is not known and not used"] == remarks


@pytest.mark.parametrize(
    ("ssl", "text"),
    [("true", "the certificate of the directory server is not checked"), ("false", "has no effect")],
)
def test_to_be_insecure_is_remarked_on(tmp_path: Path, remarks: list[str], ssl: str, text: str) -> None:
    """With TLS it is a risk, without it has no effect."""
    read_ldap_settings(a_settings_folder(tmp_path, Insecure="1", SSL=ssl))

    assert 1 == len(remarks)
    assert text in remarks[0]


def test_a_folder_that_does_not_exist_is_one_problem(tmp_path: Path) -> None:
    """Eight missing files would say less."""
    with pytest.raises(ResolverSettingsError) as caught:
        read_ldap_settings(tmp_path / "none")

    assert f"{tmp_path / 'none'}: No such file or directory" == str(caught.value)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"caf\xe9", "the file is not UTF-8"),
        (b"a" * (FILE_BYTES_MAX + 1), "the file has more than 65536 bytes"),
    ],
)
def test_a_file_that_is_no_setting_is_refused(tmp_path: Path, content: bytes, text: str) -> None:
    """It is not said to be missing as well."""
    assert [f"Host: {text}"] == problems_of(a_settings_folder(tmp_path, Host=content))


def test_a_link_to_nowhere_is_refused(tmp_path: Path) -> None:
    """A secret that has gone leaves its link behind."""
    folder = a_settings_folder(tmp_path, Host=None)
    (folder / "Host").symlink_to(folder / "..data" / "Host")

    assert ["Host: No such file or directory"] == problems_of(folder)
