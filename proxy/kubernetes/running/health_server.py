"""What a kubelet asks a process: whether to start it anew, and whether it could work at once.

It is apart from the REST interface, which may ask for a token, and which a standby serves as well.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final, Self, final

from ....model.errors import LicorneError
from ...wire.server.addresses import Address

_READ_SECONDS: Final = 5.0


@final
class HealthServer:
    """Answers `GET /livez` and `GET /readyz` inside of a `with` block: 200, or 503 with the reason.

    Args:
        address: Where it listens.
        why_stuck: Returns why the process has to be started anew, empty if it has not.
        why_not_ready: Returns what the process waits for, empty if it waits for nothing.

    Raises:
        LicorneError: It cannot listen there.
    """

    def __init__(
        self, address: Address, *, why_stuck: Callable[[], str], why_not_ready: Callable[[], str]
    ) -> None:
        checks = {"/livez": why_stuck, "/readyz": why_not_ready}
        try:
            self._server = ThreadingHTTPServer((address.host, address.port), _handler(checks))
        except OSError as error:
            raise LicorneError(f"cannot listen on {address}: {error.strerror or error}") from error
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="licorne-kubernetes-health", daemon=True
        )

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self._server.server_address[1])

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _handler(checks: Mapping[str, Callable[[], str]]) -> type[BaseHTTPRequestHandler]:
    """Return the class that answers a connection."""

    class Probe(BaseHTTPRequestHandler):
        timeout = _READ_SECONDS
        wbufsize = -1  # Head and body are one packet: who ends in between has not answered half.

        def do_GET(self) -> None:
            check = checks.get(self.path)
            if check is None:
                self._answer(HTTPStatus.NOT_FOUND, f"there is {' and '.join(checks)}")
                return
            reason = check()
            self._answer(HTTPStatus.SERVICE_UNAVAILABLE if reason else HTTPStatus.OK, reason or "ok")

        def _answer(self, status: HTTPStatus, text: str) -> None:
            body = f"{text}\n".encode()
            self.send_response(status)
            self.send_header("Content-Type", "text/plain; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
            """Say nothing: a kubelet asks each few seconds."""

    return Probe
