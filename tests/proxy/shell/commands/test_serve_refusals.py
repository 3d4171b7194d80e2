"""What `licorne serve` refuses before it listens: addresses, certificates, and rules who is let in."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.proxy.certificates import Certificates
from support.proxy.processes import serving
from typer.testing import CliRunner

from licorne.proxy.shell.command_line import application

SECRET = "sesame-open-sesame"  # noqa: S105 - of these tests alone


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Make an authority, and a certificate of it for the server."""
    return Certificates(tmp_path_factory.mktemp("certificates"))


def refused(*arguments: object) -> str:
    """Return what the command says; it listens nowhere."""
    result = CliRunner().invoke(application, ["serve", *map(str, arguments)])

    assert (2, "") == (result.exit_code, result.stdout)
    return result.stderr.removeprefix("licorne serve: ").rstrip("\n")


def refused_rules(text: str, folder: Path) -> str:
    """Return what the command says about a file of rules; its name is left out."""
    file = folder / "access.yaml"
    file.write_text(text, encoding="utf-8")
    return refused("--access", file).replace(f"{file}:", "")


# ------------------------------------------------------------------------------------------ addresses


@pytest.mark.parametrize("address", ["0.0.0.0:0", "[::]:0", "192.0.2.1:0", "scheduler.example:0"])
def test_an_address_that_others_can_reach_needs_tls(address: str) -> None:
    """A name counts as such an address; only `localhost` does not."""
    assert (
        f"{address} can be reached from other machines: give --tls-cert and --tls-key, "
        "or --insecure-public if that is intended"
    ) == refused("--address", address)


@pytest.mark.parametrize("address", ["127.0.0.1:0", "127.9.9.9:0", "localhost:0"])
def test_an_address_of_this_machine_needs_no_tls(address: str) -> None:
    """All of 127.0.0.0/8 is loopback."""
    with serving("--address", address) as server:
        assert server.port > 0


def test_what_others_can_reach_is_listened_on_where_that_is_meant() -> None:
    """By an option that says what it does."""
    with serving("--address", "0.0.0.0:0", "--insecure-public") as server:
        assert server.address.startswith("0.0.0.0:")


def test_what_others_can_reach_is_listened_on_with_tls(certificates: Certificates) -> None:
    """No other option is needed then."""
    files = ("--tls-cert", str(certificates.server), "--tls-key", str(certificates.server_key))
    with serving("--address", "0.0.0.0:0", *files) as server:
        assert server.port > 0


@pytest.mark.parametrize("address", ["127.0.0.1", "::1:0", "127.0.0.1:65536", ":0", "a b"])
def test_what_is_no_address_is_quoted(address: str) -> None:
    """With the form that is wanted."""
    said = refused("--address", address)

    assert f"{address!r} is not an address: expected HOST:PORT, for example 127.0.0.1:3333 or [::1]:0" == said


# --------------------------------------------------------------------------------------- certificates


def test_a_certificate_and_its_key_belong_together(certificates: Certificates) -> None:
    """Neither is taken alone, nor a client authority without them."""
    text = "--tls-cert and --tls-key belong together: only one of them is given"
    assert text == refused("--tls-cert", certificates.server)
    assert text == refused("--tls-key", certificates.server_key)
    text = "--client-ca needs TLS: give --tls-cert and --tls-key, too"
    assert text == refused("--client-ca", certificates.authority)


def test_a_file_that_cannot_be_read_is_named(certificates: Certificates, tmp_path: Path) -> None:
    """A missing file, and a folder."""
    for path, why in ((tmp_path / "missing.pem", "No such file or directory"), (tmp_path, "Is a directory")):
        text = f"{path}: cannot be read: {why}"

        assert text == refused("--tls-cert", path, "--tls-key", certificates.server_key)
        assert text == refused("--tls-cert", certificates.server, "--tls-key", path)


@pytest.mark.parametrize("content", [b"", b"hello\n", bytes(range(256))])
def test_a_file_without_pem_is_named(content: bytes, certificates: Certificates, tmp_path: Path) -> None:
    """It is empty, text of another kind, or no text."""
    file = tmp_path / "no.pem"
    file.write_bytes(content)
    said = refused("--tls-cert", file, "--tls-key", certificates.server_key)

    assert f"{file}: no PEM: expected a line that begins with -----BEGIN" == said


