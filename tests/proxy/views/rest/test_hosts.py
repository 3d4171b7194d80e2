"""By which names a server without tokens answers: a web page whose own name leads here reads nothing."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from licorne import LicorneError, Scheduler, rest_app

PATHS = ("/ws/v1/clusters", "/licorne/v1/workers", "/licorne/v1/live", "/ws/v1/events/stream", "/debug/stack")
TOKEN = "sixteen-characters"  # noqa: S105 - of this test


@pytest.fixture
def scheduler() -> Iterator[Scheduler]:
    with Scheduler(engine="direct") as made:
        yield made


def status(application: Starlette, host: str, path: str = "/ws/v1/clusters", scheme: str = "http") -> int:
    client = TestClient(application, base_url=f"{scheme}://127.0.0.1")
    status: int = client.get(path, headers={"Host": host, "Authorization": f"Bearer {TOKEN}"}).status_code
    return status


@pytest.mark.parametrize("path", PATHS)
def test_the_name_of_a_web_page_is_refused_for_all_data(scheduler: Scheduler, path: str) -> None:
    """Also for streams, before anything of them is sent."""
    for host in ("evil.example.com", "evil.example.com:9080", "127.0.0.1.example.com", "local.example.org."):
        assert status(rest_app(scheduler), host, path) == 421


def test_addresses_and_private_names_are_answered(scheduler: Scheduler) -> None:
    """As probes and scrapers use them, by the address of a pod or the name of a service."""
    hosts = [
        "127.0.0.1",
        "127.0.0.1:9080",
        "10.1.2.3:9080",
        "[::1]:9080",
        "[fd00::7]",
        "localhost:9080",
        "LOCALHOST.",
    ]
    hosts += ["licorne", "licorne.batch.svc:9080", "licorne.batch.svc.cluster.local", socket.gethostname()]

    assert dict.fromkeys(hosts, 200) == {host: status(rest_app(scheduler), host) for host in hosts}


def test_a_name_that_is_given_is_answered(scheduler: Scheduler) -> None:
    """Whatever its case; others still are not."""
    application = rest_app(scheduler, hosts=["Licorne.Example.com"])

    assert [200, 421] == [status(application, host) for host in ("licorne.example.COM:80", "example.com")]
    with pytest.raises(LicorneError, match=r"hosts='licorne\.example\.com' is one text"):
        rest_app(scheduler, hosts="licorne.example.com")


def test_with_a_token_or_tls_the_name_does_not_matter(scheduler: Scheduler) -> None:
    """A page does not know the token, and a browser compares the name with the certificate."""
    assert status(rest_app(scheduler, tokens=[TOKEN]), "evil.example.com") == 200
    assert status(rest_app(scheduler), "licorne.example.com", scheme="https") == 200


def test_the_files_of_the_page_are_for_all(scheduler: Scheduler) -> None:
    """They tell nothing of the scheduler."""
    assert status(rest_app(scheduler), "evil.example.com", "/") == 200
