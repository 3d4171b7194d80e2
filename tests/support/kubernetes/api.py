"""The administrator's client of a cluster in tests: JSON in, JSON out, and the status as the server gives it.

It is no client of the product: a test must see what the API server says, whatever our own client makes of it.
"""

from __future__ import annotations

import http.client
import json
import select
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from typing import Any, Final
from urllib.parse import urlencode

from support.waiting import WAIT_SECONDS, happens

JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH: Final = "application/strategic-merge-patch+json"


class RefusedError(Exception):
    """The API server did not do what it was asked."""

    def __init__(self, request: str, status: int, document: Mapping[str, Any]) -> None:
        super().__init__(f"{request}: {status} {document}")
        self.status = status


class Watch:
    """Events as they come, each a dictionary with `type` and `object`; the server or `stop` ends them."""

    def __init__(self, connection: http.client.HTTPSConnection, answer: http.client.HTTPResponse) -> None:
        self._connection = connection
        self._answer = answer

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield what comes.

        Raises:
            OSError: The connection was cut.
            http.client.HTTPException: The connection was cut within an event.
        """
        with closing(self._connection):
            while line := self._answer.readline():
                yield json.loads(line)

    def stop(self) -> None:
        """End the watch, from any thread: who waits for the next event gets the end or an error."""
        sock = self._connection.sock
        if sock is not None:
            with suppress(OSError):  # it has ended already
                socket.socket.shutdown(
                    sock, socket.SHUT_RDWR
                )  # the one of TLS may not be called beside a read


class Api:
    """A client with one connection, which is opened when it is needed; for one thread at a time."""

    def __init__(self, host: str, port: int, *, context: ssl.SSLContext, token: str) -> None:
        self._address = (host, port)
        self._context = context
        self._token = token
        self._headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        self._connection = self._new_connection()

    def impersonating(self, user: str, group: str) -> Api:
        """Return a client, of its own connection, whose requests are those of another user in a group."""
        other = Api(*self._address, context=self._context, token=self._token)
        other._headers |= {"Impersonate-User": user, "Impersonate-Group": group}
        return other

    def request(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | list[Any] | None = None,
        content_type: str = "application/json",
    ) -> tuple[int, dict[str, Any]]:
        """Send a request; return the status and the document of the answer.

        Args:
            method: `GET`, `POST`, `PUT`, `PATCH` or `DELETE`.
            path: With the query, if there is one.
            body: A document, sent as JSON.
            content_type: For a patch, its kind.

        Raises:
            OSError: The connection was refused or cut.
            http.client.HTTPException: The connection was cut within an answer.
        """
        if self._was_closed_by_the_server():
            self._connection.close()
        payload = None if body is None else json.dumps(body).encode()
        try:
            self._connection.request(method, path, payload, self._headers | {"Content-Type": content_type})
            answer = self._connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException):
            self._connection.close()
            raise
        if answer.headers.get_content_type() != "application/json":
            return answer.status, {"message": text.decode(errors="replace")}
        return answer.status, json.loads(text)

    def ok(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | list[Any] | None = None,
        content_type: str = "application/json",
    ) -> dict[str, Any]:
        """Send a request that must succeed; return the document of the answer.

        Raises:
            RefusedError: The status is not one of success; the message has the document.
        """
        status, document = self.request(method, path, body, content_type)
        if not 200 <= status < 300:
            raise RefusedError(f"{method} {path}", status, document)
        return document

    def watch(self, path: str, **query: str) -> Watch:
        """Open a watch on a connection of its own.

        Args:
            path: Of the list that is watched.
            query: Such as `resourceVersion`, `fieldSelector` and `timeoutSeconds`.

        Raises:
            RefusedError: The server did not begin to watch.
            OSError: The connection was refused or cut.
        """
        connection = self._new_connection(timeout_seconds=None)
        connection.request("GET", f"{path}?{urlencode({'watch': '1'} | query)}", headers=self._headers)
        answer = connection.getresponse()
        if answer.status != 200:
            with closing(connection):
                raise RefusedError(f"watch {path}", answer.status, {"message": answer.read()})
        return Watch(connection, answer)

    def until(self, path: str, condition: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Read a document until a condition is true of it; return the document.

        Raises:
            AssertionError: The condition was not true in time; the message has the document.
        """
        documents: list[dict[str, Any]] = []

        def is_true() -> bool:
            documents[:] = [self.request("GET", path)[1]]
            return condition(documents[0])

        assert happens(is_true), f"{path} stays {json.dumps(documents[0])}"
        return documents[0]

    def close(self) -> None:
        """Close the connection; a further request opens another one."""
        self._connection.close()

    def _new_connection(self, timeout_seconds: float | None = WAIT_SECONDS) -> http.client.HTTPSConnection:
        host, port = self._address
        return http.client.HTTPSConnection(host, port, context=self._context, timeout=timeout_seconds)

    def _was_closed_by_the_server(self) -> bool:
        """Whether something is to be read before a request was sent, which is the end of the connection."""
        sock = self._connection.sock
        return sock is not None and bool(select.select([sock], [], [], 0)[0])
