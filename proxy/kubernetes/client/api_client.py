"""Requests to an API server: at a limited rate, with fresh credentials, repeated where it is safe."""

from __future__ import annotations

import math
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from typing import Final, Self, final
from urllib.parse import urlencode

from ....model.errors import LicorneError
from .connections import ApiConnections, HttpAnswer, LineStream
from .credentials import Credentials, Secret
from .errors import ApiError, ApiUnreachable

_BACKOFF_SECONDS: Final = (0.1, 5.0)


@final
class TokenBucket:
    """A bucket of tokens. Each request takes one, and waits until the bucket has refilled for it.

    Args:
        per_second: How many tokens come in a second.
        capacity: The maximum number of tokens, and the number at the beginning.
        now: The clock, seconds.
    """

    def __init__(self, per_second: float, capacity: int, now: Callable[[], float] = time.monotonic) -> None:
        self._per_second = per_second
        self._capacity = capacity
        self._now = now
        self._lock = threading.Lock()
        self._tokens = float(capacity)
        self._filled_at = now()

    def take(self) -> float:
        """Take a token, and return how many seconds the caller must wait before its request."""
        with self._lock:
            now = self._now()
            filled = self._tokens + (now - self._filled_at) * self._per_second
            self._tokens = min(float(self._capacity), filled) - 1.0
            self._filled_at = now
            return max(0.0, -self._tokens / self._per_second)


def backoff_seconds(failures: int, limits: tuple[float, float] = _BACKOFF_SECONDS) -> float:
    """Return how long to wait after a number of consecutive failures, at least one.

    It doubles with each, and a random half keeps programs that failed together apart.

    Args:
        failures: The number of failures.
        limits: The first and the longest time, seconds.
    """
    first, longest = limits
    # The exponent is bounded: a server may be unavailable for days.
    whole = min(longest, first * 2.0 ** min(failures - 1, 30))
    return whole * random.uniform(0.5, 1.0)  # noqa: S311 - dice, no secret


