"""An answer of lines without end, of which each reading takes all that has arrived."""

from __future__ import annotations

import http.client
import socket
import ssl
from contextlib import suppress
from typing import Final, final

from .errors import ApiUnreachable

_READ_BYTES: Final = 2**18
_BATCH_BYTES_MAX: Final = 2**20
_CHUNK_BYTES_MAX: Final = 2**26
"""An object of Kubernetes has 1.5 MiB at most."""


@final
class ChunkedBody:
    """Takes chunks of HTTP/1.1 out of what arrives.

    A server writes each event of a watch as one chunk. `http.client` would return one chunk a reading.

    Attributes:
        has_ended: Whether the last chunk has arrived.
    """

    def __init__(self) -> None:
        self.has_ended = False
        self._pending = b""

    def feed(self, arrived: bytes) -> bytes:
        """Return the content of the chunks that are complete now.

        Raises:
            ApiUnreachable: These are no chunks.
        """
        pending = self._pending + arrived
        contents = []
        position = 0
        while not self.has_ended:
            end = pending.find(b"\r\n", position)
            if end < 0:
                break
            size = _chunk_size(pending[position:end])
            following = end + 2 + size + 2
            if len(pending) < following:
                break
            contents.append(pending[end + 2 : following - 2])
            self.has_ended = size == 0
            position = following
        self._pending = pending[position:]
        return b"".join(contents)


def _chunk_size(line: bytes) -> int:
    """Return the size in the line before a chunk."""
    try:
        size = int(line.partition(b";")[0], 16)
    except ValueError:
        size = -1
    if not 0 <= size <= _CHUNK_BYTES_MAX:
        raise ApiUnreachable(f"the size of a chunk of HTTP is wrong: {line[:40]!r}")
    return size


@final
class LineStream:
    """The lines of an answer. One thread reads and closes it; any thread may cut it.

    Args:
        connected: The connection, which the stream closes.
        response: The answer, of which the headers are read.
        idle_timeout_seconds: How long nothing arrives before the connection counts as lost.
    """

    def __init__(
        self, connected: socket.socket, response: http.client.HTTPResponse, idle_timeout_seconds: float
    ) -> None:
        self._socket = connected
        self._response = response
        self._idle_timeout_seconds = idle_timeout_seconds
        connected.settimeout(idle_timeout_seconds)  # in place of the time for the answer to begin
        self._chunks = ChunkedBody() if response.chunked else None
        self._first = True
        self._has_ended = False
        self._rest = b""

    def read(self) -> list[bytes]:
        """Wait for lines, and return all that have arrived; none when the answer has ended.

        Raises:
            ApiUnreachable: The connection was lost, or nothing has arrived for too long.
        """
        lines: list[bytes] = []
        while not lines and not self._has_ended:
            try:
                arrived = self._arrived()
            except OSError as error:
                raise ApiUnreachable(f"the watch was cut: {error}") from error
            if self._chunks is not None:
                arrived = self._chunks.feed(arrived)
                self._has_ended = self._has_ended or self._chunks.has_ended
            *lines, self._rest = (self._rest + arrived).split(b"\n")
            if len(self._rest) > _CHUNK_BYTES_MAX:
                raise ApiUnreachable(f"a line has more than {_CHUNK_BYTES_MAX:,} bytes")
        return [line for line in lines if line]

    def _arrived(self) -> bytes:
        """Wait for bytes, then take all that are there."""
        if self._first:
            # What came with the headers is in the buffer of the answer; this empties it.
            self._first = False
            pieces = [self._response.fp.read1(_READ_BYTES)]
        else:
            pieces = [self._socket.recv(_READ_BYTES)]
        size = len(pieces[0])
        self._socket.settimeout(0)
        try:
            while pieces[-1] and size < _BATCH_BYTES_MAX:
                pieces.append(self._socket.recv(_READ_BYTES))
                size += len(pieces[-1])
        except (BlockingIOError, ssl.SSLWantReadError):
            return b"".join(pieces)
        except OSError:
            # What has arrived before the cut is good; the next reading meets it again.
            return b"".join(pieces)
        finally:
            self._socket.settimeout(self._idle_timeout_seconds)
        self._has_ended = not pieces[-1]
        return b"".join(pieces)

    def cut(self) -> None:
        """End the stream; a thread that reads it returns at once, with an error or without lines."""
        with suppress(OSError):  # The other side may have been first.
            # Not the method of a TLS connection, which would take its state from under the thread that reads.
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connection, after the last reading."""
        self._response.close()
        self._socket.close()
