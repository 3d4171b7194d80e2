"""One stream of `licorne.v1` to a server: messages go out and come in, and calls get their answers."""

from __future__ import annotations

import math
import queue
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Final, final

import grpc

from .... import __version__
from ....actors.services.interrupts import start_thread
from ....model.errors import LicorneError, ReplacedError, RequestError
from ...core.scheduler.answering.sent_values import VALUE_VERSION
from ...si import licorne_v1_pb2 as v1
from ...si.arguments import check_type
from ...si.constants import keepalive_options
from ...si.messages import MERGED_BYTES_MAX, MERGED_MAX, MESSAGE_BYTES_MAX, largest_entry, merges_into
from .errors import ConnectionLostError, NotSentError

SENDING_MAX: Final = 256
"""How many messages wait to be sent before the next call waits."""
_MERGING_SECONDS: Final = 0.001
"""Requests without an answer are sent this far apart, and merged meanwhile. The next one does not wait if the
one before was not merged and the server has sent something since."""
_LOOK_SECONDS: Final = 1.0
"""How often a message that waits to be sent looks whether the connection is lost."""
_NOTHING: Final = v1.ManagerMessage()
"""Stands for a message that has not been taken from the queue yet."""
_ADDRESS: Final = re.compile(r"(dns:)?[^:\s]+:[0-9]{1,5}|(dns:|ipv6:)?\[[0-9a-fA-F:.%]+\]:[0-9]{1,5}")
_TOKEN: Final = re.compile(r"[ -~]*[!-~][ -~]*")
_WAIT_MIN_SECONDS: Final = 0.05
_WAIT_MAX_SECONDS: Final = 0.5
"""The longest delay between two attempts to reach a server for the first time."""
_FAIR_SECONDS: Final = 5.0
"""The result of a server that had less time than this tells less than that of the attempt before."""
_OPEN: Final = "/licorne.v1.Session/Open"
_SIGN: Final = "licorne-sign-of-life"
"""The application that a sign of life asks for; there is none of this id."""
_KEEPALIVE_SECONDS: Final = 20.0
"""How long a server may be silent before it is asked for a sign of life."""
_SIGN_SECONDS: Final = 10.0
"""How long it may take to give one."""
_LASTING: Final = frozenset(
    {
        grpc.StatusCode.UNAUTHENTICATED,
        grpc.StatusCode.PERMISSION_DENIED,
        grpc.StatusCode.UNIMPLEMENTED,
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.FAILED_PRECONDITION,
    }
)
"""The statuses that the same session would end with again."""
_LASTING_SIGNS: Final = (
    "CERTIFICATE_VERIFY_FAILED",
    "Hostname Verification",
    "WRONG_VERSION_NUMBER",
    "Failed parsing HTTP/2",
)
"""Likewise, in the text: TLS on one side alone, a certificate that is not trusted, a server for HTTP/1.1."""
_SAID: Final = _LASTING | {grpc.StatusCode.ABORTED, grpc.StatusCode.RESOURCE_EXHAUSTED}
"""The statuses of a server that ends a session: none is that of a lost connection."""


