"""Queues with their settings in a configuration, and the sizes of configurations and messages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

import yaml

from .windows import RecordedWindow, read_window

Size: TypeAlias = dict[str, int]
"""Quantities by the type of resource."""
_PREFIXES: Final = "kMGTPE"
_NS: Final = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
_DURATION: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ns|us|ms|s|m|h|d)")
_NOT_INHERITED: Final = ("priority.policy", "priority.offset")
"""Properties that are not inherited, of those that are read here; `preemption.policy` has a separate rule."""


class UnreadableError(Exception):
    """A recording that cannot be read, or has no outcomes; the text has the place and the reason."""


def total(sizes: Iterable[Mapping[str, int]]) -> Size:
    """Return the sum of sizes."""
    found: Size = {}
    for size in sizes:
        for name, quantity in size.items():
            found[name] = found.get(name, 0) + quantity
    return found


def positive(size: Mapping[str, int]) -> Size:
    """Return the quantities above zero."""
    return {name: quantity for name, quantity in size.items() if quantity > 0}


def size_of(message: Any) -> Size:
    """Return the size in a message of `si.v1`."""
    entries = (message or {}).get("resources", {})
    return {name: int((entry or {}).get("value", 0)) for name, entry in entries.items()}


def text_of(size: Mapping[str, int]) -> str:
    """Return a size in words."""
    return ", ".join(f"{name} {quantity}" for name, quantity in sorted(size.items())) or "nothing"


def _quota(texts: Mapping[str, Any] | str | None) -> Size | None:
    """Return a quota of a configuration, `None` if no quantity is above zero."""
    entries = {"all types": texts} if isinstance(texts, str) else texts or {}  # A percentage is refused.
    size = {name: _quantity(name, str(text).strip()) for name, text in entries.items()}
    return size if positive(size) else None


def _quantity(name: str, text: str) -> int:
    found = re.fullmatch(r"([0-9]{1,40})(?:(m)|([kMGTPEK])(i)?)?", text)
    if found is None:
        raise UnreadableError(f"expected a quantity of {name}, got {text!r}")
    number, milli, prefix, binary = found.groups()
    power = _PREFIXES.lower().index(prefix.lower()) + 1 if prefix else 0
    return int(number) * int((1024 if binary else 1000) ** power) * (1 if milli or name != "vcore" else 1000)


def _tagged(text: str | None) -> Size | None:
    """Return the quota in a tag of an application, `None` without a usable one."""
    try:
        size = size_of(json.loads(text or ""))
    except (ValueError, AttributeError, TypeError, RecursionError):
        return None
    return size if size and all(quantity > 0 for quantity in size.values()) else None


def duration_ns(text: str, default: int = 0) -> int:
    """Return a duration in nanoseconds, the default if the text has none."""
    parts = _DURATION.findall(text)
    units = _NS | {"d": 86400 * 10**9}
    return int(sum(float(number) * units[unit] for number, unit in parts)) if parts else default


class RecordedLimit(NamedTuple):
    """The limit of each of some users and groups in a queue and below."""

    users: Sequence[str]
    groups: Sequence[str]
    most: Size


@dataclass(eq=False)
class RecordedQueue:
    """A queue."""

    path: str
    parent: RecordedQueue | None
    guaranteed: Size = field(default_factory=dict)
    maximum: Size | None = None
    lends_part: bool = False
    properties: Mapping[str, str] = field(default_factory=dict)
    limits: Sequence[RecordedLimit] = ()
    template: Mapping[str, Any] | None = None
    is_managed: bool = False

    @property
    def up(self) -> Iterator[RecordedQueue]:
        """Walk this queue and those above it, the root last."""
        level: RecordedQueue | None = self
        while level is not None:
            yield level
            level = level.parent

    def says(self, name: str) -> str:
        """Return a property, the empty text without it."""
        return str(self.properties.get(name, "")).strip().lower()

    def ns(self, name: str, default: int = 0) -> int:
        """Return a duration in nanoseconds: a property, or its part after a slash."""
        return duration_ns(self.says(name).partition("/")[2] or self.says(name), default)

    def counts_as(self, priority: int) -> int:
        """Return the effective priority, among the siblings of this queue, of a priority inside it."""
        text = self.says("priority.offset")
        offset = int(text) if re.fullmatch(r"[-+]?[0-9]{1,10}", text) else 0
        return offset + (0 if self.says("priority.policy") == "fence" else priority)

    def limits_of(self, user: str, group: str) -> Iterator[tuple[str, str, Size]]:
        """Yield the limits of a user and a group here: the kind, the holder, and the amount."""
        named = [limit for limit in self.limits if user in limit.users]
        for limit in named or [limit for limit in self.limits if "*" in limit.users]:
            yield "user", user, limit.most
        for limit in self.limits:
            if group and group in limit.groups:
                yield "group", group, limit.most

    def take(self, document: Mapping[str, Any], *, managed: bool) -> None:
        """Read the settings of a configuration, or of a template."""
        self.is_managed = managed
        resources = document.get("resources") or {}
        self.guaranteed = _quota(resources.get("guaranteed")) or {}
        self.maximum = _quota(resources.get("max"))
        self.lends_part = bool(resources.get("lend"))
        above = dict(self.parent.properties) if self.parent is not None and managed else {}
        for name in _NOT_INHERITED:
            above.pop(name, None)
        if above.get("preemption.policy", "").lower() != "disabled":
            above.pop("preemption.policy", None)
        own = {name: str(text) for name, text in (document.get("properties") or {}).items() if str(text)}
        self.properties = above | own
        self.limits = [
            RecordedLimit(
                each.get("users") or (), each.get("groups") or (), _quota(each.get("maxresources")) or {}
            )
            for each in document.get("limits") or ()
        ]
        self.template = document.get("childtemplate") or (self.parent.template if self.parent else None)

    def take_tags(self, tags: Mapping[str, str]) -> None:
        """Read the quotas of a namespace, if the queue is not in the configuration."""
        maximum = _tagged(tags.get("namespace.resourcequota"))
        guaranteed = _tagged(tags.get("namespace.resourceguaranteed"))
        if not self.is_managed and (maximum is not None or guaranteed is not None):
            self.maximum, self.guaranteed = maximum, guaranteed or {}


class RecordedSettings:
    """The queues of a partition, by path, and its switches."""

    def __init__(self) -> None:
        self.queues: dict[str, RecordedQueue] = {}
        self.windows: Sequence[RecordedWindow] = ()
        self.preempts = self.preempts_for_quota = self.orders_by_age = False
        """Whether asks may preempt, maxima are enforced, and victims are ordered by age."""

    def take(self, text: str, name: str) -> None:
        """Read a configuration; queues that it lacks stay unchanged, except for their limits.

        Raises:
            UnreadableError: The partition is missing, or a quantity cannot be read.
        """
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        partitions = yaml.load(text, Loader=loader)["partitions"]  # noqa: S506 - both loaders are safe
        names = [str(partition.get("name") or "default").lower() for partition in partitions]
        if name.lower() not in names:
            raise UnreadableError(f"partitions that the configuration lacks: {name}")
        document = partitions[names.index(name.lower())]
        self.windows = [
            read_window(
                each, duration_ns(str(each.get("drain", "24h"))), duration_ns(str(each.get("every", "")))
            )
            for each in document.get("windows") or ()
        ]
        preemption = document.get("preemption") or {}
        self.preempts = bool(preemption.get("enabled", True))
        self.preempts_for_quota = bool(preemption.get("quotapreemptionenabled"))
        self.orders_by_age = preemption.get("victims") != "least-work" and preemption.get("jobs") != "whole"
        queues = document.get("queues") or []
        is_rooted = len(queues) == 1 and str(queues[0]["name"]).lower() == "root"
        for queue in self.queues.values():
            queue.limits = ()
        root = queues[0] if is_rooted else {"name": "root", "queues": queues}
        self._take({**root, "limits": root.get("limits") or document.get("limits")}, None)

    def _take(self, document: Mapping[str, Any], parent: RecordedQueue | None) -> None:
        name = str(document["name"]).lower()
        path = name if parent is None else f"{parent.path}.{name}"
        queue = self.queues.setdefault(path, RecordedQueue(path, parent))
        queue.take(document, managed=True)
        for below in document.get("queues") or ():
            self._take(below, queue)

    def queue(self, path: str) -> RecordedQueue:
        """Return the queue of a path; a queue made by placement follows the template above it."""
        if path not in self.queues:
            above = path.rpartition(".")[0]
            parent = self.queue(above) if above else None
            made = self.queues[path] = RecordedQueue(path, parent)
            made.take((parent.template if parent else None) or {}, managed=False)
        return self.queues[path]