def test_a_key_of_another_certificate_is_refused(certificates: Certificates) -> None:
    """Both files are named: either may be the wrong one."""
    _, other = certificates.write("other", certificates.issue("localhost"))
    said = refused("--tls-cert", certificates.server, "--tls-key", other)

    assert said.startswith(
        f"{certificates.server}, {other}: expected a certificate and its key without a password"
    )
    assert "key values mismatch" in said


def test_pem_of_which_a_part_is_missing_is_refused(certificates: Certificates, tmp_path: Path) -> None:
    """The name of the file comes first, and not that of the address."""
    cut = tmp_path / "cut.pem"
    cut.write_bytes(certificates.server.read_bytes()[:100])
    pair = ("--tls-cert", certificates.server, "--tls-key", certificates.server_key)

    assert refused("--tls-cert", cut, "--tls-key", certificates.server_key).startswith(f"{cut}, ")
    assert refused("--tls-cert", certificates.server, "--tls-key", cut).startswith(
        f"{certificates.server}, {cut}: "
    )
    assert refused(*pair, "--client-ca", cut).startswith(f"{cut}: expected certificates: ")


# ---------------------------------------------------------------------------------------------- rules


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "1:1: document: expected a mapping with names and values"),
        ("tokens: []\n", "1:1: document: neither tokens nor certificates: no peer would be let in"),
        (f"tokens: {SECRET}\n", "1:9: tokens: Input should be a valid list"),
        ("tokens:\n  - rm: a\n", "2:5: tokens[0].token: this value is missing"),
        (f"tokens:\n  - token: {SECRET}\n    rm: 7\n", "3:9: tokens[0].rm: Input should be a valid string"),
        (
            f"tokens:\n  - token: {SECRET}\n  - {{token: {SECRET}, rm: b}}\n",
            "3:13: tokens[1].token: tokens[0] is the same token",
        ),
        (
            "certificates:\n  - {name: a, rm: b}\n  - {name: a, rm: c}\n",
            "3:12: certificates[1].name: certificates[0] is for the same name",
        ),
    ],
)
def test_wrong_rules_are_refused_with_their_place(text: str, said: str, tmp_path: Path) -> None:
    """Line and column, and the way to the value."""
    assert said == refused_rules(text, tmp_path)


def test_all_that_is_wrong_with_rules_is_said(tmp_path: Path) -> None:
    """In order of the file."""
    said = refused_rules(f"tokens:\n  - tokne: {SECRET}\ncertificates:\n  - name: ''\n", tmp_path)

    assert [
        "2:5: tokens[0].token: this value is missing",
        "2:12: tokens[0].?: a value of this name is not known here",
        "4:11: certificates[0].name: String should have at least 1 character",
    ] == said.splitlines()


@pytest.mark.parametrize("token", ["fifteen-letters", "with spaces in between", "ümlaut-ümlaut-ümlaut"])
def test_a_token_that_is_short_or_fits_in_no_header_is_refused(token: str, tmp_path: Path) -> None:
    """It could be guessed, or never be sent."""
    said = refused_rules(f"tokens:\n  - token: {token}\n", tmp_path)

    assert "2:12: tokens[0].token: a token has 16 visible ASCII characters at least, and no spaces" == said


@pytest.mark.parametrize(
    "text",
    [
        f"tokens:\n  - {SECRET}\n",
        f"tokens:\n  - {SECRET}: cluster-a\n",
        f"tokens:\n  {SECRET}: cluster-a\n",
        f"tokens:\n  {SECRET}: cluster-a\n  {SECRET}: cluster-b\n",
        f"tokens: *{SECRET}\n",
        f"tokens:\n  - token: '{SECRET}\n",
        f"tokens:\n  - token {SECRET}\n    rm: a\n",
        f"{SECRET}: a\n",
        "tokens:\n  - 12345678901234567890: cluster-a\n",
    ],
)
def test_no_token_is_printed_wherever_it_stands(text: str, tmp_path: Path) -> None:
    """Also in the place of a key, of an anchor, or in what is no YAML."""
    said = refused_rules(text, tmp_path)

    assert ("sesame" in said, "12345" in said) == (False, False)


def test_rules_for_certificates_need_an_authority(tmp_path: Path) -> None:
    """Without one no certificate is asked for, and nobody could be let in by it."""
    said = refused_rules("certificates:\n  - name: shim.example\n", tmp_path)

    assert said.endswith("its certificates need --client-ca: nothing else vouches for them")


def test_a_file_of_rules_that_is_missing_is_named(tmp_path: Path) -> None:
    """As every file that a command reads."""
    assert str(tmp_path / "access.yaml") in refused("--access", tmp_path / "access.yaml")