@final
class Connection:
    """A session with a server, from `hello` on.

    Args:
        address: `HOST:PORT` of the server.
        credentials: The credentials for TLS; `None` without TLS.
        metadata: Sent with the call, such as the token.
        receive: Gets each message that is not an answer, on the connection's own thread; it may wait.
        on_lost: Called once when the session has ended, on that thread.
        timeout: How many seconds the server may take to answer `hello`.
        door: The door that is the client, if it is one.

    Raises:
        ConnectionLostError: The server cannot be reached.
        RequestError: It refuses the session.
    """

    def __init__(
        self,
        address: str,
        *,
        credentials: grpc.ChannelCredentials | None,
        metadata: Sequence[tuple[str, str]],
        receive: Callable[[v1.SchedulerMessage], None],
        on_lost: Callable[[Connection], None],
        timeout: float,
        door: v1.DoorStart | None = None,
    ) -> None:
        self._address = address
        self._receive = receive
        self._on_lost = on_lost
        self._sending: queue.Queue[v1.ManagerMessage | None] = queue.Queue(SENDING_MAX)
        self._lock = threading.Lock()
        self._calls: dict[int, Future[v1.Answer]] = {}
        self._signs_asked: set[int] = set()
        """Those of the calls for whose answer no thread waits."""
        self._count = 0
        self.signs = 0
        """How many messages have come: each is a sign of life."""
        self.is_held_up = False
        """Whether a message is being taken: meanwhile no other one is read."""
        self._end_reason = ""
        self.is_stepped = False
        """Whether the scheduler does nothing by itself; known when it has answered."""
        self.rest_address = ""
        """Where the REST interface of the server listens, `HOST:PORT`; empty if it has none."""
        self.server_version = ""
        """The version of Licorne there, known when it has answered; empty if it does not send it."""
        self.server_build = ""
        """The hash of its sources; known when it has answered."""
        self._lost: ConnectionLostError | None = None
        if credentials is None:
            self._channel = grpc.insecure_channel(address, options=_options())
        else:
            self._channel = grpc.secure_channel(address, credentials, options=_options())
        method = self._channel.stream_stream(
            _OPEN,
            request_serializer=v1.ManagerMessage.SerializeToString,
            response_deserializer=v1.SchedulerMessage.FromString,
        )
        hello = self.call_later(v1.ManagerMessage(hello=v1.Hello(version=__version__, door=door)))
        self._stream = method(self._requests(), metadata=tuple(metadata))
        self._thread = start_thread(self._read, f"licorne-client-{address}")
        try:
            answer = hello.result(timeout)
        except TimeoutError as error:
            self.close()
            raise ConnectionLostError(f"{address} did not answer within {timeout:g} s") from error
        except BaseException:
            self.close()
            raise
        self.is_stepped = answer.stepped
        self.rest_address = answer.rest_address
        self.server_version = answer.version
        self.server_build = answer.build

    @property
    def lost(self) -> ConnectionLostError | None:
        """Return why the connection is lost, `None` while it is not; `on_lost` is called after that."""
        return self._lost

    @property
    def has_calls(self) -> bool:
        """Return whether a thread waits for the answer to a call."""
        return len(self._calls) > len(self._signs_asked)

    def send(self, message: v1.ManagerMessage, timeout_seconds: float = math.inf) -> None:
        """Send a message that needs no answer; wait while too many are waiting to be sent.

        Raises:
            RequestError: The message is larger than a server takes; it would end the session.
            ConnectionLostError: The connection is lost.
            NotSentError: Too many were waiting all the time; with a timeout of 0 it does not wait.
        """
        _check_size(message)
        deadline = time.monotonic() + timeout_seconds
        while True:
            if self._lost is not None:
                raise self._lost
            try:
                self._sending.put(message, timeout=min(max(deadline - time.monotonic(), 0.0), _LOOK_SECONDS))
            except queue.Full:
                if time.monotonic() >= deadline:
                    text = (
                        f"the scheduler at {self._address} does not read: {SENDING_MAX} messages wait to be "
                        f"sent, this one was not sent within {timeout_seconds:g} s"
                    )
                    raise NotSentError(text) from None
                continue
            return

    def call_later(
        self,
        message: v1.ManagerMessage,
        on_end: Callable[[Future[v1.Answer]], None] | None = None,
        timeout_seconds: float = math.inf,
        *,
        asks_sign: bool = False,
    ) -> Future[v1.Answer]:
        """Send a message that needs an answer; return the future of the answer.

        Args:
            message: The message.
            on_end: Called with the future when it has its answer, before a later message is received.
            timeout_seconds: How long the message may wait to be sent.
            asks_sign: Whether no thread waits for the answer: callbacks may stand before it for long.

        Raises:
            RequestError: The message is larger than a server takes; it would end the session.
            ConnectionLostError: The connection is lost.
            NotSentError: It has waited so long; it was not sent.
        """
        future: Future[v1.Answer] = Future()
        if on_end is not None:
            future.add_done_callback(on_end)
        with self._lock:
            if self._lost is not None:
                raise self._lost
            self._count += 1
            message.call = self._count
            self._calls[message.call] = future
            if asks_sign:
                self._signs_asked.add(message.call)
        try:
            self.send(message, timeout_seconds)
        except BaseException:
            with self._lock:
                self._calls.pop(message.call, None)
                self._signs_asked.discard(message.call)
            raise
        return future

    def ask_sign(self) -> Future[v1.Answer]:
        """Ask something that passes through the turn of each partition; the answer has no content.

        It is carried out behind all that was sent before. Do not wait for that.

        Raises:
            ConnectionLostError: The connection is lost.
            NotSentError: The server does not read.
        """
        question = v1.Question(queue_and_user=v1.Explain(application_id=_SIGN), value_version=VALUE_VERSION)
        return self.call_later(v1.ManagerMessage(question=question), timeout_seconds=0.0, asks_sign=True)

    def end(self, reason: str) -> None:
        """End the session as one that is lost for a reason; do not wait for that."""
        self._end_reason = reason
        self._stream.cancel()

    def close(self) -> None:
        """End the session and its thread."""
        self._stream.cancel()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def finish(self, timeout: float) -> None:
        """Close this side, and wait for the server to send what is queued and to end the session."""
        with suppress(queue.Full):  # The server does not read.
            self._sending.put(None, timeout=timeout)
        if self._thread is not None:
            self._thread.join(timeout)
        self.close()

    def _requests(self) -> Iterator[v1.ManagerMessage]:
        message = self._sending.get()
        sent_at, sent_count, signs = 0.0, 0, 0
        while message is not None:
            early = sent_at + _MERGING_SECONDS - time.monotonic()
            is_answered = sent_count == 1 and self.signs != signs
            if early > 0 and not (is_answered or message.call or self.is_stepped):
                time.sleep(early)  # Later requests join it meanwhile: a message costs more than its entries.
            message, sent_count, following = self._merged(message)
            sent_at, signs = time.monotonic(), self.signs
            yield message
            message = following if following is not _NOTHING else self._sending.get()

    def _merged(self, message: v1.ManagerMessage) -> tuple[v1.ManagerMessage, int, v1.ManagerMessage | None]:
        """Return a message, merged with the asks or releases right behind it, their number, and the next."""
        count, merged_bytes = 1, 0
        while count < MERGED_MAX and not message.call and message.WhichOneof("body") == "update_allocation":
            try:
                following = self._sending.get_nowait()
            except queue.Empty:
                break
            if following is None or not merges_into(following, message):
                return message, count, following
            merged_bytes = (merged_bytes or message.ByteSize()) + following.ByteSize()
            if merged_bytes > MERGED_BYTES_MAX:
                return message, count, following
            message.MergeFrom(following)
            count += 1
        return message, count, _NOTHING

    def _read(self) -> None:
        """Receive messages until the session ends."""
        reason, is_passing, by_server = "the server has ended the session", True, False
        try:
            for message in self._stream:
                self.signs += 1
                self._take(message)
        except grpc.RpcError as error:
            reason = self._end_reason or _reason(error)
            is_passing = not _lasts(error)
            by_server = isinstance(error, grpc.Call) and error.code() in _SAID
        finally:
            self._lose(reason, is_passing=is_passing, by_server=by_server)
            self._channel.close()
            self._on_lost(self)

    def _take(self, message: v1.SchedulerMessage) -> None:
        if not message.call:
            self.is_held_up = True
            self._receive(message)
            self.is_held_up = False
            return
        with self._lock:
            future = self._calls.pop(message.call, None)
            self._signs_asked.discard(message.call)
        if future is None:
            return
        if message.HasField("refusal"):
            future.set_exception(refusal_error(message.refusal))
        else:
            future.set_result(message.answer)

    def _lose(self, reason: str, *, is_passing: bool, by_server: bool = False) -> None:
        """Note that the connection is lost; calls that wait for an answer end."""
        text = f"no connection to the scheduler at {self._address}: {reason}"
        error = ConnectionLostError(text, is_passing=is_passing, by_server=by_server)
        with self._lock:
            self._lost = error
            waiting, self._calls = list(self._calls.values()), {}
            self._signs_asked.clear()
        for future in waiting:
            future.set_exception(error)
        while True:  # The thread of gRPC that sends ends by this; room is made if there is none.
            try:
                self._sending.put_nowait(None)
            except queue.Full:  # A call that waited for room may take it first.
                with suppress(queue.Empty):
                    self._sending.get_nowait()
            else:
                return