@final
class ApiClient:
    """A client of one API server. Threads share it; `with` closes it.

    Args:
        credentials: The address of the server, and the identity of the program.
        qps: How many requests are made a second.
        burst: How many may be made at once after a pause.
        connections_max: How many requests run at a time; watches are not counted.
        timeout_seconds: How long a request waits for its answer, unless it sets a time.
        patience_seconds: How long a request is repeated, unless it sets a time.
        user_agent: The name of the program in the server's log.
    """

    def __init__(
        self,
        credentials: Credentials,
        *,
        qps: float = 1000.0,
        burst: int = 1000,
        connections_max: int = 32,
        timeout_seconds: float = 30.0,
        patience_seconds: float = 60.0,
        user_agent: str = "licorne",
    ) -> None:
        self._credentials = credentials
        self._bucket = TokenBucket(qps, burst)
        self._connections_max = connections_max
        self._timeout_seconds = timeout_seconds
        self._patience_seconds = patience_seconds
        self._user_agent = user_agent
        self._lock = threading.Lock()
        self._connections: tuple[tuple[str | None, str | None], ApiConnections] | None = None
        self._request_counts: Counter[tuple[str, str]] = Counter()
        self._closed = threading.Event()

    def limit_rate(self, qps: float, burst: int) -> None:
        """Limit the requests from now on; 0 requests a second mean no limit.

        Args:
            qps: How many requests are made a second.
            burst: How many may be made at once after a pause.
        """
        self._bucket = TokenBucket(qps or math.inf, burst or 1)

    @property
    def request_counts(self) -> Mapping[tuple[str, str], int]:
        """The number of attempts by method, `WATCH` for a watch, and status, `none` without an answer."""
        with self._lock:
            return dict(self._request_counts)

    @property
    def namespace(self) -> str:
        """The namespace in the credentials."""
        return self._credentials.namespace

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        timeout_seconds: float | None = None,
        patience_seconds: float | None = None,
    ) -> bytes:
        """Make a request and return the body of the answer.

        It is repeated while its patience lasts: when the server asks for that (429 and 503 with
        `Retry-After`), and a GET also after a lost connection, 429 and 5xx. After 401 it is repeated once
        with new credentials, if there are any. A write whose answer was lost is not repeated: whether it was
        carried out is unknown, and the caller reads again.

        Args:
            method: `GET`, `POST`, `PUT`, `PATCH` or `DELETE`.
            path: The path, from `/api` or `/apis` on.
            query: Parameters of the path.
            body: The document.
            content_type: The media type of the document.
            timeout_seconds: How long one attempt waits for its answer.
            patience_seconds: How long attempts are made; 0 for one attempt.

        Raises:
            ApiError: The server has refused the request.
            ApiUnreachable: There was no answer, or the client is closed.
            CredentialError: A plugin failed, or the certificate of the server is not trusted.
            InputError: The file with the token cannot be read.
        """
        target = _target(path, query)
        timeout = self._timeout_seconds if timeout_seconds is None else timeout_seconds
        patience = self._patience_seconds if patience_seconds is None else patience_seconds
        headers = {} if body is None else {"Content-Type": content_type}
        deadline = time.monotonic() + patience
        failures = 0
        while True:
            try:
                return self._attempt(method, target, headers, body, timeout)
            except (ApiError, ApiUnreachable) as error:
                failures += 1
                delay = _delay(method, error, failures)
                if delay is None or time.monotonic() + delay > deadline:
                    raise
            self._wait(delay)

    def open_lines(self, path: str, query: Mapping[str, str], idle_timeout_seconds: float) -> LineStream:
        """Make a request whose answer is a stream of lines, such as a watch, and return it.

        It is repeated only after 401, once, with new credentials.

        Args:
            path: The path.
            query: Parameters of the path.
            idle_timeout_seconds: After how long without a line the connection counts as lost.

        Raises:
            ApiError, ApiUnreachable, CredentialError, InputError: As for a request.
        """
        target = _target(path, query)
        secret = self._credentials.identity.secret()
        try:
            return self._open(target, secret, idle_timeout_seconds)
        except ApiError as error:
            if error.status != 401 or not self._credentials.identity.renew(secret):
                raise
        return self._open(target, self._credentials.identity.secret(), idle_timeout_seconds)

    def close(self) -> None:
        """Make no further requests, and wake those that wait; their readers end the watches."""
        self._closed.set()
        with self._lock:
            if self._connections is not None:
                self._connections[1].close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _attempt(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None, timeout: float
    ) -> bytes:
        """Make a request once, and once more with new credentials if the server refuses the old ones."""

        def send(secret: Secret) -> HttpAnswer:
            connections = self._connections_for(secret)
            with self._counted(method) as statuses:
                answer = connections.send(method, target, {**headers, **_headers(secret)}, body, timeout)
                statuses.append(answer.status)
            return answer

        identity = self._credentials.identity
        secret = identity.secret()
        answer = send(secret)
        if answer.status == 401 and identity.renew(secret):
            answer = send(identity.secret())
        if answer.status >= 300:
            raise ApiError.of_answer(answer.status, answer.body, answer.retry_after)
        return answer.body

    def _open(self, target: str, secret: Secret, idle_timeout_seconds: float) -> LineStream:
        connections = self._connections_for(secret)
        with self._counted("WATCH") as statuses:
            stream = connections.open_lines(target, _headers(secret), idle_timeout_seconds)
            statuses.append(HTTPStatus.OK)
        return stream

    @contextmanager
    def _counted(self, method: str) -> Iterator[list[int]]:
        """Count an attempt by the status that the body appends, or that of its error."""
        statuses: list[int] = []
        try:
            yield statuses
        except ApiError as error:
            statuses.append(error.status)
            raise
        finally:
            with self._lock:
                self._request_counts[method, str(int(statuses[0])) if statuses else "none"] += 1

    def _wait(self, seconds: float) -> None:
        """Wait; raise if the client is closed."""
        if self._closed.wait(seconds) if seconds > 0 else self._closed.is_set():
            raise ApiUnreachable(f"{self._credentials.server}: the client is closed")

    def _connections_for(self, secret: Secret) -> ApiConnections:
        """Wait for the limit of the rate, and return the connections with the certificate of a secret.

        Another certificate needs new connections.
        """
        self._wait(self._bucket.take())
        pair = secret.certificate, secret.key
        with self._lock:
            if self._connections is None or self._connections[0] != pair:
                new = ApiConnections(self._credentials, secret, self._connections_max, self._user_agent)
                if self._connections is not None:
                    self._connections[1].close()
                self._connections = pair, new
            return self._connections[1]


def _target(path: str, query: Mapping[str, str] | None) -> str:
    """Return a path with its parameters."""
    return f"{path}?{urlencode(query)}" if query else path


def _headers(secret: Secret) -> dict[str, str]:
    """Return the headers of every request."""
    headers = {"Accept": "application/json"}
    if secret.token is not None:
        headers["Authorization"] = f"Bearer {secret.token}"
    return headers


def _delay(method: str, error: LicorneError, failures: int) -> float | None:
    """Return after how many seconds a request is repeated, `None` for no repetition."""
    if isinstance(error, ApiError):
        if error.status in {429, 503} and error.retry_after_seconds is not None:
            return max(error.retry_after_seconds, backoff_seconds(failures))
        if error.status != 429 and error.status < 500:
            return None
    return backoff_seconds(failures) if method == "GET" else None
