"""Clients of a stub of an API server, and the documents that tests send."""

from __future__ import annotations

from support.kubernetes.stub_server import StubApiServer
from support.kubernetes.stub_store import Document

from licorne.proxy.kubernetes.client.api_client import ApiClient
from licorne.proxy.kubernetes.client.credentials import Credentials, FixedIdentity, Identity, Secret

PODS = "/api/v1/namespaces/default/pods"
"""The path of the pods in most tests."""


def credentials_of(stub: StubApiServer, identity: Identity | None = None) -> Credentials:
    """Return the credentials for a stub without TLS."""
    return Credentials(stub.address, identity if identity is not None else FixedIdentity(Secret(stub.token)))


def client_of(
    stub: StubApiServer, *, patience_seconds: float = 10.0, timeout_seconds: float = 10.0
) -> ApiClient:
    """Return a client of a stub without TLS."""
    return ApiClient(credentials_of(stub), patience_seconds=patience_seconds, timeout_seconds=timeout_seconds)


def a_pod(name: str = "p", *, node: str = "", phase: str = "", **metadata: object) -> Document:
    """Return the document of a pod with one container."""
    spec: Document = {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]}
    if node:
        spec["nodeName"] = node
    return {"metadata": {"name": name, **metadata}, "spec": spec, "status": {"phase": phase or "Pending"}}
