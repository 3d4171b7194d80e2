"""The objects of a stub of an API server: versions, pages of lists, and the history that watches read."""

from __future__ import annotations

import base64
import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, final
from urllib.parse import unquote

import msgspec

_MERGE_KEYS: Final = {
    "webhooks": "name",
    "conditions": "type",
    "containers": "name",
    "env": "name",
    "ports": "containerPort",
}
"""The lists that a strategic merge joins by a key of their items; any other list is replaced."""

# A document has any shape: tests write what Kubernetes has.
Document = dict[str, Any]


class StatusError(Exception):
    """What an API server answers in place of an object."""

    def __init__(
        self,
        status: int,
        reason: str,
        message: str,
        headers: Mapping[str, str] | None = None,
        **details: object,
    ) -> None:
        self.status = status
        self.headers = dict(headers or {})
        self.document: Document = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
            "reason": reason,
            "details": details,
            "code": status,
        }
        super().__init__(message)


class ObjectPath(NamedTuple):
    """Where an object is, or a collection of them."""

    group: str
    """`/api/v1` or `/apis/<group>/<version>`."""
    resource: str
    namespace: str
    name: str
    subresource: str

    @classmethod
    def of(cls, path: str) -> ObjectPath:
        """Return the parts of a path.

        Raises:
            StatusError: 404, if it is none of objects.
        """
        parts = [unquote(step) for step in path.strip("/").split("/")]
        size = 2 if parts[0] == "api" else 3
        group, rest = "/" + "/".join(parts[:size]), parts[size:]
        if parts[0] not in {"api", "apis"} or not rest:
            raise StatusError(404, "NotFound", "the server could not find the requested resource")
        namespace = ""
        if rest[0] == "namespaces" and len(rest) > 2 and rest[2] != "status":
            namespace, rest = rest[1], rest[2:]
        resource, name, subresource = (*rest, "", "")[:3]
        return cls(group, resource, namespace, name, subresource)

    @property
    def collection(self) -> tuple[str, str]:
        """The collection of all namespaces."""
        return self.group, self.resource

    @property
    def key(self) -> tuple[str, str]:
        """The object within its collection."""
        return self.namespace, self.name


@final
@dataclass(frozen=True, slots=True)
class _Stored:
    """A version of an object. The document is never changed: a change makes another one."""

    document: Document
    body: bytes


@final
@dataclass(frozen=True, slots=True)
class _Change:
    """An entry of the history; one without a collection is a line for all watches."""

    version: int
    collection: tuple[str, str] | None
    namespace: str
    before: _Stored | None
    after: _Stored | None
    line: bytes = b""
    is_bookmark: bool = False


Matches = Callable[[Document], bool]


