"""Where applications go, as the second scheduler sees it: rules, their filters, and access lists."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, final

from .queues import ReferenceQueue, fits_within

_DEFAULT_RULES: Final[list[dict[str, Any]]] = [{"name": "provided"}]
_SPECIAL: Final = frozenset("^$*+?()[{}|")
"""A single entry of a filter with one of these is an expression."""


class Submission(NamedTuple):
    """What of a new application decides where it goes."""

    queue: str
    user: str
    groups: Sequence[str]
    tags: Mapping[str, str]
    announced: Mapping[str, int]
    """What the placeholders of its gang take together."""


class _RefusedError(Exception):
    """A rule refuses the application, and no other one is tried."""


def queue_for(root: ReferenceQueue, rules: list[dict[str, Any]], new: Submission) -> ReferenceQueue | None:
    """Return the queue of an application, which is made if need be; `None` if it is rejected."""
    placement = _Placement(root, new)
    try:
        path = placement.path_by(rules or _DEFAULT_RULES)
    except _RefusedError:
        return None
    queue = None if path is None else placement.made(path)
    if queue is None or not any(new.announced.values()):
        return queue
    if queue.properties.get("application.sort.policy", "fifo") != "fifo":
        return None
    maxima = [level.maximum for level in queue.path_up() if level.parent is not None and level.maximum]
    fits = all(fits_within(maximum, dict(new.announced), unlimited=True) for maximum in maxima)
    return queue if fits else None


@final
class _Placement:
    def __init__(self, root: ReferenceQueue, new: Submission) -> None:
        self._root = root
        self._new = new

    def _find(self, path: str) -> ReferenceQueue | None:
        return next((queue for queue in self._root.tree() if queue.path == path.lower()), None)

    def path_by(self, rules: list[dict[str, Any]]) -> str | None:
        """Return the path that the first rule gives whose queue takes the application."""
        for rule in rules:
            path = self._path_of(rule)
            if path is not None and self._takes(path):
                return path
        return "root.default" if self._find("root.default") and self._takes("root.default") else None

    def _path_of(self, rule: dict[str, Any]) -> str | None:
        new = self._new
        text = {
            "provided": new.queue,
            "user": new.user,
            "fixed": rule.get("value", ""),
            "tag": new.tags.get(rule.get("value", ""), ""),
        }[rule["name"]]
        if not text or not self._passes(rule.get("filter", {})):
            return None
        if text.startswith("root.") and rule["name"] != "user":
            path = text
        else:
            name = text if rule["name"] == "fixed" else text.replace(".", "_dot_")
            above = self._path_of(rule["parent"]) if "parent" in rule else "root"
            if above is None:
                return None
            parent = self._find(above)
            if "parent" in rule and parent is not None and not parent.is_parent:
                raise _RefusedError
            path = f"{above}.{name}"
        return path if rule.get("create") or self._find(path) else None

    def _passes(self, rule_filter: dict[str, Any]) -> bool:
        users, groups = rule_filter.get("users", []), rule_filter.get("groups", [])
        allows: bool = rule_filter.get("type", "allow") != "deny"
        if not users and not groups:
            return allows
        is_meant = _names(users, [self._new.user]) or _names(groups, self._new.groups)
        return is_meant if allows else not is_meant

    def _takes(self, path: str) -> bool:
        user, groups = self._new.user, self._new.groups
        queue = self._find(path)
        if queue is not None:
            return not queue.is_parent and queue.may_submit(user, groups)
        above = path
        while (known := self._find(above)) is None:
            above = above.rpartition(".")[0]
        return known.may_submit(user, groups)

    def made(self, path: str) -> ReferenceQueue | None:
        """Return a queue, which is made with those above it if it is not there; `None` if it cannot be."""
        names = path.lower().split(".")[1:]
        queue = self._root
        for depth, name in enumerate(names):
            known = next((child for child in queue.children if child.name == name), None)
            if known is None:
                if not queue.is_parent:
                    return None
                known = queue.add_dynamic(name, leaf=depth == len(names) - 1)
            queue = known
        return queue


def _names(entries: Sequence[str], names: Sequence[str]) -> bool:
    """Return whether the entries of a filter mean one of some names."""
    if len(entries) == 1 and _SPECIAL & set(entries[0]):
        return any(re.search(entries[0], name) for name in names)
    return any(name in entries for name in names)
