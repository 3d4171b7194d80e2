"""The client of REST: what it sends, its limits, and what it says when a server cannot be read."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest
from starlette.responses import JSONResponse, Response
from support.proxy.certificates import Certificates
from support.proxy.document_server import DocumentServer

from licorne.proxy.views.top import client as client_module
from licorne.proxy.views.top.client import (
    DocumentReader,
    MissingDocumentError,
    RestClient,
    ServerReadError,
    checked_address,
    tls_context,
)
from licorne.proxy.views.top.reading import ServerReader
from licorne.proxy.views.top.views import View

T = TypeVar("T")
TOKEN = "visible-ASCII"  # noqa: S105 - of a server under test
PARTITIONS = "/ws/v1/partitions"


def asked(make: Callable[[], RestClient], question: Callable[[RestClient], Awaitable[T]]) -> T:
    """Ask a question with a client of its own."""

    async def ask() -> T:
        client = make()
        try:
            return await question(client)
        finally:
            await client.close()

    return asyncio.run(ask())


def error_of(address: str, *, timeout_seconds: float = 10.0) -> str:
    """Return what is said when the queues of a server are read."""
    with pytest.raises(ServerReadError) as caught:
        asked(
            lambda: RestClient(address, timeout_seconds=timeout_seconds),
            lambda client: ServerReader(client).read(View.QUEUES, None),
        )
    return str(caught.value)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (
            JSONResponse({"message": "a token is required"}, 401),
            "requires another token (status 401: a token is required)",
        ),
        (Response("no", 403), "requires another token (status 403)"),
        (Response("<html>", media_type="text/html"), "cannot be read: invalid JSON"),
        (JSONResponse({"name": "x"}), "cannot be read: all: Input should be a valid list"),
        (JSONResponse([{"name": 5}]), "cannot be read: 0.name: Input should be a valid string"),
        (JSONResponse([{"name": "x", "totalNodes": "3"}]), "cannot be read: 0.totalNodes: "),
        (Response("gone", 418), "answered with status 418"),
    ],
)
def test_an_answer_that_cannot_be_read_is_named(server: DocumentServer, answer: Response, said: str) -> None:
    server.documents[PARTITIONS] = answer

    text = error_of(server.address)

    assert f"{server.address}{PARTITIONS}" in text
    assert said in text


def test_another_kind_of_server_is_recognized(server: DocumentServer) -> None:
    """It has no partitions, whatever else it has."""
    del server.documents[PARTITIONS]

    assert f"{server.address} is not a server of Licorne or YuniKorn: " in error_of(server.address)


def test_many_problems_of_a_document_are_a_short_error(server: DocumentServer) -> None:
    """Three of them, and how many more."""
    server.documents[PARTITIONS] = [{"name": 5}] * 100

    assert error_of(server.address).endswith("2.name: Input should be a valid string; and 97 more")


def test_a_server_that_is_not_there_is_named() -> None:
    """Its port is known to be free."""
    with DocumentServer() as gone:
        pass

    assert error_of(gone.address).startswith(f"{gone.address} cannot be reached: ")


def test_a_server_that_speaks_no_http_is_named() -> None:
    """Here it ends the connection when something comes."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(b"SSH-2.0-OpenSSH\r\n\r\n")

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"

        assert error_of(address).startswith(f"{address} has ended the connection, or speaks no HTTP: ")
        thread.join()


def test_a_server_that_never_answers_is_given_up() -> None:
    """The kernel takes the connection, and then nothing comes."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"

        assert f"{address} has not answered within 0.05 s" == error_of(address, timeout_seconds=0.05)


def test_an_endless_answer_is_ended(server: DocumentServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it takes of memory is bounded."""
    monkeypatch.setattr(client_module, "ANSWER_BYTES_MAX", 1 << 20)
    server.documents[PARTITIONS] = Response(b" " * (1 << 21))

    assert error_of(server.address).endswith(f"{PARTITIONS} is longer than 1 MiB")


def test_null_is_like_nothing(server: DocumentServer) -> None:
    """The recorded core writes null for lists without entries."""
    server.documents["/ws/v1/partition/default/queues"] = {
        "queuename": "root",
        "children": None,
        "maxResource": None,
    }

    reading = asked(
        lambda: RestClient(server.address), lambda client: ServerReader(client).read(View.QUEUES, None)
    )

    assert reading.queues is not None
    assert {"queuename": "root"} == dict(reading.queues)


def test_the_token_goes_with_each_question(server: DocumentServer) -> None:
    asked(
        lambda: RestClient(server.address, token=TOKEN),
        lambda client: ServerReader(client).read(View.NODES, None),
    )

    assert [f"Bearer {TOKEN}"] * len(server.asked) == server.tokens


@pytest.mark.parametrize("token", ["", " a", "a\nb", "ä"])
def test_a_token_that_no_header_can_have_is_refused(token: str) -> None:
    with pytest.raises(ServerReadError, match="token has characters"):
        RestClient("http://127.0.0.1:1", token=token)


def test_a_missing_document_is_an_error_of_its_own(server: DocumentServer) -> None:
    with pytest.raises(MissingDocumentError, match="status 404"):
        asked(
            lambda: RestClient(server.address), lambda client: client.read(DocumentReader(list[int]), "/none")
        )


def test_a_server_with_tls_is_read(tmp_path: Path) -> None:
    """Its certificate is checked against the file that was given."""
    certificates = Certificates(tmp_path)
    with DocumentServer(tls=(certificates.server, certificates.server_key)) as server:
        tls = tls_context(certificates.authority)
        reading = asked(
            lambda: RestClient(server.address, tls=tls),
            lambda client: ServerReader(client).read(View.NODES, None),
        )

        assert 3 == len(reading.nodes)
        assert "certificate" in error_of(server.address)


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_a_file_without_certificates_is_refused(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_text(content)

    with pytest.raises(ServerReadError, match=r"the certificates in .*ca\.pem cannot be read"):
        tls_context(path)


@pytest.mark.parametrize("text", ["http://[::1]:9080", "https://licorne.example", "http://127.0.0.1:9080/"])
def test_an_address_is_read(text: str) -> None:
    assert text.rstrip("/") == checked_address(text)


@pytest.mark.parametrize(
    "text",
    ["127.0.0.1:9080", "", "ftp://a", "http://", "http://a/b", "http://a:x", "http://u:p@a", "http://a?b"],
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ServerReadError, match="address"):
        checked_address(text)