def _options() -> tuple[tuple[str, int], ...]:
    return (
        ("grpc.max_receive_message_length", -1),
        ("grpc.max_send_message_length", -1),
        *keepalive_options(_KEEPALIVE_SECONDS, _SIGN_SECONDS),
        ("grpc.use_local_subchannel_pool", 1),  # No two connections share one.
    )


def _check_size(message: v1.ManagerMessage) -> None:
    """Refuse a message that a server does not take.

    Raises:
        RequestError: It is one; the text names what makes it large.
    """
    size_bytes = message.ByteSize()
    if size_bytes > MESSAGE_BYTES_MAX:
        body = message.WhichOneof("body") or ""
        largest = largest_entry(getattr(message, body)) if body else ""
        raise RequestError(
            f"{body} of {size_bytes:,} bytes is not sent: a server takes {MESSAGE_BYTES_MAX:,} bytes in one "
            f"message{f'; {largest}' if largest else ''}"
        )


def refusal_error(refusal: v1.Refusal) -> Exception:
    """Return the error that the scheduler raised."""
    if refusal.kind == v1.Refusal.REPLACED:
        return ReplacedError(refusal.text)
    if refusal.kind == v1.Refusal.INVARIANT:
        return AssertionError(refusal.text)
    return RequestError(refusal.text) if refusal.kind == v1.Refusal.REQUEST else LicorneError(refusal.text)


