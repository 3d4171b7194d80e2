"""Rules about queues and their children: names, access, numbers, templates, resources and run times.

Only types that the limiting side names are compared. A maximum also limits queues further down, across
levels without one; a guarantee is covered by the nearest queue above that has one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ...policies.policies import POLICY_PREFIX
from ...resources.comparisons import is_zero
from ...resources.resource import (
    EMPTY,
    Resource,
    component_wise_min,
    describe,
    fits_undefined_unlimited,
    quantity_text,
    total_of,
)
from ..durations import duration_text
from ..names import QUEUE_NAME_RULE, AccessControlError, AccessControlList, did_you_mean, is_queue_name
from ..policies import (
    QUEUE_ORDER_WORDS,
    BackfillOrder,
    FairCount,
    GangPlacing,
    MinRuntimeScope,
    Overrun,
    PreemptionWithin,
)
from ..problems import Position, RuleFinding
from ..queue_properties import (
    BACKFILL_ORDER,
    BACKFILL_PASSES,
    BACKFILL_PROMISES,
    BACKFILL_RESERVATIONS,
    FAIR_COUNT,
    FAIR_HALF_LIFE,
    FAIR_WEIGHT,
    GANG_PLACING,
    PREEMPTION_MIN_RUNTIME,
    PREEMPTION_MIN_RUNTIME_SCOPE,
    PREEMPTION_VICTIMS_MAX,
    PREEMPTION_WITHIN,
    QUEUE_SORT_POLICY,
    REFUSED_IF_UNREADABLE,
    RUNTIME_DEFAULT,
    RUNTIME_EXPECTED,
    RUNTIME_MAX,
    RUNTIME_OVERRUN,
    evaluate,
    inherit,
    reads,
)
from ..schema import ChildTemplateConfig, QueueConfig, parse_resource
from ..shares import WHOLE, Share

_VALUES: Final[Mapping[str, tuple[str, ...]]] = {
    FAIR_COUNT: tuple(count.value for count in FairCount),
    PREEMPTION_MIN_RUNTIME_SCOPE: tuple(scope.value for scope in MinRuntimeScope),
    PREEMPTION_WITHIN: tuple(within.value for within in PreemptionWithin),
    QUEUE_SORT_POLICY: (*QUEUE_ORDER_WORDS, f"{POLICY_PREFIX}NAME"),
    GANG_PLACING: tuple(placing.value for placing in GangPlacing),
    BACKFILL_ORDER: (*(order.value for order in BackfillOrder), f"{POLICY_PREFIX}NAME"),
    BACKFILL_PROMISES: (f"{POLICY_PREFIX}NAME",),
    RUNTIME_OVERRUN: tuple(kind.value for kind in Overrun),
    RUNTIME_EXPECTED: (f"{POLICY_PREFIX}NAME",),
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


def resources_fit(
    queue: QueueConfig, findings: list[RuleFinding], *, parent_max: Resource | None = None
) -> Resource:
    """Check the resources of a queue and of all below it.

    Args:
        queue: The queue to begin with.
        findings: Errors are appended here.
        parent_max: The lowest maxima of the queues above.

    Returns:
        The least guarantee of the queue above: that of this queue, or of its children when it has none.
    """
    findings.extend(_guaranteed_fits_max(queue))
    findings.extend(_max_fits_parent(queue, parent_max))
    if not queue.queues:  # Thousands of leaves may be below a maximum of thousands of types.
        return EMPTY if is_zero(queue.guaranteed) else queue.guaranteed
    lowest = component_wise_min(queue.max or None, parent_max)
    wanted = total_of([resources_fit(child, findings, parent_max=lowest) for child in queue.queues])
    findings.extend(_children_fit_guaranteed(queue, wanted))
    findings.extend(_children_fit_max(queue, wanted, lowest))
    return wanted if is_zero(queue.guaranteed) else queue.guaranteed


def shares_fit(queue: QueueConfig) -> Iterator[RuleFinding]:
    """Refuse parts of the cluster that do not fit; parts of known maxima are compared as quantities."""
    if queue.max:
        return
    guaranteed, maximum = queue.guaranteed_share, queue.max_share
    if guaranteed is not None and maximum is not None and guaranteed > maximum:
        text = f"guaranteed {guaranteed} is larger than max {maximum} of queue {queue.name}"
        yield RuleFinding(_place(queue, "guaranteed"), text)
    wanted = sum(each.guaranteed_share.thousandths for each in queue.queues if each.guaranteed_share)
    most = WHOLE
    if guaranteed is not None and maximum is not None:
        most = WHOLE * guaranteed.thousandths // maximum.thousandths
    if wanted > most:
        text = f"the children of queue {queue.name} are guaranteed {Share(wanted)} of its maximum together"
        yield RuleFinding(_place(queue, "queues"), f"{text}, and may be guaranteed {Share(most)}")


def lend_fits_guarantee(queue: QueueConfig) -> Iterator[RuleFinding]:
    """Refuse a queue, or the template of a parent, that lends more than its guarantee, or lacks one."""
    if queue.guaranteed_share is not None and not queue.guaranteed and queue.lend:
        text = f"lend of queue {queue.name} cannot be compared with a guarantee that is a part of the cluster"
        yield RuleFinding(_place(queue, "lend"), text)
    else:
        yield from _lend_fits(queue, queue.guaranteed, queue.lend, f"queue {queue.name}")
    template = queue.child_template
    if template is not None and not queue.is_leaf:
        unreadable: list[RuleFinding] = []  # Refused by another rule.
        guaranteed = parse_resource(template.guaranteed, template.positions, "guaranteed", unreadable)
        lend = parse_resource(template.lend, template.positions, "lend", unreadable)
        yield from _lend_fits(template, guaranteed, lend, f"the childtemplate of queue {queue.name}")


def _lend_fits(
    owner: QueueConfig | ChildTemplateConfig, guaranteed: Resource, lend: Resource, whose: str
) -> Iterator[RuleFinding]:
    for name, quantity in lend.items():
        most = guaranteed.get(name)
        if most <= 0:
            text = f"lend names {name}, of which {whose} is guaranteed nothing"
        elif quantity > most:
            text = (
                f"lend of {quantity_text(name, quantity)} {name} is larger than the guarantee of {whose}: "
                f"{quantity_text(name, most)} {name}"
            )
        else:
            continue
        yield RuleFinding(owner.positions.get(f"lend.{name}", owner.position), text)


def _place(queue: QueueConfig, key: str) -> Position:
    return queue.positions.get(key, queue.position)


def _guaranteed_fits_max(queue: QueueConfig) -> list[RuleFinding]:
    """Refuse a guarantee above the maximum of the same queue."""
    if fits_undefined_unlimited(queue.max, queue.guaranteed):
        return []
    text = (
        f"guaranteed resource {describe(queue.guaranteed)} is larger than maximum resource "
        f"{describe(queue.max)} for queue {queue.name}"
    )
    return [RuleFinding(_place(queue, "guaranteed"), text)]


def _max_fits_parent(queue: QueueConfig, parent_max: Resource | None) -> list[RuleFinding]:
    """Refuse a maximum above that of a queue above."""
    if fits_undefined_unlimited(parent_max, queue.max):
        return []
    text = (
        f"max resource of parent {describe(parent_max)} is smaller than maximum resource "
        f"{describe(queue.max)} for queue {queue.name}"
    )
    return [RuleFinding(_place(queue, "max"), text)]


def _children_fit_guaranteed(queue: QueueConfig, wanted: Resource) -> list[RuleFinding]:
    """Refuse children that are guaranteed more together than their parent."""
    if fits_undefined_unlimited(queue.guaranteed, wanted):
        return []
    text = (
        f"guaranteed resource of parent {describe(queue.guaranteed)} is smaller than sum of guaranteed "
        f"resources {describe(wanted)} of the children for queue {queue.name}"
    )
    return [RuleFinding(_place(queue, "guaranteed"), text)]


def _children_fit_max(queue: QueueConfig, wanted: Resource, lowest: Resource | None) -> list[RuleFinding]:
    """Refuse children that are guaranteed more together than their parent may ever have."""
    if fits_undefined_unlimited(lowest, wanted):
        return []
    text = (
        f"max resource {describe(lowest)} is smaller than sum of guaranteed resources {describe(wanted)} "
        f"of the children for queue {queue.name}"
    )
    return [RuleFinding(_place(queue, "max"), text)]


def run_times_fit(queue: QueueConfig, above: Mapping[str, str]) -> Iterator[RuleFinding]:
    """Refuse defaults above the maximum, of a queue and all below it.

    Args:
        queue: The queue.
        above: The properties that it inherits.
    """
    properties = inherit(above, queue.properties)
    yield from _fit(queue.properties, properties, queue.positions, queue.position)
    template = queue.child_template
    if template is not None:
        yield from _fit(template.properties, template.properties, template.positions, template.position)
    for child in queue.queues:
        yield from run_times_fit(child, properties)


def _fit(
    own: Mapping[str, str],
    properties: Mapping[str, str],
    positions: Mapping[str, Position],
    fallback: Position,
) -> Iterator[RuleFinding]:
    """Refuse the default of one queue, at its own place."""
    runtime = evaluate(properties, is_leaf=True).runtime
    named = next((name for name in (RUNTIME_DEFAULT, RUNTIME_MAX) if name in own), None)
    if named is None or runtime.default_ns is None or runtime.max_ns is None:
        return
    if runtime.default_ns > runtime.max_ns:
        position = positions.get(f"properties.{named}", fallback)
        texts = f"{RUNTIME_DEFAULT} {duration_text(runtime.default_ns)}", duration_text(runtime.max_ns)
        yield RuleFinding(position, f"{texts[0]} is longer than {RUNTIME_MAX} {texts[1]}")
