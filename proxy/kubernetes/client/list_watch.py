"""What a cluster has of one kind: a list, then every change, for as long as a program runs."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar, cast, final

import msgspec

from licorne.proxy.kubernetes.objects import resolve_structs

from ....actors.services.log import Log
from ....model.errors import LicorneError
from ..decoding import decoded
from ..objects import ObjectMeta
from .api_client import ApiClient, backoff_seconds
from .connections import LineStream
from .errors import ApiError

_PAGE_SIZE: Final = 500
_PAGE_PATIENCE_SECONDS: Final = 5.0
"""How long a page of a list is asked for; after that the list begins anew."""
_WATCH_SECONDS: Final = (300, 600)
"""How long a watch lasts: a random time, so that all of them do not end at once."""
_IDLE_TIMEOUT_SECONDS: Final = 630.0
"""When a watch counts as lost: it lasts less. Servers may be silent, and TCP notices a dead one."""
_BACKOFF_SECONDS: Final = (1.0, 30.0)


class WatchChange(StrEnum):
    """How an object has changed."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


class HasMetadata(Protocol):
    """An object of Kubernetes."""

    @property
    def metadata(self) -> ObjectMeta:
        """What every object has."""


_Object = TypeVar("_Object", bound=HasMetadata)


@final
@dataclass(frozen=True, slots=True)
class UnreadableObject:
    """An object of the cluster that cannot be read.

    Attributes:
        kind: The struct that it could not be decoded into.
        metadata: Its name, namespace, uid and version, as far as they can be read.
        reason: Why it cannot be read.
    """

    kind: type[Any]
    metadata: ObjectMeta
    reason: str


Read: TypeAlias = _Object | UnreadableObject
"""An object as it was read, or that it cannot be."""


def read_object(decoder: msgspec.json.Decoder[_Object], raw: bytes | msgspec.Raw) -> Read[_Object]:
    """Return an object; one that cannot be decoded is returned as such."""
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
    """Return name and version of an object, empty if it has none."""
    try:
        return msgspec.json.decode(raw, type=_Versioned).metadata
    except (msgspec.DecodeError, RecursionError):
        return _Version()


@final
@dataclass(frozen=True, slots=True)
class WatchedResource(Generic[_Object]):
    """The objects that a watch is about.

    Attributes:
        path: Their path, for example `/api/v1/pods` or `/api/v1/namespaces/default/configmaps`.
        type: The struct that they are decoded into.
        label_selector: The labels that they have, as Kubernetes writes selectors; empty for any.
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
    """An object of which name and version alone are read: that of a bookmark has nothing else."""

    metadata: _Version = _Version()


@final
class ListWatch(Generic[_Object]):
    """Follows the objects of one kind until it is stopped.

    It lists them, and watches from the version of the list on. A watch that ends goes on where it ended. When
    the server has forgotten that version, the objects are listed anew. What fails is tried again, after 1 to
    30 seconds. Both callbacks are called on the thread that runs it.

    Args:
        client: The client.
        resource: Which objects.
        on_list: Called with all objects and the version of the list. Objects that are not in it are gone. One
            that cannot be read is an `UnreadableObject` there, as it is among the changes.
        on_events: Called with the changes that have arrived, in order: all that one reading has brought. A
            change can arrive again. A deleted object is as it was last.
        log: Where failures are logged.
        page_size: How many objects a request lists.
        idle_timeout_seconds: How long a watch is silent before it counts as lost.
        backoff_limits_seconds: How long the first and the longest pause after a failure are.
    """

    def __init__(
        self,
        client: ApiClient,
        resource: WatchedResource[_Object],
        *,
        on_list: Callable[[Sequence[Read[_Object]], str], None],
        on_events: Callable[[Sequence[tuple[WatchChange, Read[_Object]]]], None],
        log: Log | None = None,
        page_size: int = _PAGE_SIZE,
        idle_timeout_seconds: float = _IDLE_TIMEOUT_SECONDS,
        backoff_limits_seconds: tuple[float, float] = _BACKOFF_SECONDS,
    ) -> None:
        self._client = client
        self._resource = resource
        self._on_list = on_list
        self._on_events = on_events
        self._log = log if log is not None else Log()
        self._page_size = page_size
        self._idle_timeout_seconds = idle_timeout_seconds
        self._backoff_limits = backoff_limits_seconds
        self._decoder = msgspec.json.Decoder(resource.type)
        self._event_decoder = msgspec.json.Decoder(_WatchEvent)
        self._version: str | None = None
        self._failures = 0
        self._failure: LicorneError | None = None
        self._lock = threading.Lock()
        self._stream: LineStream | None = None
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def failure(self) -> LicorneError | None:
        """Why it does not follow the objects at present; `None` while it does, or has not tried yet."""
        return self._failure

    @property
    def resource_version(self) -> str | None:
        """The version up to which everything was handed over; `None` before the first list."""
        return self._version

    def start(self) -> None:
        """Run on a thread of its own."""
        name = f"watch {self._resource.path}"
        self._thread = threading.Thread(target=self.run, name=name, daemon=True)
        self._thread.start()

    def stop(self, timeout_seconds: float = 10.0) -> None:
        """End, and wait for the thread unless it is this one; no callback is called afterwards.

        A watch ends at once, a list when the page it asks for has come.

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
                    self._on_list(items, version)
                    self._version = version
                self._watch()
            except LicorneError as error:
                self._note(error)
            if self._failures:
                self._stopped.wait(backoff_seconds(self._failures, self._backoff_limits))

    def _note(self, error: LicorneError) -> None:
        """Note a failure, and whether the objects are listed anew."""
        if self._stopped.is_set():
            return
        self._failures += 1
        self._failure = error
        if _is_expired(error):
            self._version = None
        self._log.warning("{}: {}", self._resource.path, error)

    def read_list(self) -> tuple[list[Read[_Object]], str]:
        """Return all objects as they are now, and the version of the list.

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
        # A server that ends every watch at once is not asked again without a pause.
        ended_early = time.monotonic() - began < self._backoff_limits[0]
        self._failures = self._failures + 1 if ended_early else 0

    def _hand_over(self, lines: Sequence[bytes]) -> None:
        """Hand over the changes in lines of a watch, and note how far they go.

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
        """Return an object; that one cannot be read is logged."""
        found = read_object(self._decoder, raw)
        if isinstance(found, UnreadableObject):
            name = f"{found.metadata.namespace}/{found.metadata.name}"
            self._log.error("{}: {} cannot be read: {}", self._resource.path, name, found.reason)
        return found


_CHANGES: Final = {change.value: change for change in WatchChange}


def _is_expired(error: LicorneError) -> bool:
    """Return whether the server has forgotten a version: what is not a version is listed anew as well."""
    return isinstance(error, ApiError) and (error.status == 410 or error.reason in {"Expired", "Gone"})


resolve_structs(__name__)
