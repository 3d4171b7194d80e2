"""The credentials of a pod, and which of all credentials a program takes."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from licorne.proxy.base.files.input_files import InputError
from licorne.proxy.kubernetes.client.credentials import Secret, TokenFileIdentity, in_cluster_credentials
from licorne.proxy.kubernetes.client.errors import CredentialError
from licorne.proxy.kubernetes.client.kubeconfig import find_credentials

AUTHORITY: Final = "-----BEGIN CERTIFICATE-----\n"
IN_POD: Final = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}
KUBECONFIG: Final = """
current-context: {name}
contexts: [{{name: {name}, context: {{cluster: c}}}}]
clusters: [{{name: c, cluster: {{server: "https://{name}:6443"}}}}]
"""


@pytest.fixture
def account(tmp_path: Path) -> Path:
    """The folder of a service account."""
    folder = tmp_path / "serviceaccount"
    folder.mkdir()
    (folder / "token").write_text("secret\n")
    (folder / "ca.crt").write_text(AUTHORITY)
    (folder / "namespace").write_text("jobs\n")
    return folder


def test_a_pod_has_the_credentials_of_its_service_account(account: Path) -> None:
    """Address, token, authorities and namespace."""
    found = in_cluster_credentials(IN_POD, account)

    assert found is not None
    parts = found.server, found.identity.secret(), found.authorities, found.namespace, found.verifies_server
    assert parts == ("https://10.96.0.1:443", Secret("secret"), AUTHORITY, "jobs", True)


def test_an_address_of_ipv6_is_in_brackets(account: Path) -> None:
    """As URLs have it."""
    found = in_cluster_credentials({**IN_POD, "KUBERNETES_SERVICE_HOST": "fd00::1"}, account)

    assert found is not None
    assert found.server == "https://[fd00::1]:443"


def test_outside_a_pod_there_is_no_service_account(account: Path, tmp_path: Path) -> None:
    """The variables or the token are missing."""
    found = in_cluster_credentials({}, account), in_cluster_credentials(IN_POD, tmp_path)

    assert found == (None, None)


def test_authorities_that_are_none_are_an_error(account: Path) -> None:
    """It names the file."""
    (account / "ca.crt").write_text("")

    with pytest.raises(InputError, match=r"ca\.crt: there is no certificate in it"):
        in_cluster_credentials(IN_POD, account)


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


def test_a_token_of_a_file_is_read_again_after_some_seconds(tmp_path: Path) -> None:
    """Not with each request."""
    path, clock = tmp_path / "token", Clock()
    path.write_text("old")
    identity = TokenFileIdentity(path, now=clock)
    tokens = []
    for _ in range(4):
        tokens.append(identity.secret().token)
        path.write_text("new")
        clock.seconds += 2

    assert tokens == ["old", "old", "old", "new"]


def test_a_token_that_is_refused_is_read_again_at_once(tmp_path: Path) -> None:
    """The identity says whether it has become another one."""
    path = tmp_path / "token"
    path.write_text("old")
    identity = TokenFileIdentity(path, Secret(None, "certificate", "key"), now=Clock())
    old = identity.secret()
    same = identity.renew(old)
    path.write_text("new")

    assert (False, True) == (same, identity.renew(old))
    assert Secret("new", "certificate", "key") == identity.secret()


@pytest.mark.parametrize("content", [None, "", "\n"], ids=["missing", "empty", "blank"])
def test_a_token_stays_while_its_file_is_replaced(tmp_path: Path, content: str | None) -> None:
    """For a moment there may be no token in the file. Without any before, that is an error."""
    path, clock = tmp_path / "token", Clock()
    path.write_text("old")
    identity = TokenFileIdentity(path, now=clock)
    identity.secret()
    path.unlink()
    if content is not None:
        path.write_text(content)
    clock.seconds += 60

    assert "old" == identity.secret().token
    with pytest.raises(InputError, match=f"^{path}: "):
        TokenFileIdentity(path).secret()


def kubeconfig(path: Path, name: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(KUBECONFIG.format(name=name))
    return path


def test_credentials_are_taken_from_the_first_place_that_has_some(account: Path, tmp_path: Path) -> None:
    """A file that is named, the pod, `KUBECONFIG`, the home of the user."""
    home = {"HOME": str(tmp_path)}
    kubeconfig(tmp_path / ".kube" / "config", "home")
    variable = home | {"KUBECONFIG": str(kubeconfig(tmp_path / "variable.yaml", "variable"))}
    named = kubeconfig(tmp_path / "named.yaml", "named")

    found = [
        find_credentials(file, context, environment=environment, service_account_folder=account).server
        for file, context, environment in (
            (named, None, variable | IN_POD),
            (None, None, variable | IN_POD),
            (None, "variable", variable | IN_POD),
            (None, None, variable),
            (None, None, home),
        )
    ]

    assert found == [
        "https://named:6443",
        "https://10.96.0.1:443",
        "https://variable:6443",
        "https://variable:6443",
        "https://home:6443",
    ]


def test_without_credentials_the_error_says_where_they_were_looked_for(tmp_path: Path) -> None:
    """There are three places."""
    environment = {"HOME": str(tmp_path), "KUBECONFIG": "missing.yaml"}

    with pytest.raises(CredentialError) as caught:
        find_credentials(environment=environment, service_account_folder=tmp_path)

    places = "this is not a pod, KUBECONFIG is 'missing.yaml', ~/.kube/config is missing"
    assert f"no credentials for an API server: {places}" == str(caught.value)