def _lasts(error: grpc.RpcError) -> bool:
    """Return whether the same session would end in the same way."""
    if not isinstance(error, grpc.Call):
        return False
    return error.code() in _LASTING or any(sign in (error.details() or "") for sign in _LASTING_SIGNS)


def _reason(error: grpc.RpcError) -> str:
    if isinstance(error, grpc.Call):
        return f"{error.code().name}: {error.details()}"
    return str(error)


@final
class Transport:
    """The settings for all connections of a client; files are read once.

    Raises:
        LicorneError: An argument is of another type, the address is not one, a file cannot be read, or only
            one of certificate and key is given.
    """

    def __init__(
        self,
        address: str,
        token: str | None,
        root_certificates: Path | str | None,
        certificate: Path | str | None,
        key: Path | str | None,
        *,
        door: v1.DoorStart | None = None,
    ) -> None:
        _check_address(address)
        if token is not None and not (isinstance(token, str) and _TOKEN.fullmatch(token)):
            raise LicorneError("token: expected a text of visible ASCII characters")  # It is not quoted.
        for name, path in (
            ("root_certificates", root_certificates),
            ("certificate", certificate),
            ("key", key),
        ):
            check_type(name, path, Path, str, type(None))
        self.address = address
        self._door = door
        self._metadata = [] if token is None else [("authorization", f"Bearer {token}")]
        if (certificate is None) != (key is None):
            raise LicorneError("a client certificate and its key belong together: only one of them is given")
        self._credentials: grpc.ChannelCredentials | None = None
        if root_certificates is not None or certificate is not None:
            self._credentials = grpc.ssl_channel_credentials(
                _content(root_certificates), _content(key), _content(certificate)
            )

    def connect(
        self,
        receive: Callable[[v1.SchedulerMessage], None],
        on_lost: Callable[[Connection], None],
        timeout: float,
    ) -> Connection:
        """Connect; see `Connection`.

        Raises:
            ConnectionLostError: The server cannot be reached.
            RequestError: It refuses the session.
        """
        return Connection(
            self.address,
            credentials=self._credentials,
            metadata=self._metadata,
            receive=receive,
            on_lost=on_lost,
            timeout=timeout,
            door=self._door,
        )


def first_connection(
    connect: Callable[[float], Connection], timeout: float, *, has_listened: bool = False
) -> Connection:
    """Connect; wait for a server that does not listen yet.

    Args:
        connect: Connects within a number of seconds.
        timeout: For how long it is tried, in seconds.
        has_listened: Whether it listened before: one that refuses connections has ended.

    Raises:
        ConnectionLostError: It cannot be reached within the timeout.
        RequestError: It refuses the connection.
    """
    deadline = time.monotonic() + timeout
    delay = _WAIT_MIN_SECONDS
    known: ConnectionLostError | None = None
    while True:
        seconds = max(deadline - time.monotonic(), _WAIT_MIN_SECONDS)
        try:
            return connect(seconds)
        except ConnectionLostError as error:
            if known is None or seconds >= _FAIR_SECONDS or not isinstance(error.__cause__, TimeoutError):
                known = error
            has_ended = has_listened and "Connection refused" in str(error)
            if has_ended or not error.is_passing or time.monotonic() + delay >= deadline:
                raise known from error
        time.sleep(delay)
        delay = min(delay * 2, _WAIT_MAX_SECONDS)


def _check_address(address: str) -> None:
    """Refuse an address that gRPC would try for as long as it may: one without a port, or with that of HTTP.

    Raises:
        LicorneError: It is not one.
    """
    check_type("address", address, str)
    if "://" in address or not (address.startswith("unix:") or _ADDRESS.fullmatch(address)):
        raise LicorneError(f"address={address!r:.200}: expected HOST:PORT, for example 127.0.0.1:3333")


def _content(path: Path | str | None) -> bytes | None:
    """Return the content of a file, `None` for no file.

    Raises:
        LicorneError: It cannot be read.
    """
    if path is None:
        return None
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise LicorneError(f"{path}: cannot be read: {error.strerror or error}") from error
