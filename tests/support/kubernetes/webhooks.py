"""Registrations of an admission webhook, and clients that trust its authorities as an API server does."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Final, final

from support.kubernetes.stub_server import StubApiServer
from support.waiting import WAIT_SECONDS

_ADMISSION: Final = "/apis/admissionregistration.k8s.io/v1"
MUTATING: Final = f"{_ADMISSION}/mutatingwebhookconfigurations"
VALIDATING: Final = f"{_ADMISSION}/validatingwebhookconfigurations"
REGISTRATIONS: Final = (MUTATING, VALIDATING)


@final
class ManualClock:
    """A clock that a test sets forward."""

    def __init__(self) -> None:
        self._now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        """Return the time."""
        return self._now

    def add(self, time: timedelta) -> None:
        """Let time pass."""
        self._now += time


@contextmanager
def stub_with_registrations() -> Iterator[StubApiServer]:
    """Run an API server in which a webhook is registered, for both kinds of requests."""
    with StubApiServer() as server:
        for collection in REGISTRATIONS:
            server.add(collection, registration("hook", "https://127.0.0.1:1"))
        yield server


def registration(name: str, address: str, *, path: str = "/mutate", **hook: Any) -> dict[str, Any]:
    """Return a registration of one webhook, without authorities; `hook` has more of its fields."""
    return {
        "metadata": {"name": name},
        "webhooks": [
            {
                "name": f"{path.strip('/')}.licorne.test",
                "clientConfig": {"url": f"{address}{path}"},
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "failurePolicy": "Ignore",
                **hook,
            }
        ],
    }


_NO_TIME: Final = 0x200000
"""OpenSSL's flag for a check of certificates without their times, which a manual clock has made."""


def trusting(document: Mapping[str, Any]) -> ssl.SSLContext:
    """Return a context of a client that trusts what a registration says, whatever the time is."""
    (hook,) = document["webhooks"]
    bundle = base64.b64decode(hook["clientConfig"]["caBundle"]).decode()
    context = ssl.create_default_context(cadata=bundle)
    context.verify_flags |= _NO_TIME
    return context


def ask(
    port: int, context: ssl.SSLContext, path: str, body: bytes | Mapping[str, Any] | None
) -> tuple[int, dict[str, Any]]:
    """Ask a webhook over a new connection; return the status and the document, or the text as `text`.

    Raises:
        ssl.SSLError: The certificate is not trusted.
        OSError: The webhook is not there.
    """
    connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=WAIT_SECONDS)
    try:
        payload = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        connection.request("GET" if payload is None else "POST", path, payload, headers)
        answer = connection.getresponse()
        text = answer.read()
    finally:
        connection.close()
    is_json = answer.headers.get_content_type() == "application/json"
    return answer.status, json.loads(text) if is_json else {"text": text.decode()}


def webhook_roles(namespace: str, account: str, registration_name: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the roles that the webhook needs, and their bindings, each with the path of its collection.

    Args:
        namespace: Where the webhook and its configuration are.
        account: Its service account, in that namespace.
        registration_name: The name of its registrations, which is part of the names of the cluster's roles.
    """
    name = f"{registration_name}-webhook"
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    watching = ["get", "list", "watch"]
    cluster_rules = [
        {"apiGroups": [""], "resources": ["namespaces"], "verbs": watching},
        {"apiGroups": ["scheduling.k8s.io"], "resources": ["priorityclasses"], "verbs": watching},
        {
            "apiGroups": ["admissionregistration.k8s.io"],
            "resources": ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
            "resourceNames": [registration_name],
            "verbs": ["get", "patch"],
        },
    ]
    rules = [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list", "watch"]},
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]},
        {
            "apiGroups": [""],
            "resources": ["secrets"],
            "resourceNames": ["licorne-admission"],
            "verbs": ["get", "patch"],
        },
    ]
    subjects = [{"kind": "ServiceAccount", "name": account, "namespace": namespace}]

    def binding(kind: str) -> dict[str, Any]:
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}
        return {"metadata": {"name": name}, "roleRef": role, "subjects": subjects}

    within = f"{rbac}/namespaces/{namespace}"
    return [
        (f"{rbac}/clusterroles", {"metadata": {"name": name}, "rules": cluster_rules}),
        (f"{rbac}/clusterrolebindings", binding("ClusterRole")),
        (f"{within}/roles", {"metadata": {"name": name}, "rules": rules}),
        (f"{within}/rolebindings", binding("Role")),
    ]
