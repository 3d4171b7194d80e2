"""Rules about limits on different levels: a queue cannot allow a user more than a queue above does.

The limit of a name is compared with the nearest limit of the same name above, or else with that of
the wildcard above. Limits of the same queue are not compared with each other. What is allowed above is not
copied for each queue: thousands of names may be above thousands of queues.
"""

from __future__ import annotations

from collections import ChainMap
from typing import TypeAlias, TypeVar

from ...resources.resource import Resource, component_wise_min, fits_undefined_unlimited
from ...resources.texts import describe
from ..limit_kinds import LimitKind
from ..names import WILDCARD
from ..problems import RuleFinding
from ..schema import LimitConfig, QueueConfig

_Holder: TypeAlias = tuple[str, str]
"""`user` or `group`, and the name."""
_Limit = TypeVar("_Limit", Resource, int)


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
        What this queue and those above allow; a name that is limited in several has the lowest.
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
        What is allowed below this queue: its own limits replace those above.
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
