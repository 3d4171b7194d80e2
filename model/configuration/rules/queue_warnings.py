"""Warnings about queues and resource types, and rules about policies that a configuration names.

Warnings are about settings without effect and probable misspellings. A policy must have been given by the
program, and must decide where it is named.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from ...policies.policies import POLICY_PREFIX, PolicyPoint, is_policy_word
from ...resources.comparisons import is_zero
from ..names import AccessControlError, AccessControlList, did_you_mean
from ..policies import APPLICATION_ORDER_WORDS
from ..problems import Position, RuleFinding
from ..queue_properties import (
    APPLICATION_SORT_POLICY,
    BACKFILL_ORDER,
    BACKFILL_PROMISES,
    BACKFILL_RESERVATIONS,
    PREEMPTION_DELAY,
    PREEMPTION_POLICY,
    PROPERTIES,
    QUEUE_SORT_POLICY,
    QUOTA_PREEMPTION_DELAY,
    REFUSED_IF_UNREADABLE,
    RUNTIME_DEFAULT,
    RUNTIME_EXPECTED,
    RUNTIME_MAX,
    RUNTIME_OVERRUN,
    evaluate,
    inherit,
    reads,
)
from ..schema import LimitConfig, PartitionConfig, PreemptionConfig, QueueConfig

_WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    APPLICATION_SORT_POLICY: APPLICATION_ORDER_WORDS,
    "application.sort.priority": ("enabled", "disabled"),
    "priority.policy": ("default", "fence"),
    PREEMPTION_POLICY: ("default", "fence", "disabled"),
}
_LEAF_ONLY: Final = (
    *(APPLICATION_SORT_POLICY, PREEMPTION_DELAY),
    *(RUNTIME_DEFAULT, RUNTIME_MAX, RUNTIME_OVERRUN, RUNTIME_EXPECTED),
)
KNOWN_TYPES: Final = ("vcore", "memory", "pods", "ephemeral-storage", "nvidia.com/gpu")
"""The types that resource managers commonly have; others are known where a file names them twice."""
_OTHER_NAMES: Final = {"cpu": "vcore", "mem": "memory"}
_LIKENESS_MIN: Final = 0.75
"""`amd.com/gpu` is not a spelling of `nvidia.com/gpu`."""
_COMPARISONS_MAX: Final = 100_000
"""How many pairs of types are compared in all; with more, unknown types are compared with the common ones."""


def queue_effects(partition: PartitionConfig) -> Iterator[RuleFinding]:
    """Yield the warnings about all queues of a partition."""
    yield from _walk(partition.root, partition.preemption)
    yield from backfilling_has_effect(partition.root, _Above({}, {}, backfills=False))
    yield from access_lists_have_effect(partition.root)


def _walk(queue: QueueConfig, preemption: PreemptionConfig) -> Iterator[RuleFinding]:
    yield from names_in_access_lists_match(queue)
    yield from zero_resources_limit(queue)
    yield from template_is_used(queue)
    yield from properties_are_readable(queue.properties, queue.positions, queue.position)
    yield from leaf_properties_reach_leaves(queue)
    yield from preemption_properties_are_switched_on(queue, preemption)
    if queue.child_template is not None:
        template = queue.child_template
        yield from properties_are_readable(template.properties, template.positions, template.position)
    for child in queue.queues:
        yield from _walk(child, preemption)


def names_in_access_lists_match(queue: QueueConfig) -> Iterator[RuleFinding]:
    """Warn of names in access lists that no user or group can have."""
    for key, text in (("adminacl", queue.admin_acl), ("submitacl", queue.submit_acl)):
        try:
            ignored = AccessControlList.parse(text).ignored
        except AccessControlError:
            continue  # an error, not a warning
        if ignored:
            names = ", ".join(repr(name) for name in ignored)
            yield RuleFinding(
                queue.positions.get(key, queue.position), f"{names} in the ACL {text!r} can match nobody"
            )


def access_lists_have_effect(root: QueueConfig) -> Iterator[RuleFinding]:
    """Warn of queues to which no user may submit, and of lists below a queue that is open to all users."""
    yield from _submitting(root, "", is_open=False)[1]


def _submitting(queue: QueueConfig, above: str, *, is_open: bool) -> tuple[bool, list[RuleFinding]]:
    """Return whether any user may submit to a queue or below it, and what is found there.

    Args:
        queue: No list above it names single users.
        above: The path of the queue above it.
        is_open: Whether a queue above it lets every user submit.
    """
    path = f"{above}.{queue.name}" if above else queue.name
    submit, admin = _access_list(queue.submit_acl), _access_list(queue.admin_acl)
    found: list[RuleFinding] = []
    if is_open and queue.submit_acl.strip() and not submit.everyone:
        position = queue.positions.get("submitacl", queue.position)
        text = f"submitacl has no effect: a queue above {path} lets every user submit"
        found.append(RuleFinding(position, text))
    is_open = is_open or submit.everyone or admin.everyone
    if not is_open and (submit.users or submit.groups or admin.users or admin.groups):
        return True, found
    below = [_submitting(child, path, is_open=is_open) for child in queue.queues]
    if is_open or any(some for some, _ in below):
        return True, [*found, *(each for _, findings in below for each in findings)]
    where = f"{path} or below it" if queue.queues else path
    text = f"no user may submit to {where}: no submitacl or adminacl allows one"
    return False, [RuleFinding(queue.position, text)]


def _access_list(text: str) -> AccessControlList:
    """Return a list; one that cannot be read, which is a separate error, allows all users."""
    try:
        return AccessControlList.parse(text)
    except AccessControlError:
        return AccessControlList(everyone=True)


def zero_resources_limit(queue: QueueConfig) -> Iterator[RuleFinding]:
    """Warn of resources that are all zero: they count as not set, a maximum too."""
    for key, resource in (("guaranteed", queue.guaranteed), ("max", queue.max)):
        if len(resource) and is_zero(resource):
            position = queue.positions.get(key, queue.position)
            yield RuleFinding(position, f"{key} is zero for all resources, which counts as not set")


def template_is_used(queue: QueueConfig) -> Iterator[RuleFinding]:
    """Warn of a template at a leaf, which has no queues below it."""
    template = queue.child_template
    if template is not None and queue.is_leaf and not template.is_empty:
        yield RuleFinding(template.position, f"childtemplate has no effect: queue {queue.name} is a leaf")


def properties_are_readable(
    properties: Mapping[str, str], positions: Mapping[str, Position], fallback: Position
) -> Iterator[RuleFinding]:
    """Warn of unknown properties, and of values that are not used."""
    for name, text in properties.items():
        position = positions.get(f"properties.{name}", fallback)
        if name not in PROPERTIES:
            yield RuleFinding(position, f"the property {name!r} is not known{did_you_mean(name, PROPERTIES)}")
        elif name in REFUSED_IF_UNREADABLE:
            continue  # An invalid value is an error, not a warning.
        elif not reads(name, text):
            hint = did_you_mean(text, _WORDS.get(name, ()))
            yield RuleFinding(position, f"{text!r} is not a value of {name}, the default is used{hint}")
        elif name == APPLICATION_SORT_POLICY and text == "stateaware":
            yield RuleFinding(position, "stateaware is served as fifo: write 'fifo'")


def leaf_properties_reach_leaves(queue: QueueConfig) -> Iterator[RuleFinding]:
    """Warn of properties of leaves at a parent without queues in the configuration: none inherits them."""
    if queue.is_leaf or queue.queues:
        return
    for name in _LEAF_ONLY:
        if name in queue.properties:
            text = f"{name} has no effect at a parent without configured queues; did you mean childtemplate?"
            yield _at(queue, name, text)


class _Above(NamedTuple):
    """The settings of backfilling that a queue gets from those above it."""

    properties: Mapping[str, str]
    """Those that it inherits, and those that it does not."""
    template: Mapping[str, str]
    """The properties of queues that are created below it."""
    backfills: bool


def backfilling_has_effect(queue: QueueConfig, above: _Above) -> Iterator[RuleFinding]:
    """Warn of settings without effect where a queue backfills, and of leaves without a run time there."""
    properties = inherit(above.properties, queue.properties)
    template, backfills = above.template, above.backfills
    if queue.child_template is not None and not queue.child_template.is_empty:
        template = queue.child_template.properties
    yield from _order_has_effect(queue)
    if not queue.is_leaf:
        backfills = backfills or evaluate(properties, is_leaf=False).backfill is not None
    of_leaves = properties if queue.is_leaf else template
    runtime = evaluate(of_leaves, is_leaf=True).runtime
    if backfills and not queue.queues and runtime.assumed_ns is None and not runtime.expected_word:
        where = "" if queue.is_leaf else " in a childtemplate"
        text = (
            f"queue {queue.name} has no {RUNTIME_DEFAULT}{where}, and a queue above its work backfills: "
            "work without a walltime of its own never ends in a plan"
        )
        yield RuleFinding(queue.position, text)
    for child in queue.queues:
        yield from backfilling_has_effect(child, _Above(properties, template, backfills))


def _order_has_effect(queue: QueueConfig) -> Iterator[RuleFinding]:
    """Warn of properties of backfilling at a leaf, and of an order where it does not matter."""
    for name in (BACKFILL_RESERVATIONS, BACKFILL_ORDER, BACKFILL_PROMISES):
        if queue.is_leaf and name in queue.properties:
            yield _at(queue, name, f"{name} has no effect at a leaf: it is for the queue above")
    if queue.is_leaf or BACKFILL_ORDER not in queue.properties:
        return
    backfill = evaluate(queue.properties, is_leaf=False).backfill
    if backfill is None or backfill.keeps:
        needed = f"{BACKFILL_RESERVATIONS} is a number above 0"
        yield _at(queue, BACKFILL_ORDER, f"{BACKFILL_ORDER} has no effect unless {needed}")


def _at(queue: QueueConfig, name: str, text: str) -> RuleFinding:
    return RuleFinding(queue.positions.get(f"properties.{name}", queue.position), text)


def preemption_properties_are_switched_on(
    queue: QueueConfig, preemption: PreemptionConfig
) -> Iterator[RuleFinding]:
    """Warn of properties of preemption in a partition where it is off."""
    off: list[tuple[str, str]] = []
    if preemption.enabled is False:
        off += [(PREEMPTION_DELAY, "preemption.enabled"), (PREEMPTION_POLICY, "preemption.enabled")]
    if not preemption.quota_preemption_enabled:
        off.append((QUOTA_PREEMPTION_DELAY, "preemption.quotapreemptionenabled"))
    for name, switch in off:
        if name in queue.properties:
            yield _at(queue, name, f"{name} has no effect: {switch} is not true for the partition")


def type_effects(
    partitions: Collection[PartitionConfig], node_types: Collection[str] | None = None
) -> Iterator[RuleFinding]:
    """Warn of unknown types that occur once only and are similar to a known one.

    Args:
        partitions: All partitions of a file.
        node_types: The types of the nodes, if known: then a type similar to no other is reported as well.
    """
    places: defaultdict[str, set[Position]] = defaultdict(set)
    for partition in partitions:
        for name, position in _types_of(partition):
            places[name].add(position)
    known = {*KNOWN_TYPES, *(node_types or ()), *(name for name, found in places.items() if len(found) > 1)}
    unknown = sorted(places.keys() - known)
    compared = sorted(known) if len(unknown) * len(known) <= _COMPARISONS_MAX else KNOWN_TYPES
    for name in unknown:
        (position,) = places[name]
        hint = _hint(name, compared)
        if hint or node_types is not None:
            yield RuleFinding(
                position, f"the resource type {name!r} is not known{hint or ': no node has it'}"
            )


def _hint(name: str, known: Sequence[str]) -> str:
    """Return the end of a message that names the nearest known type, or nothing."""
    other = _OTHER_NAMES.get(name.lower())
    if other is not None:
        return f"; did you mean {other!r}?"
    return did_you_mean(name, known, likeness=_LIKENESS_MIN)


def _types_of(partition: PartitionConfig) -> Iterator[tuple[str, Position]]:
    """Yield all resource types of a partition with their positions, if they have any."""
    weights = partition.node_sort_policy.resource_weights
    yield from _placed("nodesortpolicy.resourceweights", weights, partition.positions)
    yield from _types_of_limits(partition.limits)
    yield from _types_of_queue(partition.root)


def _types_of_queue(queue: QueueConfig) -> Iterator[tuple[str, Position]]:
    """Yield the types of a queue and all below it."""
    yield from _placed("guaranteed", queue.guaranteed_texts, queue.positions)
    yield from _placed("max", queue.max_texts, queue.positions)
    yield from _placed("lend", queue.lend_texts, queue.positions)
    template = queue.child_template
    if template is not None:
        yield from _placed("guaranteed", template.guaranteed, template.positions)
        yield from _placed("max", template.max, template.positions)
        yield from _placed("lend", template.lend, template.positions)
    yield from _types_of_limits(queue.limits)
    for child in queue.queues:
        yield from _types_of_queue(child)


def _types_of_limits(limits: Iterable[LimitConfig]) -> Iterator[tuple[str, Position]]:
    for limit in limits:
        for key, texts in limit.resource_texts.items():
            yield from _placed(key, texts, limit.positions)


def _placed(
    prefix: str, names: Collection[str], positions: Mapping[str, Position]
) -> Iterator[tuple[str, Position]]:
    for name in names:
        position = positions.get(f"{prefix}.{name}")
        if position is not None:
            yield name, position


_POINTS: Final = {
    APPLICATION_SORT_POLICY: PolicyPoint.APPLICATION_ORDER,
    QUEUE_SORT_POLICY: PolicyPoint.QUEUE_ORDER,
    RUNTIME_EXPECTED: PolicyPoint.RUN_TIME,
    BACKFILL_ORDER: PolicyPoint.BACKFILL_ORDER,
    BACKFILL_PROMISES: PolicyPoint.PROMISES,
}
"""The properties of queues that name policies."""
GivenPoints = Mapping[str, Collection[PolicyPoint]]
"""The policies that the program has given, by name, with the points at which each decides."""


def policies_are_given(partition: PartitionConfig, points: GivenPoints) -> Iterator[RuleFinding]:
    """Refuse each policy that the program has not given, or that does not decide there."""
    for key, word, point in (
        ("nodesortpolicy.type", partition.node_sort_policy.type, PolicyPoint.NODE_ORDER),
        ("preemption.victims", partition.preemption.victims, PolicyPoint.VICTIM_ORDER),
    ):
        if is_policy_word(word):
            yield from _finding(word, point, partition.positions[key], points)
    named = partition.policies
    for key, names, point in (
        ("admission", named.admission, PolicyPoint.ADMISSION),
        ("filters", named.filters, PolicyPoint.FILTER),
        ("protection", named.protection, PolicyPoint.PROTECTION),
    ):
        for index, name in enumerate(names):
            yield from _finding(name, point, partition.positions[f"policies.{key}[{index}]"], points)
    yield from _of_queues(partition.root, points)


def _of_queues(queue: QueueConfig, points: GivenPoints) -> Iterator[RuleFinding]:
    template = queue.child_template
    for holder in (queue,) if template is None else (queue, template):
        for name, point in _POINTS.items():
            word = holder.properties.get(name, "")
            if is_policy_word(word):
                position = holder.positions.get(f"properties.{name}", holder.position)
                yield from _finding(word, point, position, points)
    for child in queue.queues:
        yield from _of_queues(child, points)


def _finding(word: str, point: PolicyPoint, position: Position, points: GivenPoints) -> Iterator[RuleFinding]:
    refusal = refused_name(word, point, points)
    if refusal is not None:
        name = word.removeprefix(POLICY_PREFIX)
        yield RuleFinding(position, f"{refusal}{'' if name in points else did_you_mean(name, tuple(points))}")


def refused_name(word: str, point: PolicyPoint, points: Mapping[str, Collection[PolicyPoint]]) -> str | None:
    """Return why a configuration may not name a policy at a point, `None` if it may.

    Args:
        word: The word in the configuration, with the prefix.
        point: The point that the word is configured for.
        points: The policies that the program has given, and at which points each decides.
    """
    name = word.removeprefix(POLICY_PREFIX)
    if name not in points:
        known = ", ".join(sorted(points)) or "none"
        return f"no policy {name!r:.100} was given to the scheduler; given: {known}"
    if point not in points[name]:
        has = ", ".join(sorted(each.value for each in points[name]))
        return f"the policy {name!r} has no method {point.value}; it has: {has}"
    return None
