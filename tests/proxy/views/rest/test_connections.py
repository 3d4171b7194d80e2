"""Requests that are too large, broken or left alone, over real sockets: their clients read a status."""

from __future__ import annotations

import select
import socket
import ssl
from pathlib import Path

import httpx
import pytest
from loguru import logger
from support.proxy.certificates import Certificates
from support.proxy.rest_servers import connected, received, rest, sent
from support.waiting import WAIT_SECONDS

from licorne.proxy.views.rest.connections import ConnectionTimes
from licorne.proxy.views.rest.limits import LimitsSettings

MEGABYTE = 1 << 20
CLUSTERS = b"GET /ws/v1/clusters HTTP/1.1\r\nHost: a\r\n"
VALIDATE = b"POST /ws/v1/validate-conf HTTP/1.1\r\nHost: a\r\n"
GIGABYTE = VALIDATE + b"Content-Length: 1073741824\r\n\r\n"
CHUNKED = VALIDATE + b"Transfer-Encoding: chunked\r\n"


def send_for_ever(connection: socket.socket) -> None:
    while True:
        connection.sendall(bytes(MEGABYTE))


def test_a_client_that_sends_a_body_far_too_large_reads_the_refusal() -> None:
    """It may send much before it reads; what it sends is thrown away."""
    with rest() as url:
        answer = sent(url, GIGABYTE, *[bytes(MEGABYTE)] * 32)

    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"the body of a request may have 1048576 bytes at most" in answer


def test_a_body_without_end_is_refused() -> None:
    """Also one whose size is not said before."""
    piece = b"100000\r\n" + bytes(MEGABYTE) + b"\r\n"
    with rest() as url:
        assert sent(url, CHUNKED + b"\r\n", *[piece] * 16).startswith(b"HTTP/1.1 413 ")


def test_the_refusal_is_read_over_tls_as_well(tmp_path: Path) -> None:
    """There one side alone cannot end its sending."""
    certificates = Certificates(tmp_path)
    files = {"certificate": certificates.server, "key": certificates.server_key}
    context = ssl.create_default_context(cafile=certificates.authority)
    with (
        rest(**files, times=ConnectionTimes(discard_seconds=0.5)) as url,
        connected(url) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as connection,
    ):
        connection.sendall(GIGABYTE + bytes(4 * MEGABYTE))
        assert received(connection).startswith(b"HTTP/1.1 413 ")


def test_throwing_away_has_an_end() -> None:
    """A client that goes on to send for ever is left when the time is up."""
    with rest(times=ConnectionTimes(discard_seconds=0.05)) as url, connected(url) as connection:
        connection.sendall(GIGABYTE)
        with pytest.raises(ConnectionError):
            send_for_ever(connection)


@pytest.mark.parametrize(
    "head",
    [
        b"GET /ws/v1/clusters HTTP/1.1\r\nX: " + bytes(b"a" * 2 * MEGABYTE),
        CLUSTERS + b"X: y\r\n" * 350_000 + b"\r\n",
        CLUSTERS + b"X: " + b"a" * 100_000 + b"\r\nConnection: close\r\n\r\n",
        b"GET /ws/v1/clusters?" + b"a" * 17_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
    ],
    ids=["endless", "many fields", "complete", "query"],
)
def test_a_head_that_is_too_large_is_refused(head: bytes) -> None:
    """Whether it comes to its end or not."""
    with rest() as url:
        assert sent(url, head).startswith(b"HTTP/1.1 431 Request Header Fields Too Large\r\n")


