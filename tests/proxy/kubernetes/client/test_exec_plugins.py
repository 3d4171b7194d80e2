"""Plugins that print credentials: what they get, what they print, and when they run again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from licorne.proxy.kubernetes.client.credentials import ExecIdentity, ExecPlugin, Secret
from licorne.proxy.kubernetes.client.errors import CredentialError
from licorne.proxy.kubernetes.client.kubeconfig import kubeconfig_credentials

V1: Final = "client.authentication.k8s.io/v1"
EXPIRES: Final = 1_767_225_600.0
"""2026-01-01T00:00:00Z, seconds since 1970."""


def printing(status: dict[str, object], version: str = V1) -> str:
    """Return what a plugin prints."""
    return json.dumps({"kind": "ExecCredential", "apiVersion": version, "status": status})


@pytest.fixture
def plugin(tmp_path: Path) -> Callable[[str], ExecPlugin]:
    """A plugin that prints a text, in which `$RUNS` is how often it has run."""

    def make(text: str) -> ExecPlugin:
        script = tmp_path / "plugin.sh"
        (tmp_path / "text").write_text(text)
        script.write_text('cd "$0.d"; echo run >> runs; sed "s/RUNS/$(wc -l < runs)/" ../text\n')
        (tmp_path / "plugin.sh.d").mkdir()
        return ExecPlugin(("/bin/sh", str(script)), {"PATH": "/usr/bin:/bin"}, V1)

    return make


def test_a_token_is_kept_until_it_expires(plugin: Callable[[str], ExecPlugin]) -> None:
    """Then the plugin runs again."""
    times = iter([EXPIRES - 1, EXPIRES])
    text = printing({"token": "tRUNS", "expirationTimestamp": "2026-01-01T00:00:00Z"})
    identity = ExecIdentity(plugin(text), now=lambda: next(times))

    tokens = [identity.secret().token for _ in range(3)]

    assert tokens == ["t1", "t1", "t2"]


def test_a_token_without_an_end_is_kept_until_it_is_refused(plugin: Callable[[str], ExecPlugin]) -> None:
    """Of several threads whose requests are refused, one runs the plugin."""
    identity = ExecIdentity(plugin(printing({"token": "tRUNS"})))
    old = identity.secret()

    renewed = [identity.renew(old), identity.renew(old)]

    assert ([True, True], Secret("t2")) == (renewed, identity.secret())


def test_a_certificate_can_be_printed(plugin: Callable[[str], ExecPlugin]) -> None:
    """With its key."""
    text = printing({"clientCertificateData": "certificate", "clientKeyData": "key"})

    assert Secret(None, "certificate", "key") == ExecIdentity(plugin(text)).secret()


PRINTED: Final[dict[str, tuple[str, str]]] = {
    "no document": ("secret", "no ExecCredential: JSON is malformed"),
    "another kind": (
        json.dumps({"kind": "Pod", "apiVersion": "v1"}),
        "'Pod' of 'v1', not an ExecCredential of 'client.authentication.k8s.io/v1'",
    ),
    "another version": (
        printing({"token": "secret"}, "client.authentication.k8s.io/v1beta1"),
        "'ExecCredential' of 'client.authentication.k8s.io/v1beta1', not an ExecCredential of",
    ),
    "no credentials": (printing({}), "neither a token nor a certificate"),
    "a certificate without its key": (
        printing({"clientCertificateData": "secret"}),
        "a certificate without its key, or a key without its certificate",
    ),
}


@pytest.mark.parametrize("case", PRINTED.values(), ids=PRINTED)
def test_a_plugin_that_prints_something_else_is_named(
    plugin: Callable[[str], ExecPlugin], case: tuple[str, str]
) -> None:
    """The error never has what may be secret."""
    text, expected = case

    with pytest.raises(CredentialError) as caught:
        ExecIdentity(plugin(text)).secret()

    assert (True, False) == (
        f"'/bin/sh' printed {expected}" in str(caught.value),
        "secret" in str(caught.value),
    )


def test_a_plugin_that_fails_says_why() -> None:
    """Its status and what it wrote for people."""
    plugin = ExecPlugin(("/bin/sh", "-c", "echo log in first >&2; exit 3"), {}, V1)

    with pytest.raises(CredentialError, match="the plugin '/bin/sh' ended with 3: log in first"):
        ExecIdentity(plugin).secret()


def test_a_plugin_that_is_missing_is_named_with_the_hint(tmp_path: Path) -> None:
    """The kubeconfig can say how to get it."""
    plugin = ExecPlugin((str(tmp_path / "missing"),), {}, V1, install_hint="install it")

    with pytest.raises(CredentialError, match=r"missing' cannot be run: .*No such file.*; install it"):
        ExecIdentity(plugin).secret()


def test_a_kubeconfig_describes_the_plugin(tmp_path: Path) -> None:
    """Arguments, variables, and what it may know of the cluster; a path begins at the folder of the file."""
    script = tmp_path / "bin" / "plugin"
    script.parent.mkdir()
    answer = printing({"token": "of $1 $ACCOUNT $OTHER"}).replace('"', '\\"')
    script.write_text(f'#!/bin/sh\necho "$KUBERNETES_EXEC_INFO" > {tmp_path}/info\necho "{answer}"\n')
    script.chmod(0o755)
    (tmp_path / "config").write_text(f"""
current-context: x
contexts: [{{name: x, context: {{cluster: c, user: u}}}}]
clusters:
- name: c
  cluster:
    server: https://a
    extensions: [{{name: client.authentication.k8s.io/exec, extension: {{audience: b}}}}]
users:
- name: u
  user:
    exec:
      apiVersion: {V1}
      command: ./bin/plugin
      args: [first]
      env: [{{name: ACCOUNT, value: mine}}]
      provideClusterInfo: true
      interactiveMode: IfAvailable
""")

    credentials = kubeconfig_credentials([tmp_path / "config"], None, {"OTHER": "outside"})

    token = credentials.identity.secret().token
    cluster = {"server": "https://a", "insecure-skip-tls-verify": False, "config": {"audience": "b"}}
    question = {
        "kind": "ExecCredential",
        "apiVersion": V1,
        "spec": {"interactive": False, "cluster": cluster},
    }
    assert ("of first mine outside", question) == (token, json.loads((tmp_path / "info").read_text()))
