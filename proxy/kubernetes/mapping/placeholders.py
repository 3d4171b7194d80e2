"""The pods that keep the places of a gang: the documents that create them.

A placeholder carries all that says which application it belongs to, so that it is recognised after a restart,
and belongs to the first pod of the application, with which Kubernetes deletes it.
"""

from __future__ import annotations

import re
from random import Random
from typing import Final

from ..objects import Pod
from .applications import application_id, queue_name
from .gangs import DeclaredTaskGroup
from .names import (
    APPLICATION_ID,
    DEFAULT_NAMESPACE,
    PLACEHOLDER,
    QUEUE,
    SCHEDULING_POLICY,
    TASK_GROUP_NAME,
    TASK_GROUPS,
)
from .settings import KubernetesSettings

_ALPHABET: Final = "abcdefghijklmnopqrstuvwxyz0123456789"
_RANDOM_LENGTH: Final = 10
_ID_LENGTH_MAX: Final = 28
_GROUP_LENGTH_MAX: Final = 20
_NOT_IN_NAMES: Final = re.compile("[^a-z0-9-]")
_LABEL_VALUE: Final = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")


def placeholder_name(of_application: str, group: str, rng: Random) -> str:
    """Return a new name of a placeholder; characters that a name of a pod may not have become hyphens."""
    parts = (of_application[:_ID_LENGTH_MAX], group[:_GROUP_LENGTH_MAX])
    names = [_NOT_IN_NAMES.sub("-", part.lower()) for part in parts]
    return "-".join(("tg", *names, "".join(rng.choices(_ALPHABET, k=_RANDOM_LENGTH))))


def placeholder_manifest(
    originator: Pod, group: DeclaredTaskGroup, settings: KubernetesSettings, rng: Random
) -> dict[str, object]:
    """Return the JSON document that creates one placeholder.

    Args:
        originator: The first pod of the application, which is no placeholder.
        group: The task group, whose members have the size of the placeholder.
        settings: The image of placeholders, the users that they run as, and the name of the scheduler.
        rng: Where the end of the name comes from.
    """
    spec = originator.spec
    of_application = application_id(originator, settings)
    fields: dict[str, object] = {
        **group.pod_fields,
        "schedulerName": settings.scheduler_name,
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "hostNetwork": False,
        "securityContext": _security(settings),
        "containers": [_container(group, settings)],
    }
    if spec.priority_class_name:
        fields["priorityClassName"] = spec.priority_class_name
    if spec.image_pull_secrets:
        fields["imagePullSecrets"] = [{"name": each.name} for each in spec.image_pull_secrets]
    metadata = _metadata(originator, group, of_application)
    metadata["name"] = placeholder_name(of_application, group.name, rng)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": fields}


def _metadata(originator: Pod, group: DeclaredTaskGroup, of_application: str) -> dict[str, object]:
    """Return the metadata but for the name."""
    own = originator.metadata
    labels = dict(group.labels)
    annotations = {
        **group.annotations,
        PLACEHOLDER: "true",
        TASK_GROUP_NAME: group.name,
        TASK_GROUPS: own.annotations.get(TASK_GROUPS, ""),
        SCHEDULING_POLICY: own.annotations.get(SCHEDULING_POLICY, ""),
    }
    for key, value in ((APPLICATION_ID, of_application), (QUEUE, queue_name(originator))):
        # An annotation may hold any text, and is read next; a label may not, and would prevent the creation.
        fits = _LABEL_VALUE.fullmatch(value) is not None
        labels.pop(key, None)
        (labels if fits else annotations)[key] = value
    owner = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": own.name,
        "uid": own.uid,
        "controller": False,
        "blockOwnerDeletion": True,
    }
    return {
        "namespace": own.namespace or DEFAULT_NAMESPACE,
        "labels": labels,
        "annotations": annotations,
        "ownerReferences": [owner],
    }


def _container(group: DeclaredTaskGroup, settings: KubernetesSettings) -> dict[str, object]:
    return {
        "name": "pause",
        "image": settings.placeholder_image,
        "resources": {"requests": dict(group.requests), "limits": dict(group.requests)},
        "securityContext": {
            "privileged": False,
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }


def _security(settings: KubernetesSettings) -> dict[str, object]:
    """Return what the API server demands of pods under its strictest rules, with the ids that are set."""
    ids = {
        "runAsUser": settings.placeholder_user_id,
        "runAsGroup": settings.placeholder_group_id,
        "fsGroup": settings.placeholder_fs_group_id,
    }
    given = {name: number for name, number in ids.items() if number is not None}
    return {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}, **given}
