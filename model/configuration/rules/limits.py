"""Rules about limits: those of one queue, and those on different levels, which must agree.

The limit of a name is compared with the nearest limit of the same name above, or else with that of
the wildcard above. Limits of the same queue are not compared with each other. Limits from above are not
copied for each queue: thousands of names may be above thousands of queues.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator
from itertools import product
from typing import TypeAlias, TypeVar

from ...resources.resource import (
    Resource,
    component_wise_min,
    describe,
    fits_undefined_unlimited,
    strictly_greater_than_zero,
)
from ..names import WILDCARD, is_group_name, is_user_name
from ..problems import Position, RuleFinding
from ..queue_properties import read_weight
from ..schema import LIMIT_KINDS, LimitConfig, LimitKind, QueueConfig

_KINDS = (("user", "users"), ("group", "groups"))
_Holder: TypeAlias = tuple[str, str]
"""`user` or `group`, and the name."""
_Limit = TypeVar("_Limit", Resource, int)


def _names(limit: LimitConfig, key: str) -> list[tuple[str, Position]]:
    """Return the users or groups of a limit, each with its place."""
    names = limit.users if key == "users" else limit.groups
    return [(name, limit.positions.get(f"{key}[{i}]", limit.position)) for i, name in enumerate(names)]


def limits_name_someone(queue: QueueConfig) -> Iterator[RuleFinding]:
    """Refuse a limit without users and groups."""
    for limit in queue.limits:
        if not limit.users and not limit.groups:
            yield RuleFinding(
                limit.position, f"empty user and group lists defined in limit {limit.description!r}"
            )


def limit_names_are_valid(queue: QueueConfig) -> Iterator[RuleFinding]:
    """Refuse what cannot be the name of a user or group."""
    for limit in queue.limits:
        for name, position in _names(limit, "users"):
            if name != WILDCARD and not is_user_name(name):
                yield RuleFinding(position, f"invalid limit user name {name!r} in limit definition")
        for name, position in _names(limit, "groups"):
            if name != WILDCARD and not is_group_name(name):
                yield RuleFinding(position, f"invalid limit group name {name!r} in limit definition")


def limits_name_each_once(queue: QueueConfig) -> Iterator[RuleFinding]:
    """Refuse a second limit for the same user or group in one queue; `*` counts as a name."""
    for kind, key in _KINDS:
        seen: set[str] = set()
        for limit in queue.limits:
            for name, position in _names(limit, key):
                if name in seen:
                    yield RuleFinding(position, f"duplicated {kind} name {name!r}, already exists")
                seen.add(name)


def wildcards_come_last(queue: QueueConfig) -> Iterator[RuleFinding]:
    """Refuse a named user or group after the wildcard."""
    for kind, key in _KINDS:
        after_wildcard = False
        for limit in queue.limits:
            for name, position in _names(limit, key):
                if after_wildcard and name != WILDCARD:
                    text = f"should not set no wildcard {kind} {name} after wildcard {kind} limit"
                    yield RuleFinding(position, text)
                after_wildcard = after_wildcard or name == WILDCARD


def wildcard_group_is_not_alone(queue: QueueConfig) -> Iterator[RuleFinding]:
    """Refuse the wildcard group in a queue whose limits have named no group before."""
    for limit in queue.limits:
        names = _names(limit, "groups")
        if names and all(name == WILDCARD for name, _ in names):
            text = (
                "should not specify only one group limit that is using the wildcard. "
                "There must be at least one limit with a group name defined"
            )
            yield RuleFinding(names[0][1], text)
        if names:
            return


def limit_resources_are_positive(queue: QueueConfig) -> Iterator[RuleFinding]:
    """Refuse resources that are all zero; some of them may be."""
    for limit, kind in product(queue.limits, LIMIT_KINDS):
        most = limit.resource(kind)
        all_readable = len(most) == len(limit.texts(kind))
        if most and all_readable and not strictly_greater_than_zero(most):
            text = f"{kind.title} should be greater than zero in {limit.description!r} limit"
            yield RuleFinding(limit.positions.get(kind.key, limit.position), text)


def limits_limit_something(queue: QueueConfig) -> Iterator[RuleFinding]:
    """Refuse a limit with neither resources nor a number of applications nor a weight."""
    for limit in queue.limits:
        if not limit.weight and limit.max_applications == 0 and not (limit.resource_texts or limit.resources):
            where = ("maxapplications", *(kind.key for kind in LIMIT_KINDS))
            position = next((limit.positions[key] for key in where if key in limit.positions), limit.position)
            text = f"invalid resource combination for limit {limit.description} all resource limits are null"
            yield RuleFinding(position, text)


def limit_weights_are_readable(queue: QueueConfig) -> Iterator[RuleFinding]:
    """Refuse a weight that is not valid, and one of groups: users have weights."""
    for limit in queue.limits:
        if not limit.weight:
            continue
        position = limit.positions.get("weight", limit.position)
        if read_weight(limit.weight) is None:
            text = f"weight is {limit.weight!r} in limit {limit.description!r}, and must be a number"
            yield RuleFinding(position, f"{text} from 1 to 1000000")
        if not limit.users:
            text = f"limit {limit.description!r} has a weight, and names no user: only users have weights"
            yield RuleFinding(position, text)


def limit_applications_fit_queue(queue: QueueConfig) -> Iterator[RuleFinding]:
    """Refuse more applications than the queue may have."""
    for limit in queue.limits:
        if 0 < queue.max_applications < limit.max_applications:
            text = (
                f"invalid MaxApplications settings for limit {limit.description}: {limit.max_applications} "
                f"exceed the current queue MaxApplications {queue.max_applications}"
            )
            yield RuleFinding(limit.positions.get("maxapplications", limit.position), text)


def limit_resources_fit_queue(queue: QueueConfig) -> Iterator[RuleFinding]:
    """Refuse resources beyond the maximum of the queue; the root queue has no maximum."""
    for limit, kind in product(queue.limits, LIMIT_KINDS):
        if not fits_undefined_unlimited(queue.max, limit.resource(kind)):
            text = (
                f"invalid {kind.title} settings for limit {limit.description}: they exceed the current queue "
                "MaxResources"
            )
            yield RuleFinding(limit.positions.get(kind.key, limit.position), text)


def _limiting(queue: QueueConfig) -> list[LimitConfig]:
    return [limit for limit in queue.limits if not limit.only_weighs]


def _who(limit: LimitConfig) -> list[_Holder]:
    return [("user", name) for name in limit.users] + [("group", name) for name in limit.groups]


def _above(above: ChainMap[_Holder, _Limit], who: _Holder) -> tuple[_Limit | None, bool]:
    """Return the limit above that counts for a name, and whether it is that of the wildcard."""
    kind, name = who
    if who in above or name == WILDCARD:
        return above.get(who), False
    return above.get((kind, WILDCARD)), True


def limit_resources_fit_levels_above(
    queue: QueueConfig, kind: LimitKind, above: ChainMap[_Holder, Resource], findings: list[RuleFinding]
) -> ChainMap[_Holder, Resource]:
    """Refuse resources beyond those a queue above allows to the same user or group.

    Returns:
        The limits of this queue and those above; a name that is limited in several has the lowest.
    """
    allowed = above.new_child() if queue.limits else above
    for limit in _limiting(queue):
        most = limit.resource(kind)
        for who in _who(limit):
            bound, by_wildcard = _above(above, who)
            if not fits_undefined_unlimited(bound, most):
                own = f"{who[0]} {who[1]} {kind.name} {describe(most)} of queue {queue.name}"
                text = _too_much(own, kind.name_above, describe(bound), by_wildcard=by_wildcard)
                findings.append(RuleFinding(limit.positions.get(kind.key, limit.position), text))
            lowest = above.get(who)
            allowed[who] = component_wise_min(most, lowest)
    return allowed


def limit_applications_fit_levels_above(
    queue: QueueConfig, above: ChainMap[_Holder, int], findings: list[RuleFinding]
) -> ChainMap[_Holder, int]:
    """Refuse more applications than a queue above allows to the same user or group, or any number of them.

    Returns:
        The limits below this queue: its own limits replace those above.
    """
    allowed = above.new_child() if queue.limits else above
    for limit in _limiting(queue):
        for who in _who(limit):
            bound, by_wildcard = _above(above, who)
            if bound and not 0 < limit.max_applications <= bound:
                kind, name = who
                own = f"{kind} {name} max applications {limit.max_applications} of queue {queue.name}"
                text = _too_much(own, "max applications", str(bound), by_wildcard=by_wildcard)
                findings.append(RuleFinding(limit.positions.get("maxapplications", limit.position), text))
            allowed[who] = limit.max_applications
    return allowed


def _too_much(own: str, what: str, bound: str, *, by_wildcard: bool) -> str:
    if by_wildcard:
        return f"{own} is greater than wildcard {what} {bound} of immediate or ancestor parent queue"
    return f"{own} is greater than immediate or ancestor parent {what} {bound}"
