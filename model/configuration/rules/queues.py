"""Rules about single queues and their children: names, access lists, numbers of applications, templates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ..access_control import AccessControlError, AccessControlList
from ..building import parse_resource
from ..names import QUEUE_NAME_RULE, is_queue_name
from ..policies import BackfillOrder, FairCount, GangPlacing, MinRuntimeScope, Overrun, PreemptionWithin
from ..problems import RuleFinding
from ..queue_properties import (
    BACKFILL_ORDER,
    BACKFILL_PASSES,
    BACKFILL_RESERVATIONS,
    FAIR_COUNT,
    FAIR_HALF_LIFE,
    FAIR_WEIGHT,
    GANG_PLACING,
    PREEMPTION_MIN_RUNTIME,
    PREEMPTION_MIN_RUNTIME_SCOPE,
    PREEMPTION_VICTIMS_MAX,
    PREEMPTION_WITHIN,
    REFUSED_IF_UNREADABLE,
    RUNTIME_DEFAULT,
    RUNTIME_MAX,
    RUNTIME_OVERRUN,
    reads,
)
from ..schema import QueueConfig
from ..words import did_you_mean

_VALUES: Final[Mapping[str, tuple[str, ...]]] = {
    FAIR_COUNT: tuple(count.value for count in FairCount),
    PREEMPTION_MIN_RUNTIME_SCOPE: tuple(scope.value for scope in MinRuntimeScope),
    PREEMPTION_WITHIN: tuple(within.value for within in PreemptionWithin),
    GANG_PLACING: tuple(placing.value for placing in GangPlacing),
    BACKFILL_ORDER: tuple(order.value for order in BackfillOrder),
    RUNTIME_OVERRUN: tuple(kind.value for kind in Overrun),
}
"""The values of properties that have few."""
_FORMS: Final[Mapping[str, str]] = {
    PREEMPTION_MIN_RUNTIME: "a duration such as '30m', or 0 for none",
    PREEMPTION_VICTIMS_MAX: "a number above zero and a duration, such as '5/1h'",
    RUNTIME_DEFAULT: "a duration above zero, such as '90m'",
    RUNTIME_MAX: "a duration above zero, such as '90m'",
    FAIR_HALF_LIFE: "a duration above zero, such as '7d'",
    BACKFILL_RESERVATIONS: "a number from 0 to 1000, or all",
    BACKFILL_PASSES: "a number from 0 to 1000",
    FAIR_WEIGHT: "a number from 1 to 1000000",
}


def access_lists_are_readable(queue: QueueConfig) -> Iterator[RuleFinding]:
    """Refuse access lists of more than two parts."""
    for key, text in (("adminacl", queue.admin_acl), ("submitacl", queue.submit_acl)):
        try:
            AccessControlList.parse(text)
        except AccessControlError as error:
            yield RuleFinding(queue.positions.get(key, queue.position), str(error))


def child_names_are_valid(queue: QueueConfig) -> Iterator[RuleFinding]:
    """Refuse names of children that cannot be names of queues."""
    for child in queue.queues:
        if not is_queue_name(child.name):
            yield RuleFinding(
                child.positions.get("name", child.position), f"{QUEUE_NAME_RULE}: {child.name!r}"
            )


def child_names_are_unique(queue: QueueConfig, level: int) -> Iterator[RuleFinding]:
    """Refuse a second child of one name, whatever the case.

    Args:
        queue: The parent.
        level: How deep the children are; those of the root queue are on level 1.
    """
    seen: set[str] = set()
    for child in queue.queues:
        name = child.name.lower()
        if name in seen and name:
            position = child.positions.get("name", child.position)
            yield RuleFinding(position, f"duplicate child name found with name {name!r}, level {level}")
        seen.add(name)


def application_maxima_fit(queue: QueueConfig) -> Iterator[RuleFinding]:
    """Refuse children that may have more applications than their parent, or any number of them.

    A parent without a maximum allows any, and does not hand down that of its own parent.
    """
    if queue.max_applications == 0:
        return
    for child in queue.queues:
        position = child.positions.get("maxapplications", child.position)
        if child.max_applications == 0:
            yield RuleFinding(
                position,
                "maxApplications is either undefined or zero, which is not allowed when parent queue's "
                f"maxApplications is defined ({queue.max_applications} for queue {queue.name})",
            )
        elif child.max_applications > queue.max_applications:
            yield RuleFinding(
                position,
                f"parent maxApplications must be larger than child maxApplications: {queue.max_applications} "
                f"for queue {queue.name}, {child.max_applications} for queue {child.name}",
            )


def template_resources_are_readable(queue: QueueConfig) -> Iterator[RuleFinding]:
    """Refuse a template of a parent with quantities that no dynamic queue could be given.

    A leaf has no queues below it, so its template is never read.
    """
    template = queue.child_template
    if template is None or queue.is_leaf:
        return
    findings: list[RuleFinding] = []
    parse_resource(template.guaranteed, template.positions, "guaranteed", findings)
    parse_resource(template.max, template.positions, "max", findings)
    parse_resource(template.lend, template.positions, "lend", findings)
    yield from findings


def own_properties_are_readable(queue: QueueConfig) -> Iterator[RuleFinding]:
    """Refuse unreadable values of properties that the recorded core does not know, in a template as well."""
    template = queue.child_template
    for owner in (queue,) if template is None else (queue, template):
        for name in REFUSED_IF_UNREADABLE:
            text = owner.properties.get(name)
            if text is None or reads(name, text):
                continue
            words = _VALUES.get(name, ())
            wanted = " or ".join(repr(word) for word in words) or _FORMS[name]
            position = owner.positions.get(f"properties.{name}", owner.position)
            yield RuleFinding(
                position, f"{name} is {text!r}, and must be {wanted}{did_you_mean(text, words)}"
            )
