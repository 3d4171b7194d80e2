"""A TCP proxy on this machine that cuts its connections, half way through a message, or falls silent."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Collection
from contextlib import suppress
from typing import Final, Self, final

TO_SERVER: Final = "to the server"
TO_CLIENT: Final = "to the client"
BOTH_WAYS: Final = (TO_SERVER, TO_CLIENT)

_ABORT: Final = struct.pack("ii", 1, 0)
"""Has a socket that closes send a reset at once."""


@final
class CuttingProxy:
    """Passes bytes between clients and a server, until it is told to cut all connections."""

    def __init__(self, port: int) -> None:
        self._server = "127.0.0.1", port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listening.getsockname()[1]}"
        self._lock = threading.Lock()
        self._open: list[socket.socket] = []
        self._bytes_left: int | None = None
        self._is_silent = False
        self._flows = {way: threading.Event() for way in BOTH_WAYS}
        self.go_on()

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.close()
        self.cut()
        self.go_on()

    def cut(self) -> None:
        """Reset all connections; what is on its way is lost."""
        with self._lock:
            cut, self._open = self._open, []
        for each in cut:
            with suppress(OSError):
                each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _ABORT)
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def cut_after(self, count: int) -> None:
        """Cut all connections when so many more bytes have passed: mostly inside of a message."""
        with self._lock:
            self._bytes_left = count

    def silence(self) -> None:
        """Pass nothing on any more: both ends stay open, and hear nothing of each other."""
        self._is_silent = True

    def hold(self, ways: Collection[str] = BOTH_WAYS) -> None:
        """Keep what comes until `go_on`, as a network does that loses everything for a while."""
        for way in ways:
            self._flows[way].clear()

    def go_on(self) -> None:
        """Pass on what was kept, and what comes."""
        for flows in self._flows.values():
            flows.set()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self._server)
            except OSError:
                client.close()
                continue
            with self._lock:
                self._open += [client, server]
            for one, other, way in ((client, server, TO_SERVER), (server, client, TO_CLIENT)):
                threading.Thread(target=self._pass_on, args=(one, other, way), daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket, way: str) -> None:
        with suppress(OSError):
            while piece := source.recv(1 << 16):
                self._flows[way].wait()
                if self._is_silent:
                    continue
                with self._lock:
                    left = self._bytes_left
                    if left is not None:
                        piece, self._bytes_left = piece[:left], max(left - len(piece), 0)
                target.sendall(piece)
                if self._bytes_left == 0:
                    with self._lock:
                        self._bytes_left = None
                    self.cut()
                    return
        for each in (source, target):  # One that has ended takes the other with it.
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
