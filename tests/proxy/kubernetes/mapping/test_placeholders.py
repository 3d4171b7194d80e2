"""The documents that create placeholders, and that a placeholder is recognised by what they put on it."""

from __future__ import annotations

import json
import re
from random import Random
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.kubernetes.decoded import pod_of

from licorne.proxy.kubernetes.mapping.applications import (
    add_application_request,
    application_id,
    placeholder_manifest,
    placeholder_name,
    queue_name,
    user_and_groups,
)
from licorne.proxy.kubernetes.mapping.asks import ask
from licorne.proxy.kubernetes.mapping.gangs import DeclaredTaskGroup, missing_placeholders, task_groups
from licorne.proxy.kubernetes.mapping.settings import KubernetesSettings
from licorne.proxy.kubernetes.mapping.user_signatures import UserAndGroups, UserSigner
from licorne.proxy.kubernetes.objects import Pod

D: Final = "yunikorn.apache.org/"
SETTINGS: Final = KubernetesSettings()
GROUPS: Final = json.dumps(
    [
        {
            "name": "executors",
            "minMember": 2,
            "minResource": {"cpu": "500m", "memory": "1Gi"},
            "labels": {"team": "a", f"{D}app-id": "of another"},
            "annotations": {"note": "b", f"{D}task-group-name": "of another"},
            "nodeSelector": {"disk": "ssd"},
            "tolerations": [{"key": "k", "operator": "Exists"}],
        }
    ]
)
POLICY: Final = "placeholderTimeoutInSeconds=30"
GANG: Final = {f"{D}task-groups": GROUPS, f"{D}schedulingPolicyParameters": POLICY}


def a_source(seed: int) -> Random:
    """Return a random source that is the same each time."""
    return Random(seed)  # noqa: S311 - names of tests keep no secret


def first_pod(**metadata: Any) -> Pod:
    """Return the first pod of an application with a gang."""
    labels = {"labels": {"applicationId": "app-1", "queue": "root.a"}}
    spec = {"priorityClassName": "high", "imagePullSecrets": [{"name": "secret"}]}
    return pod_of(**{**labels, "annotations": GANG, "spec": spec, **metadata})


def the_group(pod: Pod) -> DeclaredTaskGroup:
    """Return the one task group of a pod."""
    groups = task_groups(pod, SETTINGS)
    assert isinstance(groups, tuple)
    (group,) = groups
    return group


def manifest(pod: Pod, settings: KubernetesSettings = SETTINGS) -> Any:
    """Return the document of a placeholder of a pod's group, by a random source of its own."""
    return placeholder_manifest(pod, the_group(pod), settings, a_source(7))


def created(pod: Pod) -> Pod:
    """Return a placeholder as it is found after a restart."""
    document = manifest(pod)
    document["metadata"]["uid"] = "uid-2"
    return msgspec.json.decode(json.dumps(document), type=Pod)


def test_a_placeholder_says_to_whom_it_belongs() -> None:
    """Its own marks count, whatever its task group says; Kubernetes deletes it with the first pod."""
    metadata = manifest(first_pod())["metadata"]

    assert re.fullmatch("tg-app-1-executors-[a-z0-9]{10}", metadata.pop("name"))
    assert {
        "namespace": "team",
        "labels": {"team": "a", f"{D}app-id": "app-1", f"{D}queue": "root.a"},
        "annotations": {
            "note": "b",
            "internal.yunikorn.apache.org/placeholder": "true",
            f"{D}task-group-name": "executors",
            **GANG,
        },
        "ownerReferences": [
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": "pod-1",
                "uid": "uid-1",
                "controller": False,
                "blockOwnerDeletion": True,
            }
        ],
    } == metadata


def test_a_placeholder_needs_what_a_member_needs() -> None:
    """On the same nodes, with the same priority, and with no rights at all."""
    size = {"cpu": "500m", "memory": "1Gi"}
    assert {
        "schedulerName": "yunikorn",
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "hostNetwork": False,
        "priorityClassName": "high",
        "imagePullSecrets": [{"name": "secret"}],
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "k", "operator": "Exists"}],
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [
            {
                "name": "pause",
                "image": "registry.k8s.io/pause:3.7",
                "resources": {"requests": size, "limits": size},
                "securityContext": {
                    "privileged": False,
                    "allowPrivilegeEscalation": False,
                    "readOnlyRootFilesystem": True,
                    "capabilities": {"drop": ["ALL"]},
                },
            }
        ],
    } == manifest(first_pod())["spec"]


