"""Gangs: the task groups that a pod declares, and their form for the scheduler.

The first pod of an application declares the task groups of all its pods. A faulty declaration gives a reason
for people instead of a gang: the pods run without waiting for each other.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, final

import msgspec

from licorne.proxy.kubernetes.decoding import resolve_structs

from ....model.resources.quantities import INT64_MAX, QuantityError
from ...si import si_pb2 as si
from ..objects import Pod
from ..quantities import PODS, exact_amounts, quantity_nano
from .settings import SCHEDULING_POLICY, TASK_GROUP_NAME, TASK_GROUPS, KubernetesSettings

_INT32_MAX: Final = 2**31 - 1
_TIMEOUT_SECONDS_MAX: Final = INT64_MAX // 10**9
_STYLES: Final = frozenset({"Hard", "Soft"})


@final
@dataclass(frozen=True, slots=True)
class DeclaredTaskGroup:
    """Pods of an application that are to start together."""

    name: str
    min_member: int
    """The number of placeholders."""
    requests: Mapping[str, str]
    """The request of one member, as quantities of Kubernetes."""
    resource: Mapping[str, int]
    """The request in amounts of the scheduler, with `pods: 1`."""
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    pod_fields: Mapping[str, object]
    """The fields of the specification of its pods that restrict where they run, as JSON."""


@final
@dataclass(frozen=True, slots=True)
class RefusedTaskGroups:
    """Task groups that cannot be used: the application runs without a gang."""

    reason: str


@final
@dataclass(frozen=True, slots=True)
class SchedulingPolicy:
    """How a gang waits."""

    placeholder_timeout_seconds: int = 0
    """How long placeholders wait; 0 for the default of the scheduler."""
    style: str = "Soft"
    """`Hard` fails the application after that time, `Soft` runs it without a gang."""


class _GroupRead(msgspec.Struct, frozen=True, rename="camel"):
    """A task group in the notation of the annotation."""

    name: str | None = None
    min_member: int = 0
    min_resource: dict[str, msgspec.Raw] | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    node_selector: dict[str, str] | None = None
    tolerations: list[dict[str, object]] | None = None
    affinity: dict[str, object] | None = None
    topology_spread_constraints: list[dict[str, object]] | None = None


_GROUPS: Final = msgspec.json.Decoder(list[_GroupRead] | None)
_TEXT: Final = msgspec.json.Decoder(str)


class _RefusalError(Exception):
    """The reason why a declaration cannot be used; it does not leave this module."""


def task_groups(pod: Pod, settings: KubernetesSettings) -> tuple[DeclaredTaskGroup, ...] | RefusedTaskGroups:
    """Return the task groups that a pod declares: none without a declaration, or with gangs disabled."""
    text = pod.metadata.annotations.get(TASK_GROUPS, "")
    if not text or settings.gangs_disabled:
        return ()
    try:
        groups = tuple(_group(read) for read in _GROUPS.decode(text) or ())
        _check_together(groups)
    except (msgspec.DecodeError, RecursionError) as error:
        return RefusedTaskGroups(f"the task groups cannot be read: {error}")
    except _RefusalError as refusal:
        return RefusedTaskGroups(str(refusal))
    return groups


def placeholder_ask(groups: Iterable[DeclaredTaskGroup]) -> si.Resource:
    """Return the sum of all placeholders of a gang."""
    total = _sum(groups)
    return si.Resource(resources={name: si.Quantity(value=amount) for name, amount in total.items()})


def scheduling_policy(pod: Pod) -> SchedulingPolicy:
    """Return how the gang of a pod waits; an unreadable policy counts as missing."""
    timeout_seconds, style = 0, "Soft"
    for pair in pod.metadata.annotations.get(SCHEDULING_POLICY, "").split(" "):
        match pair.split("="):
            case ["placeholderTimeoutInSeconds", text]:
                number = int(text) if re.fullmatch(r"\+?[0-9]{1,19}", text) else 0
                timeout_seconds = number if number <= _TIMEOUT_SECONDS_MAX else 0
            case ["gangSchedulingStyle", text]:
                style = text if text in _STYLES else "Soft"
            case _:
                pass
    return SchedulingPolicy(timeout_seconds, style)


def missing_placeholders(
    groups: Iterable[DeclaredTaskGroup], existing: Iterable[Pod]
) -> tuple[tuple[DeclaredTaskGroup, int], ...]:
    """Return the number of missing placeholders of each task group; complete groups are left out.

    Args:
        groups: The task groups of an application.
        existing: Its existing placeholders.
    """
    there = Counter(pod.metadata.annotations.get(TASK_GROUP_NAME, "") for pod in existing)
    lacking = ((group, group.min_member - there[group.name]) for group in groups)
    return tuple((group, count) for group, count in lacking if count > 0)


# ------------------------------------------------------------------------------------ reading and checking


def _group(read: _GroupRead) -> DeclaredTaskGroup:
    """Check one task group and convert it."""
    if not read.name:
        raise _RefusalError("a task group has no name")
    what = f"task group {read.name!r}"
    if read.min_resource is None:
        raise _RefusalError(f"{what} has no minResource")
    if not 0 < read.min_member <= _INT32_MAX:
        raise _RefusalError(f"{what}: minMember is {read.min_member}, not from 1 to {_INT32_MAX}")
    try:
        requests = {name: _quantity_text(raw) for name, raw in read.min_resource.items()}
        resource = exact_amounts({name: quantity_nano(text) for name, text in requests.items()})
    except (QuantityError, msgspec.DecodeError) as error:
        raise _RefusalError(f"{what}: minResource: {error}") from error
    if PODS in resource:
        raise _RefusalError(f"{what}: minResource: {PODS} is counted anyway, and may not be given")
    for name, amount in resource.items():
        if amount < 0:
            raise _RefusalError(f"{what}: minResource: {name} is negative")
    return DeclaredTaskGroup(
        name=read.name,
        min_member=read.min_member,
        requests=requests,
        resource={**resource, PODS: 1},
        labels=read.labels or {},
        annotations=read.annotations or {},
        pod_fields=_pod_fields(read),
    )


def _pod_fields(read: _GroupRead) -> dict[str, object]:
    given = {
        "nodeSelector": read.node_selector,
        "tolerations": read.tolerations,
        "affinity": read.affinity,
        "topologySpreadConstraints": read.topology_spread_constraints,
    }
    return {name: value for name, value in given.items() if value}


def _quantity_text(raw: msgspec.Raw) -> str:
    """Return the text of a quantity, which may be a number in JSON."""
    text = bytes(raw).decode()
    return _TEXT.decode(raw) if text.startswith('"') else text


def _check_together(groups: tuple[DeclaredTaskGroup, ...]) -> None:
    """Check the rules that concern several task groups, or all members of one."""
    names = Counter(group.name for group in groups)
    for name, count in names.items():
        if count > 1:
            raise _RefusalError(f"{count} task groups are named {name!r}")
    for name, amount in _sum(groups).items():
        if amount > INT64_MAX:
            raise _RefusalError(f"all members together need more {name} than 2^63-1")


def _sum(groups: Iterable[DeclaredTaskGroup]) -> dict[str, int]:
    total: dict[str, int] = {}
    for group in groups:
        for name, amount in group.resource.items():
            total[name] = total.get(name, 0) + group.min_member * amount
    return total


resolve_structs(__name__)
