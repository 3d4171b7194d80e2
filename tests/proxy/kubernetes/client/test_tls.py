"""TLS between a client and an API server: whom both trust, and watches over it."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Final

import pytest
from support.kubernetes.stub_clients import PODS, a_pod
from support.kubernetes.stub_server import StubApiServer
from support.proxy.certificates import Certificates
from support.proxy.waiting import wait_until

from licorne.proxy.kubernetes.client.api_client import ApiClient
from licorne.proxy.kubernetes.client.credentials import Credentials
from licorne.proxy.kubernetes.client.errors import ApiUnreachable, CredentialError
from licorne.proxy.kubernetes.client.identities import FixedIdentity, Secret
from licorne.proxy.kubernetes.client.list_watch import ListWatch, WatchedResource
from licorne.proxy.kubernetes.objects import Pod

BODY: Final = json.dumps(a_pod()).encode()
NO_SECRET: Final = Secret()


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


def server_context(certificates: Certificates, *, asks_for_certificate: bool = False) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.server, certificates.server_key)
    if asks_for_certificate:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(certificates.authority)
    return context


def trusting(stub: StubApiServer, certificates: Certificates, secret: Secret = NO_SECRET) -> Credentials:
    authorities = certificates.authority.read_text(encoding="utf-8")
    return Credentials(stub.address, FixedIdentity(secret), authorities=authorities)


def test_a_server_with_a_trusted_certificate_is_asked(certificates: Certificates) -> None:
    """Its authority is that of the credentials."""
    with (
        StubApiServer(tls=server_context(certificates)) as stub,
        ApiClient(trusting(stub, certificates)) as client,
    ):
        created = client.request("POST", PODS, body=BODY)

        assert created == client.request("GET", f"{PODS}/p")


TLS: Final[dict[str, tuple[dict[str, object], str | None]]] = {
    "an authority that is not known is refused": ({"authorities": None}, "unable to get local issuer"),
    "a server that is not verified is asked": ({"authorities": None, "verifies_server": False}, None),
    "a name of another server is refused": (
        {"tls_name": "elsewhere"},
        "certificate is not valid for 'elsewhere'",
    ),
    "the name for TLS may differ from the address": ({"tls_name": "127.0.0.1"}, None),
}


@pytest.mark.filterwarnings("ignore:Unverified HTTPS request")
@pytest.mark.parametrize("case", TLS.values(), ids=TLS)
def test_the_certificate_of_a_server_is_checked(
    certificates: Certificates, case: tuple[dict[str, object], str | None]
) -> None:
    """What is not trusted is an error at once: to repeat the request does not help."""
    changes, refused = case
    with StubApiServer(tls=server_context(certificates)) as stub:
        credentials = replace(trusting(stub, certificates), **changes)  # type: ignore[arg-type]
        with ApiClient(credentials) as client:
            requested = refusal(lambda: client.request("GET", PODS), refused)
            watched = refusal(lambda: watch_once(client), refused)

    assert (refused, refused) == (requested, watched)


def refusal(ask: Callable[[], object], expected: str | None) -> str | None:
    """Return what is expected if the error has it, else its whole text; `None` without an error."""
    try:
        ask()
    except CredentialError as error:
        return expected if expected is not None and expected in str(error) else str(error)
    return None


def watch_once(client: ApiClient) -> None:
    """Begin a watch, and end it."""
    client.open_lines(PODS, {"watch": "true"}, 5.0).close()


def test_a_watch_over_tls_brings_changes_and_ends_at_once(certificates: Certificates) -> None:
    """A record of TLS has one change, and what has arrived of them comes together."""
    batches: list[int] = []
    with (
        StubApiServer(tls=server_context(certificates)) as stub,
        ApiClient(trusting(stub, certificates)) as client,
    ):
        watch = ListWatch(
            client,
            WatchedResource(PODS, Pod),
            on_list=lambda *_: None,
            on_events=lambda changes: batches.append(len(changes)),
        )
        watch.start()
        wait_until(lambda: stub.streams)
        with stub.store.changed:
            for number in range(200):
                stub.add(PODS, a_pod(f"p{number}"))
        wait_until(lambda: sum(batches) == 200)
        watch.stop(5.0)

        assert [] == [each for each in threading.enumerate() if each.name == f"watch {PODS}"]
    assert len(batches) < 100


def test_a_client_shows_its_certificate(certificates: Certificates) -> None:
    """For requests and for watches; without one the server refuses the connection."""
    issued = certificates.issue("licorne@localhost")
    secret = Secret(None, issued.cert_chain_pems[0].bytes().decode(), issued.private_key_pem.bytes().decode())
    with StubApiServer(tls=server_context(certificates, asks_for_certificate=True)) as stub:
        with ApiClient(trusting(stub, certificates, secret)) as client:
            client.request("GET", PODS)
            watch_once(client)
        with (
            ApiClient(trusting(stub, certificates), patience_seconds=0.0) as other,
            pytest.raises(ApiUnreachable),
        ):
            other.request("GET", PODS)

    assert 2 == len(stub.requests)


def test_a_certificate_without_its_key_is_named(certificates: Certificates) -> None:
    """The text says what is wrong, not where OpenSSL found it."""
    other = certificates.issue("other@localhost").private_key_pem.bytes().decode()
    pair = Secret(None, certificates.server.read_text(encoding="utf-8"), other)
    with (
        StubApiServer(tls=server_context(certificates)) as stub,
        ApiClient(trusting(stub, certificates, pair)) as client,
        pytest.raises(CredentialError, match=r"cannot be used: .*KEY_VALUES_MISMATCH.*mismatch$"),
    ):
        client.request("GET", PODS)
