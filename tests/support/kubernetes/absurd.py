"""Objects with one field in a form that no scheduler expects, of each kind that is read of a cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from random import Random
from typing import Any, Final

from support.kubernetes.stub_store import Document

from licorne.proxy.kubernetes.group_objects import CoschedulingGroup, JobSet, PodGroup, RayCluster
from licorne.proxy.kubernetes.objects import (
    KubernetesNode,
    Namespace,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PriorityClass,
    StorageClass,
)
from licorne.proxy.kubernetes.storage_objects import CsiDriver, CsiStorageCapacity

_SELECTOR: Final = {
    "matchLabels": {"a": "b"},
    "matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}],
}
_NODES: Final = {
    "nodeSelectorTerms": [
        {
            "matchExpressions": [{"key": "kubernetes.io/os", "operator": "NotIn", "values": ["x"]}],
            "matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["x"]}],
        }
    ]
}
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_TERM: Final = {
    "topologyKey": "zone",
    "labelSelector": _SELECTOR,
    "namespaces": ["red"],
    "namespaceSelector": _SELECTOR,
}
_GROUPS: Final = [
    {
        "name": "g",
        "minMember": 1,
        "minResource": {"cpu": "1"},
        "labels": {"a": "b"},
        "nodeSelector": {"a": "b"},
        "tolerations": [{"key": "k"}],
        "affinity": {"nodeAffinity": {}},
    }
]
_METADATA: Final = {
    "creationTimestamp": "2026-11-28T08:46:11Z",
    "deletionTimestamp": None,
    "labels": {"app": "x"},
    "annotations": {"note": "x"},
    "ownerReferences": [{"apiVersion": "v1", "kind": "Job", "name": "j", "uid": "u", "controller": True}],
}
_CONTAINER: Final = {
    "name": "main",
    "resources": {"requests": {"cpu": "10m", "memory": "1Mi"}},
    "ports": [{"hostPort": 0, "hostIP": "", "protocol": "TCP"}],
    "restartPolicy": None,
    "restartPolicyRules": [{"action": "Restart"}],
    "volumeMounts": [{"name": "v", "bindMountOptions": []}],
}
_STATUS: Final = {
    "name": "main",
    "allocatedResources": {"cpu": "10m"},
    "resources": {"requests": {"cpu": "10m"}},
}
_POD: Final[Document] = {
    "metadata": {
        **_METADATA,
        "labels": {"applicationId": "odd", "queue": "root.low"},
        "annotations": {
            "yunikorn.apache.org/user.info": '{"user": "ada", "groups": ["g"]}',
            "yunikorn.apache.org/task-groups": "",
            "yunikorn.apache.org/task-group-name": "",
            "yunikorn.apache.org/schedulingPolicyParameters": "placeholderTimeoutInSeconds=1",
            "yunikorn.apache.org/allow-preemption": "true",
        },
    },
    "spec": {
        "schedulerName": "licorne",
        "nodeName": "",
        "priority": 0,
        "priorityClassName": "high",
        "preemptionPolicy": "Never",
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "affinity": {
            "nodeAffinity": {
                _REQUIRED: _NODES,
                _PREFERRED: [{"weight": 1, "preference": _NODES["nodeSelectorTerms"][0]}],
            },
            "podAffinity": {_REQUIRED: []},
            "podAntiAffinity": {
                _REQUIRED: [_TERM],
                _PREFERRED: [{"weight": 1, "podAffinityTerm": _TERM}],
            },
        },
        "tolerations": [{"key": "k", "operator": "Equal", "value": "v", "effect": "NoSchedule"}],
        "topologySpreadConstraints": [
            {
                "maxSkew": 1000,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": _SELECTOR,
                "minDomains": 1,
                "nodeAffinityPolicy": "Honor",
                "nodeTaintsPolicy": "Ignore",
                "matchLabelKeys": ["a"],
            }
        ],
        "containers": [_CONTAINER],
        "initContainers": [{**_CONTAINER, "restartPolicy": "Always"}],
        "overhead": {"cpu": "1m"},
        "resources": {"requests": {"cpu": "10m"}},
        "volumes": [
            {"name": "v", "persistentVolumeClaim": {"claimName": "c"}},
            {"name": "e", "ephemeral": {}},
        ],
        "schedulingGates": [],
        "schedulingGroup": {"podGroupName": ""},
        "imagePullSecrets": [{"name": "s"}],
        "resourceClaims": [],
        "hostNetwork": False,
        "hostUsers": True,
    },
    "status": {
        "phase": "Pending",
        "reason": "",
        "conditions": [{"type": "PodResizePending", "status": "True", "reason": "Infeasible", "message": ""}],
        "containerStatuses": [_STATUS],
        "initContainerStatuses": [_STATUS],
        "allocatedResources": {"cpu": "10m"},
        "resources": {"requests": {"cpu": "10m"}},
    },
}
EXAMPLES: Final[dict[type, tuple[str, list[Document]]]] = {
    KubernetesNode: (
        "/api/v1/nodes",
        [
            {
                "metadata": {**_METADATA, "labels": {"node.kubernetes.io/instance-type": "m", "zone": "a"}},
                "spec": {
                    "unschedulable": False,
                    "taints": [{"key": "odd", "effect": "NoSchedule", "value": "v"}],
                },
                "status": {
                    "allocatable": {"cpu": "1m", "memory": "1", "pods": "1"},
                    "conditions": [{"type": "Ready", "status": "True"}],
                    "declaredFeatures": ["GuaranteedQoSPodCPUResize"],
                },
            }
        ],
    ),
    Pod: (
        "/api/v1/namespaces/blue/pods",
        [
            _POD,
            {**_POD, "spec": {**_POD["spec"], "nodeName": "host"}},
            {**_POD, "spec": {**_POD["spec"], "nodeName": "host", "schedulerName": "other"}},
            {
                **_POD,
                "metadata": {
                    **_POD["metadata"],
                    "labels": {"applicationId": "gang"},
                    "annotations": {"yunikorn.apache.org/task-groups": json.dumps(_GROUPS)},
                },
            },
        ],
    ),
    Namespace: (
        "/api/v1/namespaces",
        [
            {
                "metadata": {
                    **_METADATA,
                    "annotations": {
                        "yunikorn.apache.org/namespace.quota": '{"cpu": "1"}',
                        "yunikorn.apache.org/namespace.guaranteed": '{"cpu": "1"}',
                        "yunikorn.apache.org/namespace.maxApps": "1",
                        "yunikorn.apache.org/parentqueue": "root.low",
                    },
                }
            }
        ],
    ),
    PriorityClass: ("/apis/scheduling.k8s.io/v1/priorityclasses", [{"metadata": _METADATA, "value": 5}]),
    CsiDriver: (
        "/apis/storage.k8s.io/v1/csidrivers",
        [{"metadata": _METADATA, "spec": {"storageCapacity": True}}],
    ),
    CsiStorageCapacity: (
        "/apis/storage.k8s.io/v1/namespaces/default/csistoragecapacities",
        [
            {
                "metadata": _METADATA,
                "storageClassName": "fast",
                "nodeTopology": _SELECTOR,
                "capacity": "1Gi",
                "maximumVolumeSize": "1Gi",
            }
        ],
    ),
    StorageClass: (
        "/apis/storage.k8s.io/v1/storageclasses",
        [
            {
                "metadata": _METADATA,
                "provisioner": "p",
                "volumeBindingMode": "WaitForFirstConsumer",
                "allowedTopologies": [{"matchLabelExpressions": [{"key": "zone", "values": ["a"]}]}],
            }
        ],
    ),
    PersistentVolume: (
        "/api/v1/persistentvolumes",
        [{"metadata": _METADATA, "spec": {"nodeAffinity": {"required": _NODES}}}],
    ),
    PersistentVolumeClaim: (
        "/api/v1/namespaces/blue/persistentvolumeclaims",
        [
            {
                "metadata": _METADATA,
                "spec": {"volumeName": "v", "storageClassName": "s", "accessModes": ["ReadWriteOnce"]},
                "status": {"phase": "Bound"},
            }
        ],
    ),
    PodGroup: (
        "/apis/scheduling.k8s.io/v1beta1/namespaces/blue/podgroups",
        [{"metadata": _METADATA, "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}}],
    ),
    CoschedulingGroup: (
        "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/blue/podgroups",
        [{"metadata": _METADATA, "spec": {"minMember": 2}}],
    ),
    JobSet: (
        "/apis/jobset.x-k8s.io/v1alpha2/namespaces/blue/jobsets",
        [
            {
                "metadata": _METADATA,
                "spec": {
                    "replicatedJobs": [
                        {
                            "replicas": 2,
                            "template": {"spec": {"parallelism": 2, "completions": 2}},
                            "dependsOn": [],
                        }
                    ],
                    "startupPolicy": {"startupPolicyOrder": "AnyOrder"},
                },
            }
        ],
    ),
    RayCluster: (
        "/apis/ray.io/v1/namespaces/blue/rayclusters",
        [
            {
                "metadata": {**_METADATA, "labels": {"ray.io/gang-scheduling-enabled": "true"}},
                "spec": {
                    "workerGroupSpecs": [
                        {
                            "replicas": 1,
                            "minReplicas": 1,
                            "maxReplicas": 1,
                            "numOfHosts": 1,
                            "suspend": False,
                        }
                    ]
                },
            }
        ],
    ),
}
"""Where each kind is, and objects that have every field that is read of them."""
_ABSURD: Final[tuple[Any, ...]] = (
    *(None, True, False, 0, -1, 2**31, 2**63, 2**70, 1.5, -0.5, 1e300),
    *(
        "",
        " ",
        "x",
        "-1",
        "1e999",
        "9" * 300,
        "x" * 70_000,
        "\x00",
        "ä\u2028\U0001f984",
        "0001-01-01T00:00:00Z",
    ),
    *("9999-12-31T23:59:59+99:99", "{", "null", "[]", '[{"name": 1}]', "[" * 5_000, "../..", "a,b;c=d"),
    *([], {}, [None], [[]], [{}], [""], {"": None}, {"": ""}, {"x": "y"}, {"x": {"x": {}}}, {"vcore": "1"}),
    *({"cpu": "1", "vcore": "1"}, {"cpu": "-1"}, {"cpu": "1e400"}, {"pods": "9" * 200}, {"x" * 300: "1"}),
)


def absurd_objects(kind: type, random: Random, count: int) -> Iterator[tuple[str, Document]]:
    """Return objects of a kind with one field in an absurd form, and which field that is.

    Args:
        kind: The kind.
        random: Chooses them.
        count: How many; each field comes about as often as any other one.
    """
    examples = EXAMPLES[kind][1]
    paths = [(example, path) for example in examples for path in _paths(example)]
    random.shuffle(paths)
    for number in range(count):
        example, path = paths[number % len(paths)]
        value = random.choice(_ABSURD)
        document = deepcopy(example)
        *way, last = path
        parent: Any = document
        for step in way:
            parent = parent[step]
        parent[last] = deepcopy(value)
        yield f"{kind.__name__}: {path} = {str(value)[:40]!r}", document


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Return the ways to all values within a document, except those that name it."""
    if (path and path[-1] not in {"name", "namespace", "uid"}) or len(path) > 2:
        yield path
    entries = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for step, inner in entries:
        yield from _paths(inner, (*path, step))
