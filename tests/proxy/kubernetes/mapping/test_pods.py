"""What a pod is to the scheduler."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import pytest
from support.kubernetes.decoded import CREATED, CREATED_SECONDS, pod_of

from licorne.proxy.kubernetes.mapping.settings import (
    KubernetesSettings,
    counts_as_foreign,
    creation_seconds,
    gate_names,
    is_ours,
    is_placeholder,
    task_group_name,
)

SETTINGS: Final = KubernetesSettings()
LICORNE: Final = KubernetesSettings(scheduler_name="licorne")


class Row(NamedTuple):
    spec: dict[str, Any]
    settings: KubernetesSettings
    ours: bool
    foreign: bool
    phase: str = "Running"


CASES: Final = {
    "a pod that names us is ours": Row({"schedulerName": "yunikorn"}, SETTINGS, ours=True, foreign=False),
    "our name can be set": Row({"schedulerName": "licorne"}, LICORNE, ours=True, foreign=False),
    "the name is compared exactly": Row({"schedulerName": "YuniKorn"}, SETTINGS, ours=False, foreign=False),
    "our pod on a node is not foreign": Row(
        {"schedulerName": "yunikorn", "nodeName": "n"}, SETTINGS, ours=True, foreign=False
    ),
    "a pod of another on a node is foreign": Row(
        {"schedulerName": "default-scheduler", "nodeName": "n"}, SETTINGS, ours=False, foreign=True
    ),
    "a pod of another without a node does not count": Row(
        {"schedulerName": "default-scheduler"}, SETTINGS, ours=False, foreign=False
    ),
    "a pod of another that has succeeded does not count": Row(
        {"schedulerName": "default-scheduler", "nodeName": "n"},
        SETTINGS,
        ours=False,
        foreign=False,
        phase="Succeeded",
    ),
    "a pod of another that has failed does not count": Row(
        {"schedulerName": "default-scheduler", "nodeName": "n"},
        SETTINGS,
        ours=False,
        foreign=False,
        phase="Failed",
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_pod_is_ours_or_foreign_or_neither(case: Row) -> None:
    """By the name of the scheduler, the node and the phase."""
    pod = pod_of(spec=case.spec, status={"phase": case.phase})

    assert (case.ours, case.foreign) == (is_ours(pod, case.settings), counts_as_foreign(pod, case.settings))


def test_gates_keep_a_pod_from_being_scheduled() -> None:
    """Their names are for an event."""
    gated = pod_of(spec={"schedulingGates": [{"name": "quota"}, {"name": "image"}]})

    assert [("quota", "image"), ()] == [gate_names(gated), gate_names(pod_of())]


def test_a_pod_waits_for_the_claims_that_it_names() -> None:
    """A claim that is made for the pod has the names of the pod and of the volume."""
    volumes = [
        {"name": "data", "persistentVolumeClaim": {"claimName": "shared"}},
        {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}},
        {"name": "settings", "configMap": {"name": "any"}},
    ]

    assert ("shared", "pod-1-scratch") == pod_of(spec={"volumes": volumes}).claim_names


@pytest.mark.parametrize(("value", "expected"), [("true", True), ("false", False), ("True", False)])
@pytest.mark.parametrize("domain", ["internal.yunikorn.apache.org", "yunikorn.apache.org"])
def test_an_annotation_makes_a_placeholder(domain: str, value: str, *, expected: bool) -> None:
    """Its value is `true` exactly; YuniKorn before 1.6 writes it under another name."""
    pod = pod_of(annotations={f"{domain}/placeholder": value})

    assert expected is is_placeholder(pod)


def test_a_pod_names_its_task_group() -> None:
    """With gangs disabled nobody asks."""
    pod = pod_of(annotations={"yunikorn.apache.org/task-group-name": "executors"})
    disabled = KubernetesSettings(gangs_disabled=True)

    assert ["executors", "", ""] == [
        task_group_name(pod, SETTINGS),
        task_group_name(pod, disabled),
        task_group_name(pod_of(), SETTINGS),
    ]


def test_times_are_seconds_since_1970() -> None:
    """As the tags of the scheduler have them."""
    assert int(CREATED_SECONDS) == creation_seconds(CREATED)
