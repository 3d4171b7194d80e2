"""Task groups: what is read, what is refused with which reason, and what is still missing."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.kubernetes.decoded import pod_of

from licorne.proxy.kubernetes.mapping.gangs import (
    DeclaredTaskGroup,
    RefusedTaskGroups,
    SchedulingPolicy,
    missing_placeholders,
    placeholder_ask,
    scheduling_policy,
    task_groups,
)
from licorne.proxy.kubernetes.mapping.settings import KubernetesSettings
from licorne.proxy.kubernetes.objects import Pod

D: Final = "yunikorn.apache.org/"
SETTINGS: Final = KubernetesSettings()


def group(name: str = "g", count: object = 2, **resource: object) -> dict[str, Any]:
    """Return a task group as an annotation has it."""
    return {"name": name, "minMember": count, "minResource": resource or {"cpu": "1"}}


def declaring(*groups: dict[str, Any]) -> Pod:
    """Return a pod that declares task groups."""
    return pod_of(annotations={f"{D}task-groups": json.dumps(groups)})


def read(*groups: dict[str, Any]) -> tuple[DeclaredTaskGroup, ...]:
    """Return the task groups that a pod declares, which are in order."""
    found = task_groups(declaring(*groups), SETTINGS)
    assert not isinstance(found, RefusedTaskGroups), found
    return found


def test_a_task_group_is_read_whole() -> None:
    """Where its pods may run is kept as it is, for the API server to check."""
    fields = {
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "k", "operator": "Exists", "tolerationSeconds": 5}],
        "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
        "topologySpreadConstraints": [{"maxSkew": 1}],
    }
    declared = {**group(cpu="500m", memory="1Gi"), "labels": {"l": "1"}, "annotations": {"a": "2"}, "more": 1}

    assert (
        DeclaredTaskGroup(
            name="g",
            min_member=2,
            requests={"cpu": "500m", "memory": "1Gi"},
            resource={"vcore": 500, "memory": 1 << 30, "pods": 1},
            labels={"l": "1"},
            annotations={"a": "2"},
            pod_fields=fields,
        ),
    ) == read({**declared, **fields})


def test_a_quantity_may_be_a_number() -> None:
    """It is kept as it stands, so that no digit is lost."""
    (only,) = read(group(memory=12345678901234567, cpu=0.1))

    assert ({"memory": "12345678901234567", "cpu": "0.1"}, 100) == (only.requests, only.resource["vcore"])


@pytest.mark.parametrize("text", ["", "null", "[]"])
def test_a_pod_without_task_groups_declares_none(text: str) -> None:
    """An empty list is no fault."""
    assert task_groups(pod_of(annotations={f"{D}task-groups": text}), SETTINGS) == ()
    assert task_groups(pod_of(), SETTINGS) == ()


def test_gangs_can_be_disabled() -> None:
    """Then a declaration is not even read."""
    pod = pod_of(annotations={f"{D}task-groups": "nonsense"})

    assert task_groups(pod, KubernetesSettings(gangs_disabled=True)) == ()


REFUSED: Final = {
    "what is no JSON": ("two of them", "cannot be read: JSON is malformed"),
    "what is no list": ('{"name": "g"}', "cannot be read: Expected `array | null`, got `object`"),
    "endless nesting": ('[{"affinity": {"x":' + "[" * 100_000, "cannot be read"),
    "a name that is missing": ('[{"minMember": 1, "minResource": {}}]', "a task group has no name"),
    "a name that is empty": (json.dumps([group("")]), "a task group has no name"),
    "a name that is a number": ('[{"name": 1}]', "Expected `str | null`, got `int`"),
    "a size that is missing": ('[{"name": "g", "minMember": 1}]', "task group 'g' has no minResource"),
    "a number of members that is missing": ('[{"name": "g", "minResource": {}}]', "'g': minMember is 0"),
    "no member": (json.dumps([group(count=0)]), "'g': minMember is 0"),
    "a negative number of members": (json.dumps([group(count=-1)]), "'g': minMember is -1"),
    "more members than there are numbers": (json.dumps([group(count=2**31)]), "'g': minMember is 2147483648"),
    "half a member": (json.dumps([group(count=1.5)]), "Expected `int`, got `float`"),
    "a quantity that is none": (
        json.dumps([group(cpu="many")]),
        "'g': minResource: 'many' is not a quantity",
    ),
    "a quantity that is null": (json.dumps([group(cpu=None)]), "'g': minResource: 'null' is not a quantity"),
    "a negative quantity": (json.dumps([group(cpu="-1")]), "'g': minResource: vcore is negative"),
    "two names of cores": (json.dumps([group(cpu="1", vcore="1")]), "cpu and vcore mean one resource"),
    "pods, which are counted anyway": (json.dumps([group(pods="1")]), "pods is counted anyway"),
    "a group that is larger than any number": (
        json.dumps([group(count=2, memory="5E")]),
        "need more memory than 2^63-1",
    ),
    "cores that are too many in thousandths": (json.dumps([group(count=1, cpu="10P")]), "need more vcore"),
    "groups that together are larger than any number": (
        json.dumps([group("a", 1, memory="5E"), group("b", 1, memory="5E")]),
        "need more memory than 2^63-1",
    ),
    "two groups of one name": (json.dumps([group(), group()]), "2 task groups are named 'g'"),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_task_groups_are_refused_with_a_reason(case: tuple[str, str]) -> None:
    """All of them, if one has a fault."""
    text, reason = case

    refused = task_groups(pod_of(annotations={f"{D}task-groups": text}), SETTINGS)

    assert isinstance(refused, RefusedTaskGroups)
    assert reason in refused.reason


def test_a_gang_asks_for_all_its_placeholders() -> None:
    """Each group as often as it has members, and a pod for each."""
    groups = read(group("a", 3, cpu="500m", memory="1"), group("b", 2, cpu="1", **{"nvidia.com/gpu": "1"}))

    total = {name: quantity.value for name, quantity in placeholder_ask(groups).resources.items()}

    assert {"vcore": 3500, "memory": 3, "nvidia.com/gpu": 2, "pods": 5} == total


def test_the_largest_gang_is_accepted() -> None:
    """Up to the last number that a message holds."""
    total = placeholder_ask(read(group(count=1, memory=str(2**63 - 1)))).resources["memory"].value

    assert 2**63 - 1 == total


POLICIES: Final = {
    "both are read": (
        "placeholderTimeoutInSeconds=30 gangSchedulingStyle=Hard",
        SchedulingPolicy(30, "Hard"),
    ),
    "nothing is soft, without a time": ("", SchedulingPolicy(0, "Soft")),
    "soft is soft": ("gangSchedulingStyle=Soft", SchedulingPolicy(0, "Soft")),
    "another style is soft": ("gangSchedulingStyle=hard", SchedulingPolicy(0, "Soft")),
    "a time that is no number is none": ("placeholderTimeoutInSeconds=30s", SchedulingPolicy(0, "Soft")),
    "a negative time is none": ("placeholderTimeoutInSeconds=-5", SchedulingPolicy(0, "Soft")),
    "a time beyond centuries is none": (
        "placeholderTimeoutInSeconds=9999999999999",
        SchedulingPolicy(0, "Soft"),
    ),
    "other keys are ignored": ("color=red gangSchedulingStyle=Hard", SchedulingPolicy(0, "Hard")),
    "what is no pair is ignored": (
        "gangSchedulingStyle placeholderTimeoutInSeconds=5",
        SchedulingPolicy(5, "Soft"),
    ),
    "a pair of three is ignored": ("gangSchedulingStyle=Hard=Soft", SchedulingPolicy(0, "Soft")),
    "a second blank changes nothing": ("color=red  gangSchedulingStyle=Hard", SchedulingPolicy(0, "Hard")),
}


@pytest.mark.parametrize("case", POLICIES.values(), ids=POLICIES)
def test_a_pod_says_how_its_gang_waits(case: tuple[str, SchedulingPolicy]) -> None:
    """By pairs with a blank between them."""
    text, expected = case

    assert expected == scheduling_policy(pod_of(annotations={f"{D}schedulingPolicyParameters": text}))


def test_a_pod_without_a_policy_waits_softly() -> None:
    """For as long as the scheduler says."""
    assert SchedulingPolicy(0, "Soft") == scheduling_policy(pod_of())


@given(
    st.dictionaries(st.sampled_from("abc"), st.integers(1, 5), min_size=1),
    st.lists(st.sampled_from(["a", "b", "c", "other", ""])),
)
def test_only_placeholders_that_are_missing_are_made(members: dict[str, int], existing: list[str]) -> None:
    """So that a restart makes none twice; with them each group is complete."""
    groups = read(*(group(name, count) for name, count in members.items()))
    there = [pod_of(annotations={f"{D}task-group-name": name} if name else {}) for name in existing]

    missing = {group.name: count for group, count in missing_placeholders(groups, there)}

    assert all(count > 0 for count in missing.values())
    complete = {name: max(count, existing.count(name)) for name, count in members.items()}
    assert complete == {name: existing.count(name) + missing.get(name, 0) for name in members}
