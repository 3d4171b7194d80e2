"""A stub of an API server, and a client of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.kubernetes.stub_clients import client_of
from support.kubernetes.stub_server import StubApiServer

from licorne.proxy.kubernetes.client.api_calls import ApiCalls
from licorne.proxy.kubernetes.client.api_client import ApiClient


@pytest.fixture
def stub() -> Iterator[StubApiServer]:
    with StubApiServer() as server:
        yield server


@pytest.fixture
def client(stub: StubApiServer) -> Iterator[ApiClient]:
    with client_of(stub) as connected:
        yield connected


@pytest.fixture
def calls(client: ApiClient) -> ApiCalls:
    return ApiCalls(client)
