"""The objects of one kind in a cluster: a list, then every change, for as long as a program runs."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar, cast, final

import msgspec

from licorne.proxy.kubernetes.decoding import resolve_structs

from ....actors.services.log import Log
from ....model.errors import LicorneError
from ..decoding import decoded
from ..objects import ObjectMeta
from .api_client import ApiClient, backoff_seconds
from .connections import LineStream
from .errors import ApiError

_PAGE_SIZE: Final = 500
_PAGE_PATIENCE_SECONDS: Final = 5.0
"""How long a page of a list is requested; after that the list begins again."""
_WATCH_SECONDS: Final = (300, 600)
"""How long a watch lasts: a random time, so that all of them do not end at once."""
_IDLE_TIMEOUT_SECONDS: Final = 630.0
"""When a watch counts as lost: none lasts this long. A server may be silent, and TCP detects a dead one."""
_BACKOFF_SECONDS: Final = (1.0, 30.0)
_MISSING_SECONDS: Final = 60.0
"""After how long a missing kind is looked up again."""


class WatchChange(StrEnum):
    """How an object has changed."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


class HasMetadata(Protocol):
    """An object of Kubernetes."""

    @property
    def metadata(self) -> ObjectMeta:
        """The metadata of the object."""


_Object = TypeVar("_Object", bound=HasMetadata)


@final
@dataclass(frozen=True, slots=True)
class UnreadableObject:
    """An object of the cluster that cannot be read.

    Attributes:
        kind: The struct into which it could not be decoded.
        metadata: Its name, namespace, uid and version, as far as they can be read.
        reason: The reason why it cannot be read.
    """

    kind: type[Any]
    metadata: ObjectMeta
    reason: str


Read: TypeAlias = _Object | UnreadableObject
"""An object that was read, or one that cannot be."""


def read_object(decoder: msgspec.json.Decoder[_Object], raw: bytes | msgspec.Raw) -> Read[_Object]:
    """Return an object; an undecodable one is returned as an `UnreadableObject`."""
    try:
        return decoded(decoder, raw)
    except (msgspec.DecodeError, RecursionError) as error:
        described = _described(raw)
        metadata = ObjectMeta(
            name=described.name,
            namespace=described.namespace,
            uid=described.uid,
            resource_version=described.resource_version,
        )
        return UnreadableObject(cast("type[Any]", decoder.type), metadata, str(error))


def _described(raw: bytes | msgspec.Raw) -> _Version:
    """Return name and version of an object, empty if they are missing."""
    try:
        return msgspec.json.decode(raw, type=_Versioned).metadata
    except (msgspec.DecodeError, RecursionError):
        return _Version()


@final
@dataclass(frozen=True, slots=True)
class WatchedResource(Generic[_Object]):
    """The objects of a watch.

    Attributes:
        path: Their path, for example `/api/v1/pods` or `/api/v1/namespaces/default/configmaps`.
        type: The struct into which they are decoded.
        label_selector: The labels that they have, as a selector of Kubernetes; empty for any.
        field_selector: The fields that they have, for example `spec.nodeName=`; empty for any.
    """

    path: str
    type: type[_Object]
    label_selector: str = ""
    field_selector: str = ""

    def query(self) -> dict[str, str]:
        """Return the selectors as parameters of a request."""
        selectors = {"labelSelector": self.label_selector, "fieldSelector": self.field_selector}
        return {name: selector for name, selector in selectors.items() if selector}


class _ListMeta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    continue_token: str = msgspec.field(default="", name="continue")


class _ListDocument(msgspec.Struct, frozen=True):
    """A page of a list."""

    metadata: _ListMeta = _ListMeta()
    items: list[msgspec.Raw] | None = None


class _WatchEvent(msgspec.Struct, frozen=True, gc=False):
    """A line of a watch."""

    type: str
    object: msgspec.Raw


