"""Configurations for the second scheduler, each with a few features that it supports."""

from __future__ import annotations

import json
import random
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final, TypeAlias, final

from ....model.configuration.reader import inspect
from ..configurations import DYNAMIC_PARENT, LEVELS, USERS, random_configuration
from ..plans import one_of
from .windows import random_windows

Json: TypeAlias = "dict[str, Any]"

LARGE: Final = 2**53
"""How much more memory everything has in worlds near the bound of 64 bits."""
_GROUPS: Final = ("analysts", "builders", "cooks", "drivers")
_UNKNOWN: Final = frozenset({"maxapplications", "childtemplate", "placementrules", "preemption", "windows"})
"""Properties that are drawn again here, if at all."""
_KNOWN_PROPERTIES: Final = frozenset(
    {
        *("application.sort.policy", "application.sort.priority", "priority.offset", "priority.policy"),
        *("fair.count", "fair.half-life", "fair.weight"),
    }
)
_OF_PREEMPTION: Final = frozenset({"preemption.delay", "preemption.policy", "preemption.within"})
_ACCESS: Final = ("", "", "*", "ada,bob", "eve cooks", " analysts,drivers", "kim,tom builders", "lea,max,noa")
_FILTERS: Final[tuple[Json, ...]] = (
    {"users": ["ada", "kim", "tom"]},
    {"type": "deny", "users": ["bob", "eve"]},
    {"groups": ["builders", "drivers"]},
    {"type": "deny", "groups": ["cooks", "drivers"]},
    {"users": ["^[a-k]"]},
    {"type": "deny", "users": ["lea", "max"], "groups": ["^an"]},
    {"type": "deny"},
)
_TRIES: Final = 4


