"""Random clusters, each with one pod to place, in the JSON of Kubernetes.

Labels and values are few, so that selectors match and ports collide. Some node selectors are such that an API
server of today would refuse them, because clusters still hold those that earlier ones accepted.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]
Scene: TypeAlias = dict[str, Any]
"""`pod`, `nodes`, `pods`, `namespaces`, `claims`; a pod of `pods` is on the node of its specification."""

_NAMESPACES = ["blue", "red", "green"]
_UNLISTED = "unlisted"
_NAMESPACE_LABELS = {"team": ["one", "two"], "stage": ["test", "live"]}
_POD_LABELS = {"app": ["web", "db"], "tier": ["front", "back"], "hash": ["1", "2"]}
_CLAIMS = ["c1", "c2"]
_FEATURE = "UserNamespacesHostNetworkSupport"
_HOST, _ZONE, _RACK = "kubernetes.io/hostname", "topology.kubernetes.io/zone", "rack"
_TOPOLOGY_KEYS = [_HOST, _ZONE, _ZONE, _RACK]
_NODE_LABELS = {"disk": ["ssd", "hdd"], "size": ["4", "8", "16", "-3", "large"]}


def random_scene(random: Random) -> Scene:
    """Draw a cluster of three to eight nodes, and a pod."""
    names = [f"n{number}" for number in range(random.randint(3, 8))]
    nodes = [_node(random, name) for name in names]
    busy = random.choice([1, 2, 4, 8])
    pods = [
        _neighbour(random, f"p{number}", name)
        for number, name in enumerate(name for name in names for _ in range(random.randint(0, busy)))
    ]
    return {
        "pod": _pod(random, names),
        "nodes": nodes,
        "pods": pods,
        "namespaces": _namespaces(random),
        "claims": _claims(random),
    }


def with_preferences(random: Random, scene: Scene) -> Scene:
    """Draw what the pod of a scene prefers, and some of the pods on nodes."""
    names = [node["metadata"]["name"] for node in scene["nodes"]]
    pod = scene["pod"]
    if random.random() < 0.6:
        _prefer(pod, "nodeAffinity", [_preferred_nodes(random, names) for _ in range(random.randint(1, 3))])
    for each, share in ((pod, 0.5), *((other, 0.2) for other in scene["pods"])):
        for kind in ("podAffinity", "podAntiAffinity"):
            if random.random() < share:
                _prefer(each, kind, [_preferred_pods(random) for _ in range(random.randint(1, 2))])
    for constraint in pod["spec"].get("topologySpreadConstraints", ()):
        if random.random() < 0.7:
            constraint["whenUnsatisfiable"] = "ScheduleAnyway"
            constraint["maxSkew"] = random.randint(1, 3)
            constraint.pop("minDomains", None)
    return scene


def _prefer(pod: Json, kind: str, terms: list[Json]) -> None:
    affinity = pod["spec"].setdefault("affinity", {}).setdefault(kind, {})
    affinity["preferredDuringSchedulingIgnoredDuringExecution"] = terms


def _preferred_nodes(random: Random, names: list[str]) -> Json:
    term: Json = {}
    if random.random() < 0.9:
        # An API server accepts only values of labels here.
        values = {key: [each for each in drawn if each != "-3"] for key, drawn in _NODE_LABELS.items()}
        term["matchExpressions"] = [_requirement(random, values) for _ in range(random.randint(1, 2))]
    if random.random() < 0.2:
        term["matchFields"] = [{"key": "metadata.name", "operator": "In", "values": [random.choice(names)]}]
    return {"weight": random.choice([1, 1, 5, 30, 100]), "preference": term}


def _preferred_pods(random: Random) -> Json:
    return {"weight": random.choice([1, 3, 50, 100]), "podAffinityTerm": _pod_term(random)}


def _claims(random: Random) -> list[Json]:
    """Draw bound claims of these names for each namespace, since a missing one refuses every node."""
    return [
        {
            "metadata": {"name": name, "namespace": namespace},
            "spec": {
                "accessModes": [random.choice(["ReadWriteOnce", "ReadWriteOncePod"])],
                "volumeName": f"{namespace}-{name}",
            },
            "status": {"phase": "Bound"},
        }
        for namespace in (*_NAMESPACES, _UNLISTED)
        for name in _CLAIMS
    ]


def _volumes(random: Random, share: float) -> Json:
    """Draw the volumes of a pod: claims, and disks that one pod may write."""
    volumes = [_volume(random) for _ in range(random.randint(1, 2)) if random.random() < share]
    return {"volumes": [{"name": f"v{number}", **each} for number, each in enumerate(volumes)]}


def _volume(random: Random) -> Json:
    only_reads = {"readOnly": True} if random.random() < 0.4 else {}
    name = random.choice(["d", "e"])
    return random.choice(
        [
            {"persistentVolumeClaim": {"claimName": random.choice(_CLAIMS)}},
            {"gcePersistentDisk": {"pdName": name, **only_reads}},
            {"awsElasticBlockStore": {"volumeID": name, **only_reads}},
            {"iscsi": {"targetPortal": "p", "iqn": name, "lun": 0, **only_reads}},
            {
                "rbd": {
                    "monitors": random.sample(["a", "b", "c"], random.randint(1, 2)),
                    "pool": random.choice(["p", "p", "q"]),
                    "image": name,
                    **only_reads,
                }
            },
        ]
    )


def _needs_features(random: Random) -> Json:
    """Draw parts of a specification that a node has to declare as a feature."""
    return {"hostNetwork": True, "hostUsers": False} if random.random() < 0.1 else {}


def _namespaces(random: Random) -> list[Json]:
    return [
        {"metadata": {"name": name, "labels": _some(random, _NAMESPACE_LABELS, 0.7)}} for name in _NAMESPACES
    ]


def _some(random: Random, values: dict[str, list[str]], share: float) -> dict[str, str]:
    return {key: random.choice(choices) for key, choices in values.items() if random.random() < share}


def _node(random: Random, name: str) -> Json:
    labels = _some(random, _NODE_LABELS, 0.7)
    for key, value, share in (
        (_HOST, name, 0.95),
        (_ZONE, random.choice(["east", "west", "south"]), 0.9),
        (_RACK, random.choice(["1", "2", ""]), 0.7),
    ):
        if random.random() < share:
            labels[key] = value
    spec: Json = {}
    features = [_FEATURE] if random.random() < 0.5 else []
    if random.random() < 0.1:
        spec["unschedulable"] = True
    taints = [_taint(random) for _ in range(random.choice([0, 0, 0, 0, 1, 2]))]
    if random.random() < 0.05:
        taints.append({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"})
    if taints:
        spec["taints"] = taints
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {"declaredFeatures": features},
    }


def _taint(random: Random) -> Json:
    taint = {
        "key": random.choice(["dedicated", "cost"]),
        "effect": random.choice(["NoSchedule", "NoExecute", "PreferNoSchedule"]),
    }
    if random.random() < 0.7:
        taint["value"] = random.choice(["batch", "5", "07", "007", "12"])
    return taint


def _toleration(random: Random) -> Json:
    toleration: Json = {}
    operator = random.choice(["", "Equal", "Exists", "Exists", "Lt", "Lt", "Gt"])
    if operator:
        toleration["operator"] = operator
    if operator != "Exists" or random.random() < 0.7:
        toleration["key"] = random.choice(["dedicated", "cost", "node.kubernetes.io/unschedulable"])
    if operator in {"Lt", "Gt"}:
        toleration["value"] = random.choice(["5", "8", "8", "-1"])
    elif operator != "Exists" and random.random() < 0.7:
        toleration["value"] = random.choice(["batch", "5"])
    if random.random() < 0.5:
        toleration["effect"] = random.choice(["NoSchedule", "NoExecute"])
    return toleration


def _metadata(random: Random, name: str) -> Json:
    namespace = random.choice(["blue", "blue", "blue", *_NAMESPACES, _UNLISTED])
    return {"name": name, "namespace": namespace, "uid": name, "labels": _some(random, _POD_LABELS, 0.8)}


def _neighbour(random: Random, name: str, node: str) -> Json:
    metadata = _metadata(random, name)
    if random.random() < 0.1:
        metadata["deletionTimestamp"] = "2026-11-28T08:46:11Z"
    spec: Json = {"nodeName": node, **_containers(random, 0.2), **_volumes(random, 0.1)}
    kinds = [
        kind for kind, share in (("podAntiAffinity", 0.15), ("podAffinity", 0.05)) if random.random() < share
    ]
    if kinds:
        spec["affinity"] = {kind: _pod_affinity(random) for kind in kinds}
    return {"metadata": metadata, "spec": spec}


def _pod(random: Random, names: list[str]) -> Json:
    spec: Json = {**_containers(random, 0.3), **_volumes(random, 0.2), **_needs_features(random)}
    if random.random() < 0.04:
        spec["nodeName"] = random.choice([*names, "gone"])
    if random.random() < 0.15:
        spec["nodeSelector"] = _some(random, _NODE_LABELS, 0.4)
    if random.random() < 0.4:
        spec["tolerations"] = [_toleration(random) for _ in range(random.randint(1, 3))]
    affinity: Json = {}
    draws: tuple[tuple[str, Callable[[], Json], float], ...] = (
        ("nodeAffinity", lambda: _node_affinity(random, names), 0.25),
        ("podAffinity", lambda: _pod_affinity(random), 0.3),
        ("podAntiAffinity", lambda: _pod_affinity(random), 0.25),
    )
    for kind, draw, share in draws:
        if random.random() < share:
            affinity[kind] = draw()
    if affinity:
        spec["affinity"] = affinity
    if random.random() < 0.5:
        spec["topologySpreadConstraints"] = _spread_constraints(random)
    return {"metadata": _metadata(random, "asked"), "spec": spec}


def _containers(random: Random, share: float) -> Json:
    spec: Json = {"containers": [{"name": "main"}]}
    if random.random() < share:
        spec["containers"][0]["ports"] = [_port(random) for _ in range(random.randint(1, 2))]
    if random.random() < share / 3:
        before: Json = {"name": "before", "ports": [_port(random)]}
        if random.random() < 0.5:
            before["restartPolicy"] = "Always"
        spec["initContainers"] = [before]
    return spec


def _port(random: Random) -> Json:
    port: Json = {"containerPort": 80}
    if random.random() < 0.85:
        port["hostPort"] = random.choice([80, 443])
    if random.random() < 0.5:
        port["protocol"] = random.choice(["TCP", "UDP"])
    if random.random() < 0.6:
        port["hostIP"] = random.choice(["0.0.0.0", "10.0.0.1", "10.0.0.2"])  # noqa: S104 - as Kubernetes has it
    return port


def _label_selector(random: Random, values: dict[str, list[str]]) -> Json:
    """Draw a selector; one in ten is empty."""
    if random.random() < 0.1:
        return {}
    selector: Json = {}
    if random.random() < 0.7:
        selector["matchLabels"] = _some(random, values, 0.4)
    if random.random() < 0.4:
        selector["matchExpressions"] = [_requirement(random, values) for _ in range(random.randint(1, 2))]
    return selector


def _requirement(random: Random, values: dict[str, list[str]]) -> Json:
    key = random.choice(list(values))
    operator = random.choice(["In", "In", "NotIn", "Exists", "DoesNotExist"])
    requirement: Json = {"key": key, "operator": operator}
    if operator in {"In", "NotIn"}:
        requirement["values"] = random.sample(values[key], random.randint(1, min(2, len(values[key]))))
    return requirement


def _node_affinity(random: Random, names: list[str]) -> Json:
    terms = [_node_term(random, names) for _ in range(random.choice([0, 1, 1, 2, 2, 3]))]
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}


def _node_term(random: Random, names: list[str]) -> Json:
    term: Json = {}
    if random.random() < 0.85:
        term["matchExpressions"] = [_node_requirement(random) for _ in range(random.randint(1, 2))]
    if random.random() < 0.2:
        values = random.sample(names, random.choice([1, 1, 1, 2]))
        operator = random.choice(["In", "In", "NotIn"])
        term["matchFields"] = [{"key": "metadata.name", "operator": operator, "values": values}]
    return term


def _node_requirement(random: Random) -> Json:
    drawn = random.random()
    if drawn < 0.3:
        limit = random.choice(["4", "8", "8", "10", "-4", "+8", "many"])
        return {"key": "size", "operator": random.choice(["Gt", "Lt"]), "values": [limit]}
    requirement = _requirement(random, _NODE_LABELS)
    if drawn > 0.97 and "values" in requirement:
        requirement["values"].append("no label's value")
    elif drawn > 0.95:
        requirement["values"] = random.choice([[], ["a", "b"]])
    elif drawn > 0.94:
        requirement["operator"] = "Near"
    return requirement


def _pod_affinity(random: Random) -> Json:
    terms = [_pod_term(random) for _ in range(random.choice([1, 1, 2]))]
    return {"requiredDuringSchedulingIgnoredDuringExecution": terms}


def _pod_term(random: Random) -> Json:
    term: Json = {"topologyKey": random.choice(_TOPOLOGY_KEYS)}
    if random.random() < 0.95:
        term["labelSelector"] = _label_selector(random, _POD_LABELS)
    if random.random() < 0.2:
        term["namespaces"] = random.sample([*_NAMESPACES, _UNLISTED], random.randint(1, 2))
    if random.random() < 0.25:
        everywhere = random.random() < 0.3
        term["namespaceSelector"] = {} if everywhere else _label_selector(random, _NAMESPACE_LABELS)
    return term


def _spread_constraints(random: Random) -> list[Json]:
    keys = random.sample([_HOST, _ZONE, _RACK], random.choice([1, 1, 2]))
    return [_spread_constraint(random, key) for key in keys]


def _spread_constraint(random: Random, key: str) -> Json:
    constraint: Json = {
        "maxSkew": random.randint(1, 2),
        "topologyKey": key,
        "whenUnsatisfiable": random.choice(["DoNotSchedule"] * 5 + ["ScheduleAnyway"]),
    }
    if random.random() < 0.95:
        constraint["labelSelector"] = _label_selector(random, _POD_LABELS)
    if random.random() < 0.5 and constraint["whenUnsatisfiable"] == "DoNotSchedule":
        constraint["minDomains"] = random.randint(2, 4)
    for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        if random.random() < 0.35:
            constraint[policy] = random.choice(["Honor", "Ignore"])
    if random.random() < 0.25:
        constraint["matchLabelKeys"] = random.sample(["hash", "tier", "absent"], random.randint(1, 2))
    return constraint
