"""Requests to an API server: what is repeated, with which credentials, and whom both sides trust (TLS)."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import pytest
from support.kubernetes.stub_clients import PODS, a_pod, client_of, credentials_of
from support.kubernetes.stub_server import StubApiServer
from support.proxy.certificates import Certificates
from support.waiting import wait_until

from licorne.proxy.kubernetes.client.api_client import ApiClient, backoff_seconds
from licorne.proxy.kubernetes.client.credentials import Credentials, FixedIdentity, Secret
from licorne.proxy.kubernetes.client.errors import ApiError, ApiUnreachable, CredentialError
from licorne.proxy.kubernetes.client.list_watch import ListWatch, WatchedResource
from licorne.proxy.kubernetes.objects import Pod

BODY: Final = json.dumps(a_pod()).encode()


@dataclass(frozen=True)
class Case:
    """A fault at the first attempt."""

    method: str
    status: int
    headers: dict[str, str]
    attempts: int
    failed_with: int | None


CASES: Final = {
    "a get is repeated after 500": Case("GET", 500, {}, 2, None),
    "a get is repeated after 429 without a time": Case("GET", 429, {}, 2, None),
    "a get is not repeated after 403": Case("GET", 403, {}, 1, 403),
    "a write is repeated after 429 with a time": Case("POST", 429, {"Retry-After": "0"}, 2, None),
    "a write is repeated after 503 with a time": Case("POST", 503, {"Retry-After": "0"}, 2, None),
    "a write is not repeated after 429 without a time": Case("POST", 429, {}, 1, 429),
    "a write is not repeated after 503 without a time": Case("POST", 503, {}, 1, 503),
    "a write is not repeated after 500": Case("POST", 500, {}, 1, 500),
    "a write is not repeated after 500 with a time": Case("POST", 500, {"Retry-After": "0"}, 1, 500),
    "a time that is longer than the patience is not waited for": Case(
        "POST", 429, {"Retry-After": "3600"}, 1, 429
    ),
    "a time that is no number counts as none": Case("POST", 429, {"Retry-After": "soon"}, 1, 429),
}


def asked(client: ApiClient, method: str) -> int | None:
    """Make a request; return the status of its error, `None` if it succeeded."""
    try:
        client.request(method, PODS, body=BODY if method == "POST" else None)
    except ApiError as error:
        return error.status
    return None


def test_attempts_are_counted_by_method_and_status(stub: StubApiServer, client: ApiClient) -> None:
    """Also the refused ones, those without an answer, and watches that begin."""
    stub.fail("GET", PODS, status=500)
    stub.lose_answer("POST", PODS)
    client.request("GET", PODS)
    with pytest.raises(ApiUnreachable):
        client.request("POST", PODS, body=BODY)
    client.open_lines(PODS, {"watch": "true", "resourceVersion": "0"}, 10).close()

    assert client.request_counts == {
        ("GET", "500"): 1,
        ("GET", "200"): 1,
        ("POST", "none"): 1,
        ("WATCH", "200"): 1,
    }


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_refused_request_is_repeated_where_that_is_safe(
    stub: StubApiServer, client: ApiClient, case: Case
) -> None:
    """The server asks for it, or it reads alone."""
    stub.fail(case.method, PODS, status=case.status, headers=case.headers)

    failed_with = asked(client, case.method)

    assert (case.failed_with, case.attempts) == (failed_with, len(stub.requests))


def test_an_error_has_what_the_server_says_of_it(stub: StubApiServer, client: ApiClient) -> None:
    """Status, reason, sentence and time to wait come from the answer."""
    stub.fail(
        "POST", PODS, status=429, reason="TooManyRequests", message="later", headers={"Retry-After": "90"}
    )

    with pytest.raises(ApiError) as caught:
        client.request("POST", PODS, body=BODY)

    error = caught.value
    found = error.status, error.reason, error.message, error.retry_after_seconds, str(error)
    assert found == (429, "TooManyRequests", "later", 90.0, "429 TooManyRequests: later")


def test_an_error_without_a_document_has_the_text_of_the_body() -> None:
    """A proxy in between answers with a page."""
    error = ApiError.of_answer(502, b"<html>bad gateway</html>")

    assert ("Bad Gateway", "<html>bad gateway</html>") == (error.reason, error.message)


def test_a_get_is_repeated_after_a_lost_answer(stub: StubApiServer, client: ApiClient) -> None:
    """It changes nothing."""
    stub.add(PODS, a_pod())
    stub.lose_answer("GET", f"{PODS}/p", times=2)

    pod = json.loads(client.request("GET", f"{PODS}/p"))

    assert ("p", 3) == (pod["metadata"]["name"], len(stub.requests))


def test_a_write_whose_answer_is_lost_is_not_repeated(stub: StubApiServer, client: ApiClient) -> None:
    """It may have been carried out, and here it was."""
    stub.lose_answer("POST", PODS)

    with pytest.raises(
        ApiUnreachable, match=r"POST http://localhost:[0-9]+/api/v1/namespaces/default/pods: "
    ):
        client.request("POST", PODS, body=BODY)

    assert (1, 1) == (len(stub.requests), len(stub.objects(PODS)))


def test_an_answer_that_does_not_come_in_time_is_lost(stub: StubApiServer, client: ApiClient) -> None:
    """The outcome is unknown then."""
    stub.delay("POST", PODS, 30.0)

    with pytest.raises(ApiUnreachable, match="timed out"):
        client.request("POST", PODS, body=BODY, timeout_seconds=0.05)


def test_a_server_that_is_not_there_is_asked_until_the_patience_ends() -> None:
    """A get is repeated, then its last error is raised."""
    with StubApiServer() as stopped:
        credentials = credentials_of(stopped)

    with ApiClient(credentials, patience_seconds=0.3) as client, pytest.raises(ApiUnreachable):
        client.request("GET", PODS)


def test_connections_are_kept(stub: StubApiServer, client: ApiClient) -> None:
    """One connection carries many requests."""
    for _ in range(20):
        client.request("GET", PODS)

    assert 1 == stub.connections


def test_a_connection_that_the_server_has_closed_is_replaced(stub: StubApiServer, client: ApiClient) -> None:
    """Also a write succeeds after that: it was not sent on the closed connection."""
    client.request("GET", PODS)
    stub.close_connections()

    client.request("POST", PODS, body=BODY)

    assert 1 == len(stub.objects(PODS))


NEW: Final = "new"


def test_an_address_can_have_a_path(stub: StubApiServer) -> None:
    """A proxy that leads to several clusters needs it, for requests and watches."""
    credentials = Credentials(f"{stub.address}/clusters/a", FixedIdentity(Secret()))
    with ApiClient(credentials, patience_seconds=0.0) as client:
        with pytest.raises(ApiError, match="404 NotFound"):
            client.request("GET", PODS)
        with pytest.raises(ApiError, match="404 NotFound"):
            client.open_lines(PODS, {}, 5.0)

    assert [f"/clusters/a{PODS}"] * 2 == [each.path for each in stub.requests]


class Changing:
    """An identity with another certificate each time."""

    def __init__(self) -> None:
        self.serial = 0

    def secret(self) -> Secret:
        self.serial += 1
        return Secret(None, f"certificate {self.serial}", "key")

    def renew(self, refused: Secret) -> bool:
        raise AssertionError(refused)


def test_another_certificate_makes_another_connection(stub: StubApiServer) -> None:
    """A connection belongs to the certificate that it was made with."""
    with ApiClient(credentials_of(stub, Changing())) as client:
        client.request("GET", PODS)
        client.request("GET", PODS)

    assert 2 == stub.connections


class Renewing:
    """An identity whose next token is the right one."""

    def __init__(self, *tokens: str) -> None:
        self.tokens = list(tokens)
        self.renewals = 0

    def secret(self) -> Secret:
        return Secret(self.tokens[0])

    def renew(self, refused: Secret) -> bool:
        self.renewals += 1
        assert refused == Secret(self.tokens.pop(0))
        return True


def test_after_401_a_request_is_repeated_with_new_credentials() -> None:
    """A write, too: it was refused before it was carried out."""
    identity = Renewing("old", NEW)
    with StubApiServer(token=NEW) as stub, ApiClient(credentials_of(stub, identity)) as client:
        client.request("POST", PODS, body=BODY)

        assert (1, 1) == (identity.renewals, len(stub.objects(PODS)))


def test_credentials_are_renewed_once_a_request() -> None:
    """A server that takes no token is not asked for ever."""
    identity = Renewing("old", "older", "oldest")
    with StubApiServer(token=NEW) as stub, ApiClient(credentials_of(stub, identity)) as client:
        with pytest.raises(ApiError, match="401 Unauthorized: "):
            client.request("GET", PODS)

        assert (1, 2) == (identity.renewals, len(stub.requests))


def test_a_closed_client_refuses(stub: StubApiServer) -> None:
    """The program is about to end."""
    client = client_of(stub)
    client.close()

    with pytest.raises(ApiUnreachable, match="the client is closed"):
        client.request("GET", PODS)


def test_requests_wait_for_the_rate(stub: StubApiServer) -> None:
    """After two that may be made at once, the third waits until the client is closed."""
    with ApiClient(credentials_of(stub), qps=0.001, burst=2) as client:
        client.request("GET", PODS)
        client.request("GET", PODS)
        closing = threading.Timer(0.1, client.close)
        closing.start()
        with pytest.raises(ApiUnreachable, match="the client is closed"):
            client.request("GET", PODS)
        closing.join()

    assert 2 == len(stub.requests)


def test_pauses_double_and_are_random() -> None:
    """They lie between half of a time and the whole of it, and have a longest one."""
    pauses = [[backoff_seconds(failures, (1.0, 30.0)) for _ in range(50)] for failures in (1, 2, 3, 9, 5000)]

    bounds = [(0.5, 1.0), (1.0, 2.0), (2.0, 4.0), (15.0, 30.0), (15.0, 30.0)]
    assert all(
        low <= min(found) < max(found) <= high for found, (low, high) in zip(pauses, bounds, strict=True)
    )


# -------------------------------------------------------------------------------------------------- TLS


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
