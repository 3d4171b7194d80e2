"""Lines of a recording without the names in them: every text is either known to be harmless or replaced."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final, final

from ...model.requests.applications import (
    APPLICATION_CREATION_TAG,
    APPLICATIONS_TAG,
    CREATE_FORCE_TAG,
    GUARANTEED_TAG,
    QUOTA_TAG,
)
from ...model.values.allocation import CREATION_TIME_TAG, FOREIGN_TAG, REQUIRED_NODE_TAG
from ..si.constants import NODE_PARTITION
from .anonymous_configuration import anonymous_configuration, tags_of_rules
from .pseudonyms import Pseudonyms

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ...model.values.documents import Document, Json

__all__ = ["AnonymousLines"]

_KEPT_TAGS: Final = frozenset(
    {APPLICATION_CREATION_TAG, CREATION_TIME_TAG, FOREIGN_TAG}
    | {APPLICATIONS_TAG, CREATE_FORCE_TAG, GUARANTEED_TAG, QUOTA_TAG}
)
"""Tags that steer the scheduler and hold no name: times, flags, quantities."""
_REFUSED: Final = "refused"


@final
class AnonymousLines:
    """Replaces the names in lines. Any number of threads may use it at once."""

    def __init__(self, pseudonyms: Pseudonyms | None = None) -> None:
        self._pseudonyms = pseudonyms or Pseudonyms()
        self._queue_tags: set[str] = set()
        """Tags whose values are queues, in lower case."""
        self._lock = threading.Lock()
        names = self._pseudonyms
        self._by_key: Mapping[str, Callable[[str], str]] = {
            "nodeID": names.node,
            "applicationID": lambda text: names.hashed("app", text),
            "allocationKey": names.key,
            "UUID": names.key,
            "taskGroupName": lambda text: names.hashed("group", text),
            "queueName": names.name,
            "user": names.name,
            "groups": names.name,
            "message": lambda _: "",
            "reason": lambda _: "",
            "failed": lambda _: "",
            "answers": lambda _: _REFUSED,
            "config": lambda text: anonymous_configuration(text, names),
        }

    def hidden(self, line: Document) -> Document:
        """Return a line without names."""
        with self._lock:
            return {key: self._value(key, value) for key, value in line.items()}

    def _value(self, key: str, value: Json) -> Json:
        if isinstance(value, list):
            return [self._value(key, each) for each in value]
        if isinstance(value, dict):
            return self._object(key, value)
        if not isinstance(value, str):
            return value
        if key == "config":
            self._queue_tags |= tags_of_rules(value)
        replace = self._by_key.get(key)
        return value if replace is None else replace(value)

    def _object(self, key: str, value: Document) -> Json:
        match key:
            case "attributes":
                return {name: self._attribute(name, str(text)) for name, text in value.items()}
            case "tags" | "allocationTags":
                return {name: self._tag(name, str(text)) for name, text in value.items()}
            case "groups":  # Those that were looked up, by user.
                return {self._pseudonyms.name(user): self._value(key, found) for user, found in value.items()}
            case "refused":  # The nodes that a predicate refused, with the reasons.
                return {self._pseudonyms.node(node_id): _REFUSED for node_id in value}
            case "resources":  # Names of resources, whatever they are, and quantities.
                return value
            case "quarantine":
                name = str(value["name"])
                is_node = value["kind"] == "node"
                hidden = self._pseudonyms.node(name) if is_node else self._pseudonyms.hashed("app", name)
                return {"kind": value["kind"], "name": hidden, "reason": ""}
            case _:
                return {name: self._value(name, each) for name, each in value.items()}

    def _attribute(self, name: str, text: str) -> str:
        return text if name == NODE_PARTITION else self._pseudonyms.hashed("attribute", text)

    def _tag(self, name: str, text: str) -> str:
        if name in _KEPT_TAGS or name.lower() in _KEPT_TAGS:
            return text
        if name == REQUIRED_NODE_TAG:
            return self._pseudonyms.node(text)
        if name.lower() in self._queue_tags:
            return self._pseudonyms.name(text)
        return self._pseudonyms.hashed("tag", text)