def test_a_head_that_is_nearly_too_large_is_read() -> None:
    """The limit is that of the settings."""
    head = CLUSTERS + b"X: " + b"a" * 16_000 + b"\r\nConnection: close\r\n\r\n"
    with rest() as url:
        assert sent(url, head).startswith(b"HTTP/1.1 200 ")
    with rest(limits=LimitsSettings(head_bytes_max=8_000)) as url:
        assert sent(url, head).startswith(b"HTTP/1.1 431 ")


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (CHUNKED + b"Content-Length: 5\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n", 400),
        (VALIDATE + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (VALIDATE + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n", 400),
        (VALIDATE + b"Content-Length: -1\r\n\r\n", 400),
        (VALIDATE + b"Content-Length: 1e3\r\n\r\n", 400),
        (VALIDATE + b"Transfer-Encoding: gzip, chunked\r\n\r\n", 501),
        (CHUNKED + b"\r\nno number\r\n", 400),
        (VALIDATE + b"Content-Length : 5\r\n\r\n", 400),
        (VALIDATE + b"X: a\x00b\r\n\r\n", 400),
        (VALIDATE.replace(b"Host: a\r\n", b"") + b"\r\n", 400),
        (b"GET /\xc3\xbc HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    ],
)
def test_a_request_whose_end_is_not_certain_is_refused(head: bytes, status: int) -> None:
    """With one answer: nothing behind it counts as another request."""
    with rest() as url:
        answer = sent(url, head)

    assert answer.startswith(f"HTTP/1.1 {status} ".encode())
    assert 1 == answer.count(b"HTTP/1.1 ")


@pytest.mark.parametrize(
    "path",
    [
        "/ws/v1/partition/default%2Fqueues",
        "/ws/v1/partition/default%2fqueues",
        "/ws/v1/partition/default/queue/root%2F",
        "/WS%2Fv1/clusters",
        "/%2F%2Fexample.invalid/",
        "/ws/v1/partition/default%252Fqueues",
        "/ws/v1/partition/default/node/a%252Fb",
        "/ws/v1/partition/default/../queues",
        "/ws/v1/partition/default/%2e%2e/queues",
        "/ws/v1/partition/default/%252e%252e/queues",
        "/page/%2e%2e/%2e%2e/etc/passwd",
        "/ws/v1/partition/default%00/queues",
        "/ws/v1/clusters%00",
        "/ws/v1/partition/default/node/%00",
        "/ws/v1/partition/default/queue/root%00",
        "/ws/v1/partition/%C3%BC/queues",
        "/ws/v1/partition/%FF/queues",
        "/%C0%AE%C0%AE/",
        "/ws/v1/partition/%0D%0Aa:%20b/queues",
        "*",
        "http://other.example/ws/v1/clusters",
    ],
)
def test_a_strange_path_is_not_found(path: str) -> None:
    """As it is sent, without the repairs of a client; nothing is redirected."""
    head = f"GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    with rest() as url:
        assert sent(url, head.encode()).startswith(b"HTTP/1.1 404 ")


def test_an_answer_before_the_end_of_a_body_ends_the_connection() -> None:
    """And says so; one without a body, or with all of it read, does not."""
    post = b"POST /nowhere HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab"
    with rest() as url:
        left = sent(url, post)
        with httpx.Client(base_url=url) as client:
            kept = [client.post("/ws/v1/validate-conf", content=b"#"), client.get("/nowhere")]

    assert left.startswith(b"HTTP/1.1 404 ")
    assert b"\r\nconnection: close\r\n" in left
    assert ["connection" in answer.headers for answer in kept] == [False, False]


def test_a_client_that_does_not_take_its_answer_is_left(tmp_path: Path) -> None:
    """One that takes it slowly is not."""
    (tmp_path / "index.html").write_bytes(bytes(32 * MEGABYTE))
    with (
        rest(ui_dir=tmp_path, times=ConnectionTimes(write_seconds=0.1)) as url,
        connected(url) as connection,
    ):
        connection.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        poll = select.poll()
        poll.register(connection, 0)  # That is: nothing but the end.
        assert poll.poll(WAIT_SECONDS * 1_000)
        assert 32 * MEGABYTE == len(httpx.get(f"{url}/index.html").content)


@pytest.mark.parametrize("end", [b"", b"no number\r\n"])
def test_a_client_that_leaves_in_the_middle_is_no_error_of_ours(end: bytes) -> None:
    """Nothing is logged."""
    lines: list[str] = []
    sink = logger.add(lines.append)
    logger.enable("licorne")
    with rest() as url:
        with connected(url) as connection:
            connection.sendall(CHUNKED + b"Expect: 100-continue\r\n\r\n")
            assert connection.recv(100).startswith(b"HTTP/1.1 100 ")
            connection.sendall(b"1\r\na\r\n" + end)
            connection.shutdown(socket.SHUT_WR)
            assert received(connection).startswith(b"HTTP/1.1 400 " if end else b"")
        assert 200 == httpx.get(f"{url}/ws/v1/clusters").status_code

    logger.disable("licorne")
    logger.remove(sink)
    assert [] == lines
