"""A TCP proxy on this machine that cuts its connections, half way through a message, or falls silent."""

from __future__ import annotations

import socket
import struct
import threading
from contextlib import suppress
from typing import Final, Self, final

__all__ = ["CuttingProxy"]

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

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.close()
        self.cut()

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
            for one, other in ((client, server), (server, client)):
                threading.Thread(target=self._pass_on, args=(one, other), daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while piece := source.recv(1 << 16):
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