def test_the_settings_choose_image_and_users_of_placeholders() -> None:
    """And the scheduler that is to place them."""
    settings = KubernetesSettings(
        scheduler_name="licorne",
        placeholder_image="registry.local/pause:1",
        placeholder_user_id=1000,
        placeholder_group_id=3000,
        placeholder_fs_group_id=0,
    )
    spec = manifest(first_pod(), settings)["spec"]

    assert ("licorne", "registry.local/pause:1") == (spec["schedulerName"], spec["containers"][0]["image"])
    assert {"runAsUser": 1000, "runAsGroup": 3000, "fsGroup": 0}.items() <= spec["securityContext"].items()


@pytest.mark.parametrize("signer", [None, UserSigner(b"k" * 32)], ids=["unsigned", "signed"])
def test_a_placeholder_names_the_user_who_creates_it(signer: UserSigner | None) -> None:
    """The user is believed also if no webhook answered when it was created."""
    account = UserAndGroups("system:serviceaccount:licorne:licorne", ("staff",))
    settings = KubernetesSettings(account=account, signer=signer)
    pod = msgspec.convert(manifest(first_pod(), settings), Pod)

    assert account == user_and_groups(pod, settings)


def test_a_placeholder_of_a_plain_pod_names_nothing_more() -> None:
    """No priority class, no secrets; its queue is the empty text, as its first pod has none."""
    document = manifest(pod_of(annotations=GANG, namespace=""))

    assert {"priorityClassName", "imagePullSecrets"}.isdisjoint(document["spec"])
    assert ("default", "") == (document["metadata"]["namespace"], document["metadata"]["labels"][f"{D}queue"])


@pytest.mark.parametrize(
    "metadata",
    [
        {},
        {"labels": {}},
        {"labels": {"applicationId": "team-uniqueautogen"}},
        {"labels": {"applicationId": "App_1.x"}},
        {
            "labels": {},
            "annotations": {**GANG, f"{D}app-id": "an id / of any text", f"{D}queue": "root.käse"},
        },
        {"labels": {}, "annotations": {**GANG, f"{D}app-id": "a" * 64}},
    ],
    ids=[
        "named",
        "generated",
        "of an admission controller",
        "upper case",
        "no label",
        "too long for a label",
    ],
)
def test_a_placeholder_is_recognised_after_a_restart(metadata: dict[str, Any]) -> None:
    """It belongs to the same application and queue, and to the same gang."""
    pod = first_pod(**metadata)
    placeholder = created(pod)

    assert (application_id(pod, SETTINGS), queue_name(pod)) == (
        application_id(placeholder, SETTINGS),
        queue_name(placeholder),
    )
    assert task_groups(pod, SETTINGS) == task_groups(placeholder, SETTINGS)
    assert [1] == [count for _, count in missing_placeholders([the_group(pod)], [placeholder])]


def test_a_placeholder_is_an_ask_of_its_gang() -> None:
    """As large as its task group says, so that all of them are the ask of the application."""
    pod = first_pod()
    placeholder = created(pod)
    message = ask(placeholder, application_id(placeholder, SETTINGS), {}, SETTINGS, originator=True)
    total = add_application_request(placeholder, None, SETTINGS).placeholderAsk

    assert (True, False, "executors") == (message.placeholder, message.originator, message.taskGroupName)
    assert {name: 2 * each.value for name, each in message.resourcePerAlloc.resources.items()} == {
        name: each.value for name, each in total.resources.items()
    }


def test_names_of_placeholders_follow_from_their_random_source() -> None:
    """Two of one gang differ; the same source gives the same names."""
    one, same = a_source(1), a_source(1)
    names = [placeholder_name("app", "g", one) for _ in range(3)]

    assert (3, names) == (len(set(names)), [placeholder_name("app", "g", same) for _ in range(3)])


@given(st.text(), st.text(), st.integers())
def test_the_name_of_a_placeholder_is_one_that_a_pod_may_have(
    of_application: str, group: str, seed: int
) -> None:
    """Whatever the application and the task group are called."""
    name = placeholder_name(of_application, group, a_source(seed))

    assert re.fullmatch("[a-z0-9]([-a-z0-9]*[a-z0-9])?", name)
    assert len(name) <= 63
