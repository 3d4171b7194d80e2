"""Promises of starts, and the queues of applications, as the second scheduler finds them.

It supports a partition whose root backfills with a number of promises, and one leaf below. It keeps no
profile of free resources: the room at a moment is computed from all work that runs then.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import chain, count
from typing import TYPE_CHECKING, Any, Final, NamedTuple, final

from ..manager.cluster_record import Size
from .queues import (
    ReferenceApplication,
    ReferenceAsk,
    ReferenceDecision,
    ReferenceNode,
    ReferenceQueue,
    add_to,
    fits_within,
)
from .windows import is_kept

if TYPE_CHECKING:
    from .scheduler import ReferenceScheduler

_MINUTE_NS: Final = 60_000_000_000
_LATER_NS: Final = tuple(
    minutes * _MINUTE_NS for minutes in (1, 5, 15, 30, 60, 120, 300, 600, 1_200, 3_000, 6_000)
)
"""After its walltime, unfinished work is expected to end within these times, one after the other."""
_DEFAULT_RULES: Final[list[dict[str, Any]]] = [{"name": "provided"}]
_SPECIAL: Final = frozenset("^$*+?()[{}|")
"""An entry of a filter with one of these is an expression, if it is the only entry."""


class _Work(NamedTuple):
    """Work that runs, or is to run, from one moment to another."""

    node: str
    size: Size
    begin_ns: int
    end_ns: int | None
    user: str = ""


def next_start(scheduler: ReferenceScheduler) -> ReferenceDecision | None:
    """Return the next ask to start: the first that fits and delays no promise."""
    (leaf,) = (queue for queue in scheduler.root.tree() if not queue.is_parent)
    most = int(scheduler.root.properties["backfill.reservations"])
    shortest = scheduler.root.properties.get("backfill.order") == "shortest"
    promised: list[tuple[ReferenceAsk, _Work]] = []
    later: list[tuple[ReferenceApplication, ReferenceAsk]] = []
    running = _running(scheduler)
    asks = [(each, ask) for each in scheduler.applications_of(leaf) for ask in each.in_order()]
    for application, ask in asks:
        if len(promised) >= most and shortest:
            later.append((application, ask))
            continue
        found = _start(scheduler, ask, running, promised)
        if found is not None:
            return ReferenceDecision(ask.key, found.name)
        if len(promised) < most and not _is_held_by_own(scheduler, application, ask, running):
            work = _earliest(scheduler, ask, [*running, *(each for _, each in promised)])
            if work is not None:
                promised.append((ask, work))
    never = 2**80
    later.sort(
        key=lambda each: (never if each[1].walltime_ns is None else each[1].walltime_ns, each[1].since_ns)
    )
    for _, ask in later:
        found = _start(scheduler, ask, running, promised)
        if found is not None:
            return ReferenceDecision(ask.key, found.name)
    return None


def _running(scheduler: ReferenceScheduler) -> list[_Work]:
    now_ns = scheduler.now_ns
    works = []
    for task in scheduler.running.values():
        end_ns = None
        if task.ask.walltime_ns is not None:
            planned_ns = task.begun_ns + task.ask.walltime_ns
            later = chain((0, *_LATER_NS), (_LATER_NS[-1] * times for times in count(2)))
            end_ns = next(planned_ns + more for more in later if planned_ns + more > now_ns)
        works.append(_Work(task.node.name, task.ask.size, 0, end_ns, task.application.user))
    return works


def _start(
    scheduler: ReferenceScheduler,
    ask: ReferenceAsk,
    running: list[_Work],
    promised: list[tuple[ReferenceAsk, _Work]],
) -> ReferenceNode | None:
    """Return the first node on which an ask fits now and delays no promise."""
    if any(
        not queue.is_parent and any(scheduler.quota_blockers(queue, ask.size))
        for queue in scheduler.root.tree()
    ):
        return None
    for node in scheduler.node_places.in_order():
        if is_kept(scheduler, scheduler.application_asking(ask.key), ask, node):
            continue
        if node.drained or not _fits(scheduler, node, ask.size, scheduler.now_ns, running):
            continue
        works = [*running, _work(node, ask, scheduler.now_ns)]
        for other, before in promised:
            found = _earliest(scheduler, other, works)
            if found is None or found.begin_ns > before.begin_ns:
                break
            works.append(found)
        else:
            return node
    return None


def _work(node: ReferenceNode, ask: ReferenceAsk, begin_ns: int) -> _Work:
    end_ns = None if ask.walltime_ns is None else begin_ns + ask.walltime_ns
    return _Work(node.name, ask.size, begin_ns, end_ns)


def _earliest(scheduler: ReferenceScheduler, ask: ReferenceAsk, works: list[_Work]) -> _Work | None:
    """Return the first start of an ask for its whole walltime, at the place with the fewest others."""
    moments = {scheduler.now_ns, *(work.end_ns for work in works if work.end_ns is not None)}
    moments |= {work.begin_ns for work in works if work.begin_ns > scheduler.now_ns}
    application = scheduler.application_asking(ask.key)
    moments |= {end_ns for window in scheduler.windows for end_ns in window.ends_after(scheduler.now_ns)}
    for begin_ns in sorted(moments):
        possible: list[tuple[int, int, _Work]] = []
        for node in scheduler.node_places.in_order():
            if any(window.keeps(application, ask, node, begin_ns) for window in scheduler.windows):
                continue
            work = _work(node, ask, begin_ns)
            within = [
                each for each in moments if begin_ns <= each and (work.end_ns is None or each < work.end_ns)
            ]
            if not node.drained and all(_fits(scheduler, node, ask.size, each, works) for each in within):
                others = sum(
                    each.node == node.name
                    and each.begin_ns == 0
                    and (each.end_ns is None or each.end_ns > begin_ns)
                    for each in works
                )
                possible.append((others, len(possible), work))
        if possible:
            return min(possible)[2]
    return None


def _fits(
    scheduler: ReferenceScheduler, node: ReferenceNode, size: Size, at_ns: int, works: list[_Work]
) -> bool:
    """Return whether a node and the maxima of the queues have room at a moment."""
    then = [work for work in works if work.begin_ns <= at_ns and (work.end_ns is None or work.end_ns > at_ns)]
    left = dict(node.size)
    for other in (*node.foreign.values(), *(work.size for work in then if work.node == node.name)):
        add_to(left, other, -1)
    if not fits_within(left, size):
        return False
    for queue in scheduler.root.tree():
        if queue.parent is not None and queue.maximum:
            left = dict(queue.maximum)
            for work in then:
                add_to(left, {name: work.size.get(name, 0) for name in queue.maximum}, -1)
            if not fits_within(left, size, unlimited=True):
                return False
    return True


def _is_held_by_own(
    scheduler: ReferenceScheduler, application: ReferenceApplication, ask: ReferenceAsk, running: list[_Work]
) -> bool:
    """Return whether a maximum refuses an ask only because of work of the same user."""
    if any(work.user != application.user for work in running):
        return False
    blockers = scheduler.quota_blockers(application.queue, ask.size)
    return any(blocked.path != "root" for blocked in blockers)


class Submission(NamedTuple):
    """The properties of a new application that decide its queue."""

    queue: str
    user: str
    groups: Sequence[str]
    tags: Mapping[str, str]
    announced: Mapping[str, int]
    """The sum of the placeholders of its gang."""


class _RefusedError(Exception):
    """A rule refuses the application, and no other rule is tried."""


def queue_for(root: ReferenceQueue, rules: list[dict[str, Any]], new: Submission) -> ReferenceQueue | None:
    """Return the queue of an application, created if necessary; `None` if it is rejected."""
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
        """Return the path of the first rule whose queue accepts the application."""
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
        """Return a queue, created with its parents if necessary; `None` if it cannot be."""
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
    """Return whether the entries of a filter contain one of these names."""
    if len(entries) == 1 and _SPECIAL & set(entries[0]):
        return any(re.search(entries[0], name) for name in names)
    return any(name in entries for name in names)
