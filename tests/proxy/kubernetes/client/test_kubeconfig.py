"""Files of kubectl: what is taken from them, and what the errors say."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Final

import pytest

from licorne.model.errors import LicorneError
from licorne.proxy.kubernetes.client.credentials import Credentials, Secret
from licorne.proxy.kubernetes.client.kubeconfig import kubeconfig_credentials, kubeconfig_files

HEAD: Final = """apiVersion: v1
kind: Config
current-context: work
contexts:
- {name: work, context: {cluster: c, user: u, namespace: jobs}}
- {name: play, context: {cluster: c}}
"""
PEM: Final = "-----BEGIN SOMETHING-----\nä\n"
DATA: Final = base64.b64encode(PEM.encode()).decode()


def read(
    folder: Path, cluster: str, user: str = "{}", context: str | None = None, head: str = HEAD
) -> Credentials:
    """Return the credentials of a file with one cluster and one user, as YAML in flow style."""
    path = folder / "config"
    text = f"{head}clusters: [{{name: c, cluster: {cluster}}}]\nusers: [{{name: u, user: {user}}}]\n"
    path.write_text(text, encoding="utf-8")
    return kubeconfig_credentials([path], context, {})


def test_the_current_context_has_a_cluster_a_user_and_a_namespace(tmp_path: Path) -> None:
    """All of what a connection needs."""
    found = read(
        tmp_path, f"{{server: 'https://a:1/', certificate-authority-data: {DATA}}}", "{token: secret}"
    )

    parts = found.server, found.namespace, found.authorities, found.identity.secret(), found.verifies_server
    assert parts == ("https://a:1", "jobs", PEM, Secret("secret"), True)


def test_a_context_that_is_named_is_taken(tmp_path: Path) -> None:
    """This one has neither a user nor a namespace."""
    found = read(tmp_path, "{server: 'http://a'}", "{token: secret}", "play")

    assert ("default", Secret()) == (found.namespace, found.identity.secret())


def test_a_server_need_not_be_verified_and_may_have_another_name(tmp_path: Path) -> None:
    """Both are options of the cluster."""
    cluster = "{server: 'https://10.0.0.1', insecure-skip-tls-verify: true, tls-server-name: api.example}"

    found = read(tmp_path, cluster)

    assert (False, "api.example") == (found.verifies_server, found.tls_name)


SECRETS: Final[dict[str, tuple[str, Secret]]] = {
    "a token": ("{token: secret}", Secret("secret")),
    "a token in a file": ("{tokenFile: pem/token}", Secret("in a file")),
    "a token goes before one in a file": ("{token: secret, tokenFile: pem/token}", Secret("secret")),
    "a certificate and a key in files": (
        "{client-certificate: pem/it, client-key: pem/it}",
        Secret(None, PEM, PEM),
    ),
    "a certificate and a key as data": (
        f"{{client-certificate-data: {DATA}, client-key-data: {DATA}, client-key: missing}}",
        Secret(None, PEM, PEM),
    ),
    "a certificate with a token in a file": (
        "{client-certificate: pem/it, client-key: pem/it, tokenFile: pem/token}",
        Secret("in a file", PEM, PEM),
    ),
    "nothing": ("null", Secret()),
}


@pytest.mark.parametrize("case", SECRETS.values(), ids=SECRETS)
def test_a_user_has(tmp_path: Path, case: tuple[str, Secret]) -> None:
    """Paths begin at the folder of the file."""
    user, expected = case
    (tmp_path / "pem").mkdir()
    (tmp_path / "pem" / "it").write_text(PEM, encoding="utf-8")
    (tmp_path / "pem" / "token").write_text("in a file\n")

    assert expected == read(tmp_path, "{server: 'https://a'}", user).identity.secret()


HTTPS: Final = "{server: 'https://a'}"
EXEC: Final = "apiVersion: client.authentication.k8s.io/v1"
ERRORS: Final[dict[str, tuple[str, str, str]]] = {
    "a value of another type": (
        "{server: 7}",
        "{}",
        "config:7:40: clusters[0].cluster.server: Expected `str`, got `int`",
    ),
    "a server that is missing": (
        "{}",
        "{}",
        "config:7:31: clusters[0].cluster.server: '' is not an address that begins with https:// or http://",
    ),
    "a proxy": (
        "{server: 'https://a', proxy-url: 'http://p'}",
        "{}",
        "config:7:64: clusters[0].cluster.proxy-url: 'http://p': proxies are not supported",
    ),
    "authorities that are missing": (
        "{server: 'https://a', certificate-authority: ca.pem}",
        "{}",
        (
            "config:7:76: clusters[0].cluster.certificate-authority: 'ca.pem' cannot be read: "
            "No such file or directory"
        ),
    ),
    "data that is no base64": (
        HTTPS,
        "{client-key-data: '*'}",
        (
            "config:8:43: users[0].user.client-key-data: not the base64 of a PEM text: "
            "Only base64 data is allowed"
        ),
    ),
    "a certificate without its key": (
        HTTPS,
        f"{{client-certificate-data: {DATA}}}",
        "config:8:25: users[0].user.client-key: is missing: a certificate and its key belong together",
    ),
    "a password": (
        HTTPS,
        "{username: me, password: it}",
        (
            "config:8:36: users[0].user.username: not supported; a user has token, tokenFile, "
            "client-certificate with client-key, and exec"
        ),
    ),
    "another user to act as": (
        HTTPS,
        "{token: t, as: admin}",
        (
            "config:8:40: users[0].user.as: not supported; a user has token, tokenFile, "
            "client-certificate with client-key, and exec"
        ),
    ),
    "a plugin of an unknown version": (
        HTTPS,
        "{exec: {command: it, apiVersion: v7}}",
        (
            "config:8:58: users[0].user.exec.apiVersion: 'v7' is not known; known are "
            "client.authentication.k8s.io/v1 and client.authentication.k8s.io/v1beta1"
        ),
    ),
    "a plugin that asks on the terminal": (
        HTTPS,
        f"{{exec: {{command: it, {EXEC}, interactiveMode: Always}}}}",
        (
            "config:8:108: users[0].user.exec.interactiveMode: 'Always': a plugin that asks on the terminal "
            "is not supported"
        ),
    ),
    "a plugin without a command": (
        HTTPS,
        f"{{exec: {{{EXEC}}}}}",
        "config:8:32: users[0].user.exec: Object missing required field `command`",
    ),
}


@pytest.mark.parametrize("case", ERRORS.values(), ids=ERRORS)
def test_an_error_names_file_line_key_and_value(tmp_path: Path, case: tuple[str, str, str]) -> None:
    """It says what is wrong with it."""
    cluster, user, text = case

    with pytest.raises(LicorneError) as caught:
        read(tmp_path, cluster, user)

    assert f"{tmp_path}/{text}" == str(caught.value)


MISSING: Final[dict[str, tuple[str, str | None, str]]] = {
    "a context that is not there": (HEAD, "other", ": there is no context 'other'; there are work, play"),
    "no current context": ("", None, ": current-context is missing, and no context is given"),
    "a cluster that is not there": (
        "current-context: x\ncontexts: [{name: x, context: {cluster: d}}]\n",
        None,
        ":2:41: contexts[0].context.cluster: there is no cluster 'd'; there are c",
    ),
    "a user that is not there": (
        "current-context: x\ncontexts: [{name: x, context: {cluster: c, user: v}}]\n",
        None,
        ":2:50: contexts[0].context.user: there is no user 'v'; there are u",
    ),
    "a file that is a list": ("[1]", None, ": not a kubeconfig: Expected `object`, got `array`"),
}


@pytest.mark.parametrize("case", MISSING.values(), ids=MISSING)
def test_what_is_missing_is_named(tmp_path: Path, case: tuple[str, str | None, str]) -> None:
    """With what is there."""
    head, context, text = case
    path = tmp_path / "config"
    rest = f"clusters: [{{name: c, cluster: {HTTPS}}}]\nusers: [{{name: u}}]\n"
    path.write_text(head if head.startswith("[") else head + rest)

    with pytest.raises(LicorneError) as caught:
        kubeconfig_credentials([path], context, {})

    assert f"{path}{text}" == str(caught.value)


def test_of_several_files_the_first_that_has_an_entry_counts(tmp_path: Path) -> None:
    """The current context, each cluster and each user may come from another file, with paths of its own."""
    first, second = tmp_path / "first", tmp_path / "second" / "config"
    second.parent.mkdir()
    first.write_text("clusters: [{name: c, cluster: {server: 'https://first'}}]\nusers: null\n")
    second.write_text(
        f"{HEAD}clusters: [{{name: c, cluster: {{server: 'https://second'}}}}]\n"
        "users: [{name: u, user: {tokenFile: t}}]\n"
    )
    (second.parent / "t").write_text("secret")

    found = kubeconfig_credentials([first, second], None, {})

    assert ("https://first", Secret("secret")) == (found.server, found.identity.secret())


def test_files_that_are_missing_are_left_out(tmp_path: Path) -> None:
    """As kubectl does; without the variable there is one in the home."""
    there, home = tmp_path / "a", tmp_path / ".kube" / "config"
    home.parent.mkdir()
    there.touch()
    home.touch()
    names = os.pathsep.join(["", str(tmp_path / "missing"), str(there)])

    found = [kubeconfig_files({"HOME": str(tmp_path), "KUBECONFIG": value}) for value in (names, "")]

    assert found == [[there], [home]]
