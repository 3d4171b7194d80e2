"""Lines that arrive in pieces: chunks of HTTP that are cut anywhere, and streams that end or break."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPResponse
from itertools import pairwise
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from licorne.proxy.kubernetes.client.connections import ChunkedBody, LineStream
from licorne.proxy.kubernetes.client.errors import ApiUnreachable

HEAD: Final = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunk(content: bytes) -> bytes:
    return b"%x;note=1\r\n%b\r\n" % (len(content), content)


@given(
    contents=st.lists(st.binary(min_size=1, max_size=40), max_size=8),
    cuts=st.lists(st.integers(min_value=0, max_value=400), max_size=12),
)
def test_chunks_are_joined_wherever_they_are_cut(contents: list[bytes], cuts: list[int]) -> None:
    """The content is the same, and the end is noticed."""
    sent = b"".join(map(chunk, contents)) + b"0\r\n\r\n"
    edges = [0, *sorted(cut for cut in cuts if cut < len(sent)), len(sent)]
    body = ChunkedBody()

    found = [body.feed(sent[begin:end]) for begin, end in pairwise(edges)]

    assert (b"".join(contents), True) == (b"".join(found), body.has_ended)


@pytest.mark.parametrize("line", [b"<html>\r\n", b"-1\r\n", b"fffffffff\r\n", b"\r\n"])
def test_what_is_no_chunk_is_an_error(line: bytes) -> None:
    """A size that is no number, or is larger than any object."""
    with pytest.raises(ApiUnreachable, match="the size of a chunk of HTTP is wrong"):
        ChunkedBody().feed(line)


@contextmanager
def streaming(head: bytes, idle_timeout_seconds: float = 10.0) -> Iterator[tuple[socket.socket, LineStream]]:
    """Yield the server's side of a connection whose headers were sent, and the stream of its lines."""
    ours, theirs = socket.socketpair()
    ours.settimeout(idle_timeout_seconds)
    with ours, theirs:
        theirs.sendall(head)
        response = HTTPResponse(ours)
        response.begin()
        stream = LineStream(ours, response, idle_timeout_seconds)
        yield theirs, stream
        stream.close()


def test_all_lines_that_have_arrived_come_at_once() -> None:
    """Those that came with the headers, and those of later chunks; a line may be in two chunks."""
    with streaming(HEAD + chunk(b"a\n")) as (server, stream):
        server.sendall(chunk(b"b\nc") + chunk(b"d\n") + chunk(b"\n"))
        first = stream.read()
        server.sendall(chunk(b"e\n") + b"0\r\n\r\n")
        rest = [stream.read(), stream.read()]

    assert ([b"a", b"b", b"cd"], [[b"e"], []]) == (first, rest)


def test_an_answer_without_chunks_ends_with_its_connection() -> None:
    """A proxy that speaks HTTP/1.0 sends it so."""
    with streaming(b"HTTP/1.0 200 OK\r\n\r\na\nb") as (server, stream):
        first = stream.read()
        server.sendall(b"c\n")
        server.shutdown(socket.SHUT_WR)
        rest = [stream.read(), stream.read()]

    assert ([b"a"], [[b"bc"], []]) == (first, rest)


def test_a_connection_that_ends_without_a_last_chunk_ends_the_stream() -> None:
    """What has arrived before is good."""
    with streaming(HEAD + chunk(b"a\n")) as (server, stream):
        server.sendall(chunk(b"b\n"))
        server.shutdown(socket.SHUT_WR)
        found = [stream.read(), stream.read()]

    assert found == [[b"a", b"b"], []]


def test_silence_is_an_error_after_a_time() -> None:
    """The connection may be dead."""
    with (
        streaming(HEAD, idle_timeout_seconds=0.02) as (_, stream),
        pytest.raises(ApiUnreachable, match="the watch was cut: timed out"),
    ):
        stream.read()


def test_a_stream_that_is_cut_returns_at_once() -> None:
    """Another thread cuts it."""
    with streaming(HEAD + chunk(b"a\n")) as (_, stream):
        stream.read()
        cutting = threading.Timer(0.02, stream.cut)
        cutting.start()

        assert [] == stream.read()
        cutting.join()
