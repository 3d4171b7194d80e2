"""Rules about guaranteed, maximum and lent resources: those of children must fit into those of their queue.

Only types that the limiting side names are compared. A maximum also limits queues further down, across
levels that have none; a guarantee is covered by the nearest queue above that has one.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...resources.comparisons import is_zero
from ...resources.resource import EMPTY, Resource, component_wise_min, fits_undefined_unlimited, total_of
from ...resources.texts import describe, quantity_text
from ..building import parse_resource
from ..positions import Position
from ..problems import RuleFinding
from ..schema import ChildTemplateConfig, QueueConfig


def resources_fit(
    queue: QueueConfig, findings: list[RuleFinding], *, parent_max: Resource | None = None
) -> Resource:
    """Check the resources of a queue and of all below it.

    Args:
        queue: The queue to begin with.
        findings: What is wrong is appended here.
        parent_max: The lowest maxima of the queues above.

    Returns:
        What the queue above must guarantee: the guarantee of this queue, or of its children when it has none.
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


def lend_fits_guarantee(queue: QueueConfig) -> Iterator[RuleFinding]:
    """Refuse a queue, or the template of a parent, that lends more than its guarantee, or has none."""
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