class _Version(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    name: str = ""
    namespace: str = ""
    uid: str = ""


class _Versioned(msgspec.Struct, frozen=True):
    """An object of which only name and version are read: the object of a bookmark has nothing else."""

    metadata: _Version = _Version()


@final
class ListWatch(Generic[_Object]):
    """Follows the objects of one kind until it is stopped.

    It lists them, and watches from the version of the list on. The next watch continues where the last one
    ended. When the server has forgotten that version, the objects are listed again. Failures are retried
    after 1 to 30 seconds. Both callbacks are called on the thread that runs it.

    Args:
        client: The client.
        resource: The objects to follow.
        on_list: Called with all objects and the version of the list. Objects that are not in it are gone. In
            the list and among the changes an unreadable object is an `UnreadableObject`.
        on_events: Called with the changes that have arrived, in order: all changes of one reading. A change
            can arrive again. A deleted object has its last state.
        on_missing: Called when the server does not have the kind, or does not grant it; `None` if a cluster
            always has it.
        log: The log for failures.
        page_size: How many objects a request lists.
        idle_timeout_seconds: How long a watch is silent before it counts as lost.
        missing_seconds: After how long a missing kind is looked up again.
        backoff_limits_seconds: How long the first and the longest pause after a failure are.
    """

    def __init__(
        self,
        client: ApiClient,
        resource: WatchedResource[_Object],
        *,
        on_list: Callable[[Sequence[Read[_Object]], str], None],
        on_events: Callable[[Sequence[tuple[WatchChange, Read[_Object]]]], None],
        on_missing: Callable[[], None] | None = None,
        log: Log | None = None,
        page_size: int = _PAGE_SIZE,
        idle_timeout_seconds: float = _IDLE_TIMEOUT_SECONDS,
        missing_seconds: float = _MISSING_SECONDS,
        backoff_limits_seconds: tuple[float, float] = _BACKOFF_SECONDS,
    ) -> None:
        self._client = client
        self._resource = resource
        self._on_list = on_list
        self._on_events = on_events
        self._on_missing = on_missing
        self._is_missing = False
        self._log = log if log is not None else Log()
        self._page_size = page_size
        self._idle_timeout_seconds = idle_timeout_seconds
        self._missing_seconds = missing_seconds
        self._backoff_limits = backoff_limits_seconds
        self._decoder = msgspec.json.Decoder(resource.type)
        self._event_decoder = msgspec.json.Decoder(_WatchEvent)
        self._version: str | None = None
        self.list_count = 0
        """How often all objects were listed; from any thread."""
        self._failures = 0
        self._failure: LicorneError | None = None
        self._lock = threading.Lock()
        self._stream: LineStream | None = None
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def failure(self) -> LicorneError | None:
        """The reason why it does not follow the objects now; `None` while it does, or has not tried yet."""
        return self._failure

    @property
    def resource_version(self) -> str | None:
        """The version up to which everything was handed over; `None` before the first list."""
        return self._version

    def start(self) -> None:
        """Start a thread that follows the objects."""
        name = f"watch {self._resource.path}"
        self._thread = threading.Thread(target=self.run, name=name, daemon=True)
        self._thread.start()

    def stop(self, timeout_seconds: float = 10.0) -> None:
        """End, and wait for the thread unless it is this one; no callback is called afterwards.

        A watch ends at once, a list when the requested page has arrived.

        Args:
            timeout_seconds: How long to wait for the thread.
        """
        self._stopped.set()
        with self._lock:
            if self._stream is not None:
                self._stream.cut()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout_seconds)

    def run(self) -> None:
        """Follow the objects on this thread, until it is stopped.

        An exception of a callback ends it.
        """
        while not self._stopped.is_set():
            try:
                if self._version is None:
                    items, version = self.read_list()
                    if self._stopped.is_set():
                        return
                    self.list_count += 1
                    self._is_missing = False
                    self._on_list(items, version)
                    self._version = version
                self._watch()
            except LicorneError as error:
                if self._on_missing is not None and is_missing_kind(error):
                    self._note_missing(error, self._on_missing)
                else:
                    self._note(error)
            if self._is_missing:
                self._stopped.wait(self._missing_seconds)
            elif self._failures:
                self._stopped.wait(backoff_seconds(self._failures, self._backoff_limits))

    def _note_missing(self, error: LicorneError, on_missing: Callable[[], None]) -> None:
        """Report a missing kind once; a kind that is not granted is logged."""
        self._version = None
        if not self._is_missing and not self._stopped.is_set():
            self._is_missing = True
            if not isinstance(error, ApiError) or error.status != HTTPStatus.NOT_FOUND:
                self._log.warning("{}: {}", self._resource.path, error)
            on_missing()

    def _note(self, error: LicorneError) -> None:
        """Record a failure, and whether the objects are listed again."""
        if self._stopped.is_set():
            return
        self._failures += 1
        self._failure = error
        if _is_expired(error):
            self._version = None
        self._log.warning("{}: {}", self._resource.path, error)

    def read_list(self) -> tuple[list[Read[_Object]], str]:
        """Return all present objects, and the version of the list.

        Raises:
            ApiError, ApiUnreachable, CredentialError, InputError: As for a request.
        """
        items: list[Read[_Object]] = []
        token = ""
        while True:
            page = self._page(token)
            items += map(self._decode, page.items or ())
            token = page.metadata.continue_token
            if not token or self._stopped.is_set():
                return items, page.metadata.resource_version

    def _page(self, token: str) -> _ListDocument:
        query = {**self._resource.query(), "limit": str(self._page_size)}
        if token:
            query["continue"] = token
        body = self._client.request(
            "GET", self._resource.path, query=query, patience_seconds=_PAGE_PATIENCE_SECONDS
        )
        try:
            return msgspec.json.decode(body, type=_ListDocument)
        except msgspec.DecodeError as error:
            raise ApiError(200, "Unreadable", f"{self._resource.path} is not a list: {error}") from error

    def _watch(self) -> None:
        """Hand over changes until the watch ends."""
        if self._version is None:
            return
        began = time.monotonic()
        query = {
            **self._resource.query(),
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
            "timeoutSeconds": str(random.randint(*_WATCH_SECONDS)),  # noqa: S311 - dice, no secret
        }
        stream = self._client.open_lines(self._resource.path, query, self._idle_timeout_seconds)
        with self._lock:
            self._stream = stream
        try:
            self._failure = None
            while not self._stopped.is_set() and (lines := stream.read()):
                self._hand_over(lines)
                self._failures = 0
        finally:
            with self._lock:
                self._stream = None
            stream.close()
        # If a server ends every watch at once, pause before the next one.
        ended_early = time.monotonic() - began < self._backoff_limits[0]
        self._failures = self._failures + 1 if ended_early else 0

    def _hand_over(self, lines: Sequence[bytes]) -> None:
        """Hand over the changes in lines of a watch, and record the version that they reach.

        Raises:
            ApiError: One of them is an error, which ends the watch. Those before it are handed over.
        """
        changes: list[tuple[WatchChange, Read[_Object]]] = []
        version = None
        error = None
        for line in lines:
            try:
                event = self._event_decoder.decode(line)
            except msgspec.DecodeError as failure:
                error = ApiError(200, "Unreadable", f"{line[:100]!r} is not an event: {failure}")
                break
            if event.type == "ERROR":
                error = ApiError.of_event(event.object)
                break
            if event.type in _CHANGES:
                found = self._decode(event.object)
                changes.append((_CHANGES[event.type], found))
                version = found.metadata.resource_version or version
            else:
                version = _described(event.object).resource_version or version
        if changes and not self._stopped.is_set():
            self._on_events(changes)
        self._version = version or self._version
        if error is not None:
            raise error

    def _decode(self, raw: msgspec.Raw) -> Read[_Object]:
        """Return an object; log one that cannot be read."""
        found = read_object(self._decoder, raw)
        if isinstance(found, UnreadableObject):
            name = f"{found.metadata.namespace}/{found.metadata.name}"
            self._log.error("{}: {} cannot be read: {}", self._resource.path, name, found.reason)
        return found


_CHANGES: Final = {change.value: change for change in WatchChange}


def is_missing_kind(error: LicorneError) -> bool:
    """Return whether a server does not have a kind, or does not grant it."""
    return isinstance(error, ApiError) and error.status in {HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN}


def _is_expired(error: LicorneError) -> bool:
    """Return whether the server has forgotten a version: an invalid version leads to a new list as well."""
    return isinstance(error, ApiError) and (error.status == 410 or error.reason in {"Expired", "Gone"})


resolve_structs(__name__)
