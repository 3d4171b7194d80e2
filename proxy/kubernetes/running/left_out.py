"""The unusable objects of the cluster: only these are left out, and people are informed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final, final

from ....actors.services.log import Log
from ..client.list_watch import UnreadableObject
from ..mapping.asks import why_unusable
from ..mapping.settings import KubernetesSettings
from .reporting import OBJECT_KINDS, Reporter

_REASON: Final = "Unreadable"


@final
class LeftOut:
    """Keeps the objects that count as missing; used by one thread.

    Args:
        settings: The settings in force.
        reporter: Writes an event on each such object.
        log: The log for the same messages.
    """

    def __init__(self, settings: KubernetesSettings, reporter: Reporter, log: Log) -> None:
        self._settings = settings
        self._reporter = reporter
        self._log = log
        self._reasons: dict[tuple[type, str, str], str] = {}
        self.counts: Mapping[str, int] = {}
        """The number of objects of each kind of Kubernetes; replaced whole, so that any thread may read
        it."""

    def has(self, item: Any) -> bool:
        """Return whether an object is left out in its present version."""
        reason = item.reason if isinstance(item, UnreadableObject) else why_unusable(item, self._settings)
        if reason:
            self.add(item, reason)
        else:
            self.forget(item)
        return bool(reason)

    def add(self, item: Any, reason: str) -> None:
        """Leave an object out; an event and the log inform people once for each reason."""
        key = _key(item)
        if self._reasons.get(key) == reason:
            return
        self._reasons[key] = reason
        self._count()
        bare = bare_object(item)
        self._log.error("{} {}/{} is left out: {}", OBJECT_KINDS[key[0]].name, *key[1:], reason)
        if bare.metadata.name:
            note = f"it is left out, since it cannot be read: {reason}"
            self._reporter.event(bare, _REASON, "Reading", note, is_warning=True)

    def forget(self, item: Any) -> None:
        """Remove an object that is gone, or can be used again."""
        if self._reasons and self._reasons.pop(_key(item), None) is not None:
            self._count()

    def keep_only(self, kind: type, items: Iterable[Any]) -> None:
        """Remove the objects of a kind that no longer exist."""
        there = {_key(item) for item in items} if self._reasons else set()
        for key in [key for key in self._reasons if key[0] is kind and key not in there]:
            del self._reasons[key]
        self._count()

    def _count(self) -> None:
        self.counts = dict(Counter(OBJECT_KINDS[kind].name for kind, _, _ in self._reasons))


def bare_object(item: Any) -> Any:
    """Return an object; for an unreadable one, an object of its kind with only the metadata."""
    return item.kind(metadata=item.metadata) if isinstance(item, UnreadableObject) else item


def left_out_line(counts: Mapping[str, int]) -> str:
    """Return a line with the number of objects that are left out, without names; empty for none."""
    if not counts:
        return ""
    figures = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
    return f"left out, since they cannot be read: {figures}; their events and the log give the reasons"


def _key(item: Any) -> tuple[type, str, str]:
    kind = item.kind if isinstance(item, UnreadableObject) else type(item)
    return kind, item.metadata.namespace, item.metadata.name