@final
class ReferenceConfigurations:
    """The configurations of one world: all have the same queues, and other settings.

    Args:
        rng: Decides the constant parts: the queues, the holders of limits, and the use of the past.
        features: The features of the world, by name.
    """

    def __init__(self, rng: random.Random, features: Collection[str]) -> None:
        self._features = features
        drawn = random_configuration(rng)
        self.leaves: tuple[str, ...] = drawn.leaves
        partition = json.loads(drawn.text)["partitions"][0]
        self._preempts = "preempts" in features
        properties = _KNOWN_PROPERTIES | (_OF_PREEMPTION if self._preempts else frozenset())
        self._base = _known(partition, properties, keeps_dynamic="rules" in features)
        self._base["preemption"] = {"enabled": self._preempts}
        if "quotas" in features:
            self._base["preemption"]["quotapreemptionenabled"] = True
            _enforce_maxima(self._base["queues"][0], rng)
            self.leaves = self.leaves[:2]  # Otherwise few exceed their maxima.
        if "overruns" in features:
            _end_overruns(self._base["queues"][0], rng)
        if self._preempts:
            _let_all_preempt(self._base["queues"][0], rng)
        if "promises" in features:
            self._base["queues"][0] = _backfilling(rng)
            self.leaves = ("root.a",)
        if "windows" in features:
            self._base["windows"] = random_windows(rng)
        self._holders = {
            id_of: (_holders(rng, USERS), _holders(rng, _GROUPS))
            for id_of, _ in _walk(self._base["queues"][0])
        }

        self._last: Json | None = None

    def draw(self, rng: random.Random) -> Json:
        """Return the document of a partition; the last one if no other valid one is found."""
        for _ in range(_TRIES):
            partition = self._drawn(rng)
            if not inspect(json.dumps({"partitions": [partition]}), "drawn").errors:
                self._last = partition
                return partition
        if self._last is None:
            self._holders = dict.fromkeys(self._holders, ([], []))
            self._last = self._scaled(self._base)
        return self._last

    def _drawn(self, rng: random.Random) -> Json:
        partition: Json = json.loads(json.dumps(self._base))
        for path, queue in _walk(partition["queues"][0]):
            if queue["name"] == DYNAMIC_PARENT:
                continue
            for feature, change in (
                ("users", self._limit_holders),
                ("counts", self._limit_applications),
                ("reloads", self._change_settings),
                ("rules", self._change_access),
                ("types", self._limit_types),
                ("pauses", self._let_back_off),
                ("quotas", self._limit_leaf),
            ):
                if feature in self._features:
                    change(path, queue, rng)
        if "weights" in self._features:
            weights = {
                name: one_of(rng, (0, 1, 2, 5)) for name in ("vcore", "memory", "gpu") if rng.random() < 0.7
            }
            order = one_of(rng, ("fair", "binpacking", "domainpacking"))
            partition["nodesortpolicy"] = {"type": order, "resourceweights": weights}
            partition |= {"topology": [*LEVELS]} if order == "domainpacking" else {}
        if "rules" in self._features:
            partition["placementrules"] = _rules(rng, self.leaves)
        return self._scaled(partition)

    def _scaled(self, partition: Json) -> Json:
        return _with_large_memory(partition) if "large" in self._features else partition

    def _limit_holders(self, path: str, queue: Json, rng: random.Random) -> None:
        """Limit the holders of this queue, each to another amount."""
        users, groups = self._holders[path]
        if any("weight" in limit for limit in queue.get("limits", ())):
            return
        limits: list[Json] = [_limit("users", names, rng) for names in users]
        limits += [_limit("groups", names, rng) for names in groups]
        queue.pop("limits", None)
        if limits:
            queue["limits"] = limits

    @staticmethod
    def _limit_applications(path: str, queue: Json, rng: random.Random) -> None:
        depth = path.count(".")
        if not queue.get("queues") and rng.random() < 0.6:
            queue["maxapplications"] = 1 + int(rng.random() * 3)
        elif depth == 0 and rng.random() < 0.3:
            for below, each in _walk(queue):
                each["maxapplications"] = max(1, 4 - below.count("."))

    def _change_settings(self, path: str, queue: Json, rng: random.Random) -> None:
        """Change the settings of a queue, except those for its past use."""
        properties = queue.setdefault("properties", {})
        if rng.random() < 0.4:
            properties["priority.offset"] = str(one_of(rng, (-3, 0, 2, 5)))
        if rng.random() < 0.3:
            properties["priority.policy"] = one_of(rng, ("default", "fence"))
        if rng.random() < 0.3:
            properties["application.sort.priority"] = one_of(rng, ("enabled", "disabled"))
        orders_users = properties.get("application.sort.policy") == "users" or "gangs" in self._features
        if not queue.get("queues") and not orders_users and rng.random() < 0.4:
            properties["application.sort.policy"] = one_of(rng, ("fair", "fifo"))
        resources = queue.get("resources", {})
        if path != "root" and rng.random() < 0.4:
            maximum = {
                "memory": f"{20 + int(rng.random() * 150)}",
                "vcore": f"{5 + int(rng.random() * 30)}00m",
            }
            resources["max"] = one_of(rng, (maximum, {"memory": maximum["memory"]}, {}))
            queue["resources"] = resources

    @staticmethod
    def _change_access(path: str, queue: Json, rng: random.Random) -> None:
        queue["submitacl"] = one_of(rng, _ACCESS)
        if rng.random() < 0.2:
            queue["adminacl"] = one_of(rng, _ACCESS)
        if path == "root" and rng.random() < 0.7:
            queue["submitacl"] = ""

    @staticmethod
    def _limit_types(path: str, queue: Json, rng: random.Random) -> None:
        if path != "root" and rng.random() < 0.3:
            queue.setdefault("resources", {}).setdefault("max", {})["gpu"] = str(int(rng.random() * 4))

    @staticmethod
    def _limit_leaf(_: str, queue: Json, rng: random.Random) -> None:
        if not queue.get("queues") and rng.random() < 0.7:
            most = {"memory": f"{30 + int(rng.random() * 150)}", "vcore": f"{3 + int(rng.random() * 15)}00m"}
            queue["resources"] = {"max": one_of(rng, (most, {"memory": most["memory"]}))}

    @staticmethod
    def _let_back_off(_: str, queue: Json, rng: random.Random) -> None:
        if not queue.get("queues") and rng.random() < 0.6:
            queue.setdefault("properties", {}).update(
                {
                    "application.unschedasks.backoff": one_of(rng, ("1", "2", "3")),
                    "application.unschedasks.backoff.delay": one_of(rng, ("2s", "8s")),
                }
            )


def _walk(queue: Json, above: str = "") -> Iterator[tuple[str, Json]]:
    path = f"{above}.{queue['name']}".lstrip(".")
    yield path, queue
    for child in queue.get("queues", ()):
        yield from _walk(child, path)


def _holders(rng: random.Random, names: Collection[str]) -> list[list[str]]:
    """Return the holders of limits of a queue: a few lists of names, and perhaps all others."""
    if rng.random() < 0.4:
        return []
    order = [*names]
    rng.shuffle(order)
    lists = [order[:1], order[1:3]][: 1 + int(rng.random() * 2)]
    return [*lists, ["*"]] if rng.random() < 0.6 else lists