@final
class ObjectStore:
    """Objects of any kind in memory. `changed` is held by each method, and notified of each change."""

    def __init__(self) -> None:
        self.changed = threading.Condition(threading.RLock())
        self.watch_epoch = 0
        self._version = 1
        self._objects: dict[tuple[str, str], dict[tuple[str, str], _Stored]] = {}
        self._history: list[_Change] = []
        self._oldest = 0
        self._uids = 0

    @property
    def version(self) -> int:
        """The version of the last change."""
        return self._version

    def get(self, path: ObjectPath) -> Document:
        """Return an object, which the caller may change without changing the store.

        Raises:
            StatusError: 404.
        """
        with self.changed:
            document: Document = msgspec.json.decode(self.body(path))
            return document

    def body(self, path: ObjectPath) -> bytes:
        """Return the document of an object as it is sent.

        Raises:
            StatusError: 404.
        """
        stored = self._objects.get(path.collection, {}).get(path.key)
        if stored is None:
            text = f'{path.resource} "{path.name}" not found'
            raise StatusError(404, "NotFound", text, name=path.name, kind=path.resource)
        return stored.body

    def objects(self, group: str, resource: str) -> list[Document]:
        """Return the objects of a collection, in order of namespace and name."""
        with self.changed:
            stored = self._objects.get((group, resource), {})
            return [msgspec.json.decode(stored[key].body) for key in sorted(stored)]

    def create(self, path: ObjectPath, document: Document) -> bytes:
        """Add an object, and return its document.

        Raises:
            StatusError: 409 if there is one of its name; 422 if it has no name.
        """
        with self.changed:
            metadata = document.setdefault("metadata", {})
            self._uids += 1
            if not metadata.get("name") and metadata.get("generateName"):
                metadata["name"] = f"{metadata['generateName']}{self._uids:05}"
            if not metadata.get("name"):
                raise StatusError(
                    422, "Invalid", "metadata.name: Required value: name or generateName is required"
                )
            metadata.setdefault("uid", f"uid-{self._uids:06}")
            metadata.setdefault("creationTimestamp", "2026-01-01T00:00:00Z")
            if path.namespace:
                metadata["namespace"] = path.namespace
            path = path._replace(name=metadata["name"])
            if path.key in self._objects.setdefault(path.collection, {}):
                raise StatusError(409, "AlreadyExists", f'{path.resource} "{path.name}" already exists')
            return self._write(path, document)

    def replace(self, path: ObjectPath, document: Document) -> bytes:
        """Replace an object, and return its document; one that is equal stays as it is.

        Raises:
            StatusError: 404; 409 if the document has another version or uid.
        """
        with self.changed:
            current = self.get(path)
            metadata, was = document.setdefault("metadata", {}), current["metadata"]
            if metadata.get("uid", was["uid"]) != was["uid"]:
                raise StatusError(409, "Conflict", _precondition_text(metadata["uid"], was["uid"]))
            if metadata.get("resourceVersion", was["resourceVersion"]) != was["resourceVersion"]:
                text = f'Operation cannot be fulfilled on {path.resource} "{path.name}"'
                raise StatusError(409, "Conflict", f"{text}: the object has been modified")
            for key in ("uid", "resourceVersion", "creationTimestamp", "name", "namespace"):
                if key in was:
                    metadata[key] = was[key]
            if document == current:
                return self.body(path)
            return self._write(path, document)

    def remove(self, path: ObjectPath) -> bytes:
        """Remove an object, and return its last document.

        Raises:
            StatusError: 404.
        """
        with self.changed:
            self.body(path)
            before = self._objects[path.collection].pop(path.key)
            self._version += 1
            self._note(_Change(self._version, path.collection, path.namespace, before, None))
            return before.body

    def check_uid(self, path: ObjectPath, uid: str | None) -> None:
        """Check a precondition.

        Raises:
            StatusError: 404; 409 if the object has another uid.
        """
        was = self.get(path)["metadata"]["uid"]
        if uid is not None and uid != was:
            raise StatusError(409, "Conflict", _precondition_text(uid, was))

    def bookmark(self) -> None:
        """Let every watch know of the last version."""
        with self.changed:
            # Of its object nothing but the version is there, and what Go writes for a field without a value.
            metadata = {"resourceVersion": str(self._version), "creationTimestamp": None}
            self._send("BOOKMARK", {"kind": "Any", "metadata": metadata, "spec": {"containers": None}})

    def send_error(self, status: Document) -> None:
        """Send an error to every watch."""
        with self.changed:
            self._send("ERROR", status)

    def forget(self) -> None:
        """Forget the history: watches and lists cannot go on from a version before this moment."""
        with self.changed:
            self._version += 1
            self._oldest = self._version

    def end_watches(self) -> None:
        """End all watches as a server does that has run them long enough."""
        with self.changed:
            self.watch_epoch += 1
            self.changed.notify_all()

    def page(self, path: ObjectPath, matches: Matches, limit: int, token: str) -> bytes:
        """Return a page of a list.

        Raises:
            StatusError: 410 if the version that the token is of was forgotten.
        """
        with self.changed:
            version, after = self._version, ("", "")
            if token:
                version, after = msgspec.json.decode(
                    base64.b64decode(token), type=tuple[int, tuple[str, str]]
                )
                if version < self._oldest:
                    raise StatusError(410, "Expired", "The provided continue parameter is too old")
            # From the state of now: what has changed since the first page comes again by the watch.
            stored = self._objects.get(path.collection, {})
            keys = [
                key
                for key in sorted(stored)
                if key > after and path.namespace in {"", key[0]} and matches(stored[key].document)
            ]
            shown = keys[:limit] if limit else keys
            metadata: Document = {"resourceVersion": str(version)}
            if len(shown) < len(keys):
                metadata["continue"] = base64.b64encode(msgspec.json.encode((version, shown[-1]))).decode()
            items = [msgspec.Raw(stored[key].body) for key in shown]
            document = {"kind": "List", "apiVersion": "v1", "metadata": metadata, "items": items}
            return msgspec.json.encode(document)

    def changes(
        self,
        path: ObjectPath,
        matches: Matches,
        version: str,
        *,
        bookmarks: bool,
        seconds: float,
        stopped: Callable[[], bool],
    ) -> Iterator[list[bytes]]:
        """Yield the lines of a watch, all that are there at a time, until it ends.

        Raises:
            StatusError: 410 if the version was forgotten.
        """
        with self.changed:
            if version in {"", "0"}:
                objects = self._objects.get(path.collection, {}).items()
                first = [
                    _line("ADDED", each.body)
                    for key, each in objects
                    if path.namespace in {"", key[0]} and matches(each.document)
                ]
                position = len(self._history)
            else:
                if int(version) < self._oldest:
                    raise StatusError(410, "Expired", f"too old resource version: {version} ({self._oldest})")
                first = []
                position = bisect_right(self._history, int(version), key=lambda change: change.version)
            epoch = self.watch_epoch

        def seen(change: _Change) -> bytes | None:
            return None if change.is_bookmark and not bookmarks else _seen(change, path, matches)

        def has_ended() -> bool:
            return stopped() or self.watch_epoch != epoch

        return self._lines(seen, first, position, has_ended, seconds)

    def _lines(
        self,
        seen: Callable[[_Change], bytes | None],
        lines: list[bytes],
        position: int,
        has_ended: Callable[[], bool],
        seconds: float,
    ) -> Iterator[list[bytes]]:
        """Yield lines for some seconds, or until the watch is to end."""
        ends_at = time.monotonic() + seconds
        while True:
            if lines:
                yield lines
            with self.changed:
                while len(self._history) <= position and not has_ended():
                    if not self.changed.wait(ends_at - time.monotonic()):
                        return
                if has_ended():
                    return
                new = self._history[position:]
                position = len(self._history)
            lines = [line for change in new if (line := seen(change))]

    def _write(self, path: ObjectPath, document: Document) -> bytes:
        self._version += 1
        document["metadata"]["resourceVersion"] = str(self._version)
        stored = _Stored(document, msgspec.json.encode(document))
        objects = self._objects.setdefault(path.collection, {})
        before = objects.get(path.key)
        objects[path.key] = stored
        self._note(_Change(self._version, path.collection, path.namespace, before, stored))
        return stored.body

    def _send(self, kind: str, document: Document) -> None:
        line = _line(kind, msgspec.json.encode(document))
        self._note(_Change(self._version, None, "", None, None, line, kind == "BOOKMARK"))

    def _note(self, change: _Change) -> None:
        self._history.append(change)
        self.changed.notify_all()


