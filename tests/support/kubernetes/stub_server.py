"""A stub of an API server: real HTTP on a free port, objects in memory, and faults on request."""

from __future__ import annotations

import re
import ssl
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Self, final

import msgspec
from support.kubernetes.stub_http import HttpRequest, HttpResponse, LostConnectionError, SmallHttpServer
from support.kubernetes.stub_pods import PodRules, matching
from support.kubernetes.stub_store import Document, ObjectPath, ObjectStore, StatusError, merged

_STRATEGIC: Final = "application/strategic-merge-patch+json"
_PATCHES: Final = {_STRATEGIC: True, "application/merge-patch+json": False}
OWN_USER: Final = "system:serviceaccount:licorne:licorne"
"""The user of all requests."""
_WITH_STATUS: Final = {"pods", "nodes"}


@final
@dataclass(slots=True)
class _Fault:
    """What happens to requests instead of, before or after the work."""

    method: str
    path: re.Pattern[str]
    times: int | None
    error: StatusError | None = None
    is_dropped: bool = False
    loses_answer: bool = False
    delay_seconds: float = 0.0
    before: Callable[[], object] | None = None


@final
class StubApiServer:
    """A server that keeps any object of Kubernetes, and has the rules of pods; `with` starts and stops it.

    It lists in pages, watches with bookmarks, creates, replaces, patches and deletes, binds and evicts. It
    knows no schema, no namespaces that must exist, and no rights.

    Args:
        tls: With it the server speaks TLS.
        token: The bearer token that requests must have, `None` for any.

    Attributes:
        requests: What it was asked, in order of arrival.
        token: As the argument; a test may change it.
        pods: The rules of pods, with the disruption budget.
    """

    def __init__(self, *, tls: ssl.SSLContext | None = None, token: str | None = None) -> None:
        self.requests: list[HttpRequest] = []
        self.token = token
        self.store = ObjectStore()
        self.pods = PodRules(self.store)
        self._tls = tls
        self._faults: list[_Fault] = []
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._server: SmallHttpServer | None = None

    def __enter__(self) -> Self:
        self._server = SmallHttpServer(self.respond, self._tls)
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self.store.end_watches()
        self._running.stop()

    @property
    def _running(self) -> SmallHttpServer:
        assert self._server is not None, "the stub is used with `with`"
        return self._server

    @property
    def address(self) -> str:
        """The address for credentials."""
        return f"{'https' if self._tls else 'http'}://localhost:{self._running.port}"

    # What a test does with the objects, without HTTP.

    def add(self, path: str, document: Mapping[str, object]) -> Document:
        """Add an object to a collection as it is, a pod also with its status and node; return it."""
        return _decoded(self.store.create(ObjectPath.of(path), _copy(document)))

    def get(self, path: str) -> Document:
        """Return an object."""
        return self.store.get(ObjectPath.of(path))

    def objects(self, path: str) -> list[Document]:
        """Return the objects of a collection."""
        parts = ObjectPath.of(path)
        return [
            document
            for document in self.store.objects(*parts.collection)
            if parts.namespace in {"", document["metadata"].get("namespace", "")}
        ]

    def change(self, path: str, patch: Mapping[str, object]) -> Document:
        """Change an object by a strategic merge patch, any part of it; return it."""
        with self.store.changed:
            parts = ObjectPath.of(path)
            document = merged(self.store.get(parts), _copy(patch), by_keys=True)
            return _decoded(self.store.replace(parts, document))

    def remove(self, path: str) -> None:
        """Remove an object at once, whatever it is."""
        self.store.remove(ObjectPath.of(path))

    def finish_deletions(self) -> int:
        """Remove the pods that are being deleted, as kubelets do; return how many."""
        return self.pods.finish_deletions()

    def bookmark(self) -> None:
        """Send a bookmark to all watches."""
        self.store.bookmark()

    def asked(self, method: str, path_regex: str) -> list[HttpRequest]:
        """Return the requests that were made with a method and a path."""
        pattern = re.compile(path_regex)
        return [
            each for each in list(self.requests) if each.method == method and pattern.fullmatch(each.path)
        ]

    # Faults. The path is matched as a whole, that of a watch with `?watch` behind it. `times` is how often,
    # `None` until `heal`.

    def fail(
        self,
        method: str,
        path_regex: str,
        *,
        status: int = 500,
        reason: str = "InternalError",
        message: str = "a fault of the test",
        headers: Mapping[str, str] | None = None,
        times: int | None = 1,
    ) -> None:
        """Refuse requests with a status, without doing the work."""
        error = StatusError(status, reason, message, headers)
        self._add_fault(_Fault(method, re.compile(path_regex), times, error=error))

    def drop(self, method: str, path_regex: str, *, times: int | None = 1) -> None:
        """Close the connection of requests without doing the work."""
        self._add_fault(_Fault(method, re.compile(path_regex), times, is_dropped=True))

    def lose_answer(self, method: str, path_regex: str, *, times: int | None = 1) -> None:
        """Do the work of requests, and close the connection without an answer."""
        self._add_fault(_Fault(method, re.compile(path_regex), times, loses_answer=True))

    def delay(self, method: str, path_regex: str, seconds: float, *, times: int | None = 1) -> None:
        """Do the work of requests later."""
        self._add_fault(_Fault(method, re.compile(path_regex), times, delay_seconds=seconds))

    def before(
        self, method: str, path_regex: str, call: Callable[[], object], *, times: int | None = None
    ) -> None:
        """Call a function before requests are carried out."""
        self._add_fault(_Fault(method, re.compile(path_regex), times, before=call))

    def heal(self) -> None:
        """End all faults."""
        with self._lock:
            self._faults.clear()

    def cut_watches(self) -> int:
        """Cut the connections of all watches; return how many."""
        return self._running.cut(only_streams=True)

    @property
    def streams(self) -> int:
        """How many watches run."""
        return self._running.streams

    def send_error(self, status: int, reason: str) -> None:
        """Send an error as an event of all watches."""
        self.store.send_error(StatusError(status, reason, "an error of the test").document)

    @property
    def connections(self) -> int:
        """How many connections there have been."""
        return self._running.accepted

    def close_connections(self) -> int:
        """Close all connections, as a server does with those that are idle; return how many."""
        return self._running.cut()

    def end_watches(self) -> None:
        """End all watches in order, as a server does after `timeoutSeconds`."""
        self.store.end_watches()

    def forget_history(self) -> None:
        """Answer 410 to watches and lists that go on from a version before now; running watches go on."""
        self.store.forget()

    def _add_fault(self, fault: _Fault) -> None:
        with self._lock:
            self._faults.append(fault)

    def _fault_for(self, request: HttpRequest) -> _Fault | None:
        path = f"{request.path}?watch" if "watch" in request.query else request.path
        with self._lock:
            for fault in self._faults:
                if fault.method == request.method and fault.path.fullmatch(path):
                    if fault.times is not None:
                        fault.times -= 1
                        if fault.times == 0:
                            self._faults.remove(fault)
                    return fault
        return None

    # The answers.

    def respond(self, request: HttpRequest) -> HttpResponse:
        """Return the answer to a request, or raise `LostConnectionError`; tests without HTTP call it."""
        self.requests.append(request)
        fault = self._fault_for(request)
        if fault is not None:
            self._stopping.wait(fault.delay_seconds)
            if fault.before is not None:
                fault.before()
            if fault.is_dropped:
                raise LostConnectionError
        response = self._answered(request, fault.error if fault is not None else None)
        if fault is not None and fault.loses_answer:
            raise LostConnectionError
        return response

    def _answered(self, request: HttpRequest, refusal: StatusError | None) -> HttpResponse:
        if refusal is None and self.token not in {None, _token_of(request)}:
            refusal = StatusError(401, "Unauthorized", "Unauthorized")
        if refusal is not None:
            return _refused(refusal)
        try:
            return self._done(request)
        except StatusError as error:
            return _refused(error)

    def _done(self, request: HttpRequest) -> HttpResponse:
        path = ObjectPath.of(request.path)
        if request.method == "GET":
            return self._read(request, path)
        document = _decoded(request.body) if request.body else {}
        with self.store.changed:
            if request.method == "POST":
                body = self._posted(path, document)
                if request.query.get("dryRun"):
                    self.store.remove(path._replace(name=_decoded(body)["metadata"]["name"]))
                return HttpResponse(201, body)
            if request.method == "DELETE":
                return HttpResponse(200, self._deleted(path, document))
            if request.method == "PUT":
                return HttpResponse(200, self._replaced(path, document))
            by_keys = _PATCHES.get(request.headers.get("content-type", ""))
            if request.method != "PATCH" or by_keys is None:
                raise StatusError(415, "UnsupportedMediaType", "the body of the request has an unknown type")
            current = self.store.get(path)
            uid = document.get("metadata", {}).get("uid", current["metadata"]["uid"])
            if uid != current["metadata"]["uid"]:
                text = f'"{path.name}" is invalid: metadata.uid: Invalid value: "{uid}": field is immutable'
                raise StatusError(422, "Invalid", text)
            whole = merged(current, document, by_keys=by_keys)
            return HttpResponse(200, self._replaced(path, whole))

    def _read(self, request: HttpRequest, path: ObjectPath) -> HttpResponse:
        query = request.query
        if path.name:
            return HttpResponse(200, self.store.body(path))
        matches = matching(query.get("labelSelector", ""), query.get("fieldSelector", ""))
        if query.get("watch") not in {"true", "1"}:
            limit = int(query.get("limit", "0"))
            return HttpResponse(200, self.store.page(path, matches, limit, query.get("continue", "")))
        seconds = float(query.get("timeoutSeconds", "3600"))
        version = query.get("resourceVersion", "")
        changes = self.store.changes(
            path,
            matches,
            version,
            bookmarks=query.get("allowWatchBookmarks") == "true",
            seconds=seconds,
            stopped=self._stopping.is_set,
        )
        return HttpResponse(200, chunks=changes)

    def _posted(self, path: ObjectPath, document: Document) -> bytes:
        if path.resource == "selfsubjectreviews":
            return msgspec.json.encode({"status": {"userInfo": {"username": OWN_USER, "groups": ["staff"]}}})
        subresources: dict[tuple[str, str], Callable[[ObjectPath, Document], bytes]] = {
            ("pods", "binding"): self.pods.bind,
            ("pods", "eviction"): self.pods.evict,
        }
        if path.subresource:
            call = subresources.get((path.resource, path.subresource))
            if call is None:
                raise StatusError(404, "NotFound", "the server could not find the requested resource")
            return call(path, document)
        if path.resource == "pods":
            self.pods.prepare(path, document)
        return self.store.create(path, document)

    def _deleted(self, path: ObjectPath, options: Document) -> bytes:
        if path.resource == "pods":
            return self.pods.delete(path, options)
        self.store.check_uid(path, options.get("preconditions", {}).get("uid"))
        return self.store.remove(path)

    def _replaced(self, path: ObjectPath, document: Document) -> bytes:
        """Replace an object: of `status` the status alone, else all but the status."""
        current = self.store.get(path)
        if path.subresource == "status":
            current["metadata"] |= {
                key: document["metadata"][key]
                for key in ("uid", "resourceVersion")
                if key in document.get("metadata", {})
            }
            document = {**current, "status": document.get("status", {})}
        elif path.resource in _WITH_STATUS and "status" in current:
            document["status"] = current["status"]
        return self.store.replace(path, document)


def _refused(error: StatusError) -> HttpResponse:
    return HttpResponse(error.status, msgspec.json.encode(error.document), error.headers)


def _token_of(request: HttpRequest) -> str:
    return request.headers.get("authorization", "").removeprefix("Bearer ")


def _decoded(body: bytes) -> Document:
    document: Document = msgspec.json.decode(body)
    return document


def _copy(document: Mapping[str, object]) -> Document:
    """Return a copy that nothing else changes."""
    return _decoded(msgspec.json.encode(document))