def _limit(kind: str, names: Sequence[str], rng: random.Random) -> Json:
    limit: Json = {"limit": "", kind: [*names]}
    if rng.random() < 0.4:
        limit["maxapplications"] = 1 + int(rng.random() * 3)
    if rng.random() < 0.7 or len(limit) == 2:
        limit["maxresources"] = {"memory": f"{20 + int(rng.random() * 100)}"}
        if rng.random() < 0.5:
            limit["maxresources"]["vcore"] = f"{3 + int(rng.random() * 12)}00m"
    return limit


def _rules(rng: random.Random, leaves: Sequence[str]) -> list[Json]:
    parent: Json = {"name": "fixed", "value": DYNAMIC_PARENT, "create": True}
    if rng.random() < 0.2:
        parent["filter"] = one_of(rng, _FILTERS)
    drawn: list[Json] = []
    for _ in range(1 + int(rng.random() * 3)):
        rule: Json = {
            "name": one_of(rng, ("provided", "provided", "user", "tag", "fixed")),
            "create": rng.random() < 0.6,
        }
        if rule["name"] == "tag":
            rule["value"] = "namespace"
        if rule["name"] == "fixed":
            rule["value"] = one_of(rng, leaves)
            rule["create"] = False
        elif rng.random() < 0.7 and rule["name"] != "provided":
            rule["parent"] = parent
        if rng.random() < 0.5:
            rule["filter"] = one_of(rng, _FILTERS)
        drawn.append(rule)
    return drawn


def _backfilling(rng: random.Random) -> Json:
    """Return a root that promises starts to asks that wait in the only leaf below it."""
    leaf: Json = {"name": "a"}
    if rng.random() < 0.4:
        leaf["resources"] = {"max": {"memory": f"{60 + int(rng.random() * 100)}"}}
    properties = {
        "backfill.reservations": one_of(rng, ("1", "1", "2", "3")),
        "backfill.order": one_of(rng, ("queue", "queue", "shortest")),
        "backfill.passes": "1000",  # The second scheduler does not count asks that pass a promise.
    }
    return {"name": "root", "parent": True, "submitacl": "*", "properties": properties, "queues": [leaf]}


def _enforce_maxima(root: Json, rng: random.Random) -> None:
    """Give maxima only to leaves, most of which enforce them after they are lowered."""
    for _, queue in _walk(root):
        for name in ("resources", "limits"):
            queue.pop(name, None)
        if not queue.get("queues") and rng.random() < 0.8:
            queue.setdefault("properties", {})["quota.preemption.delay"] = one_of(rng, ("2s", "5s"))


def _end_overruns(root: Json, rng: random.Random) -> None:
    """Make leaves end overruns of walltimes, and perhaps assume walltimes."""
    for _, queue in _walk(root):
        if not queue.get("queues") and rng.random() < 0.7:
            properties = queue.setdefault("properties", {})
            properties["runtime.overrun"] = "end"
            properties |= one_of(rng, ({}, {"runtime.default": "15s"}, {"runtime.max": "30s"}))


def _with_large_memory(document: Any) -> Any:
    """Return a document with more memory in all quotas."""
    if isinstance(document, dict):
        return {
            name: f"{int(value) * LARGE}"
            if name == "memory" and isinstance(value, str)
            else _with_large_memory(value)
            for name, value in document.items()
        }
    return [_with_large_memory(each) for each in document] if isinstance(document, list) else document


def _known(queue: Json, names: frozenset[str], *, keeps_dynamic: bool) -> Json:
    """Return the document of a partition or queue with only the properties that are supported.

    Args:
        queue: The document.
        names: The properties that it supports.
        keeps_dynamic: Whether a parent of dynamic queues is kept.
    """
    if queue.get("name") == DYNAMIC_PARENT:
        return queue
    known = {name: value for name, value in queue.items() if name not in _UNKNOWN}
    if "properties" in known:
        properties = known["properties"]
        known["properties"] = {name: properties[name] for name in properties if name in names}
    limits = [limit for limit in known.pop("limits", ()) if "users" in limit]
    if limits:
        kept = ("users", "weight", "maxresources")
        known["limits"] = [{key: limit[key] for key in kept if key in limit} for limit in limits]
    if "queues" in known:
        known["queues"] = [
            _known(child, names, keeps_dynamic=keeps_dynamic)
            for child in known["queues"]
            if keeps_dynamic or child["name"] != DYNAMIC_PARENT
        ]
    return known


def _let_all_preempt(root: Json, rng: random.Random) -> None:
    """Remove the guarantees from a tree of queues; perhaps allow preemption inside all below its root."""
    for _, queue in _walk(root):
        for name in ("guaranteed", "lend"):
            queue.get("resources", {}).pop(name, None)
    if rng.random() < 0.7:
        root.setdefault("properties", {})["preemption.within"] = "lower-priority"