def merged(current: Any, patch: Any, *, by_keys: bool, name: str = "") -> Any:
    """Return a value with a patch: as RFC 7396 says, or by the keys of lists as Kubernetes does."""
    if isinstance(patch, dict):
        result = dict(current) if isinstance(current, dict) else {}
        for key, value in patch.items():
            if value is None:
                result.pop(key, None)
            else:
                result[key] = merged(result.get(key), value, by_keys=by_keys, name=key)
        return result
    merge_key = _MERGE_KEYS.get(name)
    if not by_keys or merge_key is None or not isinstance(patch, list) or not isinstance(current, list):
        return patch
    items = {item[merge_key]: item for item in current}
    for item in patch:
        items[item[merge_key]] = merged(items.get(item[merge_key]), item, by_keys=True)
    return list(items.values())


def _seen(change: _Change, path: ObjectPath, matches: Matches) -> bytes | None:
    """Return what a watch sees: an object comes when it begins to match, and leaves when it ends to."""
    if change.collection is None:
        return change.line
    if change.collection != path.collection or path.namespace not in {"", change.namespace}:
        return None
    before, after = change.before, change.after
    did = before is not None and matches(before.document)
    if after is not None and matches(after.document):
        return _line("MODIFIED" if did else "ADDED", after.body)
    if before is None or not did:
        return None
    # The object as it was last, with the version of the change.
    metadata = {**before.document["metadata"], "resourceVersion": str(change.version)}
    return _line("DELETED", msgspec.json.encode({**before.document, "metadata": metadata}))


def _line(kind: str, body: bytes) -> bytes:
    return b'{"type":"%b","object":%b}\n' % (kind.encode(), body)


def _precondition_text(uid: str, was: str) -> str:
    return f"Precondition failed: UID in precondition: {uid}, UID in object meta: {was}"
