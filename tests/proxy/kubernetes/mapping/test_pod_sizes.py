"""How much a pod needs, by example and against a simulation of its start; and how much a node has."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import Any, Final, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.kubernetes.decoded import node_of, pod_of
from support.kubernetes.sizes import recorded, sizes_of

from licorne.proxy.kubernetes.mapping.pod_sizes import pod_resource
from licorne.proxy.kubernetes.quantities import node_resource


def container(name: str = "main", restart: str | None = None, **requests: str) -> dict[str, Any]:
    """Return a container that requests something."""
    policy = {} if restart is None else {"restartPolicy": restart}
    return {"name": name, "resources": {"requests": requests}, **policy}


def status(name: str = "main", allocated: str | None = None, actual: str | None = None) -> dict[str, Any]:
    """Return the status of a container that has been given cores."""
    given_to_it = {} if allocated is None else {"allocatedResources": {"cpu": allocated}}
    return {
        "name": name,
        **given_to_it,
        **({} if actual is None else {"resources": {"requests": {"cpu": actual}}}),
    }


INFEASIBLE: Final = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}
DEFERRED: Final = {"type": "PodResizePending", "status": "True", "reason": "Deferred"}


class Row(NamedTuple):
    spec: dict[str, Any]
    expected: dict[str, int]
    status: dict[str, Any] | None = None


CASES: Final = {
    "a pod that requests nothing is one pod": Row({"containers": [{"name": "main"}]}, {"pods": 1}),
    "cores are thousandths, other names stay": Row(
        {
            "containers": [
                container(cpu="1500m", memory="1Gi", **{"nvidia.com/gpu": "2", "hugepages-2Mi": "4Mi"})
            ]
        },
        {"vcore": 1500, "memory": 1 << 30, "nvidia.com/gpu": 2, "hugepages-2Mi": 4 << 20, "pods": 1},
    ),
    "limits do not count": Row(
        {"containers": [{"name": "main", "resources": {"limits": {"cpu": "4"}}}]}, {"pods": 1}
    ),
    "containers are added": Row(
        {"containers": [container(cpu="1"), container("b", cpu="500m", memory="1")]},
        {"vcore": 1500, "memory": 1, "pods": 1},
    ),
    "a sum is rounded up once, at its end": Row(
        {"containers": [container(cpu="500u"), container("b", cpu="500u")]}, {"vcore": 1, "pods": 1}
    ),
    "an init container that needs more than the rest counts": Row(
        {"containers": [container(cpu="1")], "initContainers": [container("i", cpu="3")]},
        {"vcore": 3000, "pods": 1},
    ),
    "init containers run one by one": Row(
        {
            "containers": [container(cpu="1")],
            "initContainers": [container("i", cpu="3"), container("j", cpu="2")],
        },
        {"vcore": 3000, "pods": 1},
    ),
    "a sidecar runs beside the containers": Row(
        {"containers": [container(cpu="1")], "initContainers": [container("s", "Always", cpu="2")]},
        {"vcore": 3000, "pods": 1},
    ),
    "a sidecar runs beside the init containers behind it": Row(
        {
            "containers": [container(cpu="1")],
            "initContainers": [
                container("i", cpu="5"),
                container("s", "Always", cpu="2"),
                container("j", cpu="4"),
            ],
        },
        {"vcore": 6000, "pods": 1},
    ),
    "each resource has its own highest moment": Row(
        {
            "containers": [container(cpu="2", memory="1")],
            "initContainers": [container("i", cpu="1", memory="5")],
        },
        {"vcore": 2000, "memory": 5, "pods": 1},
    ),
    "requests of the pod as a whole replace the sum": Row(
        {"containers": [container(cpu="4", memory="8")], "resources": {"requests": {"cpu": "1"}}},
        {"vcore": 1000, "memory": 8, "pods": 1},
    ),
    "requests of the pod as a whole count for the resources alone that may be given so": Row(
        {
            "containers": [container(**{"nvidia.com/gpu": "1"})],
            "resources": {"requests": {"nvidia.com/gpu": "4", "hugepages-1Gi": "1Gi"}},
        },
        {"nvidia.com/gpu": 1, "hugepages-1Gi": 1 << 30, "pods": 1},
    ),
    "overhead is added last": Row(
        {
            "containers": [container(cpu="4")],
            "resources": {"requests": {"cpu": "1"}},
            "overhead": {"cpu": "250m", "memory": "10"},
        },
        {"vcore": 1250, "memory": 10, "pods": 1},
    ),
    "while a pod grows it has what it will get": Row(
        {"containers": [container(cpu="3")]},
        {"vcore": 3000, "pods": 1},
        {"containerStatuses": [status(allocated="1", actual="1")]},
    ),
    "while a pod shrinks it has what was allocated": Row(
        {"containers": [container(cpu="1")]},
        {"vcore": 2000, "pods": 1},
        {"containerStatuses": [status(allocated="2", actual="1")]},
    ),
    "while a pod shrinks it has what it uses": Row(
        {"containers": [container(cpu="1")]},
        {"vcore": 3000, "pods": 1},
        {"containerStatuses": [status(allocated="1", actual="3")]},
    ),
    "a sidecar is resized as well": Row(
        {"initContainers": [container("s", "Always", cpu="1")]},
        {"vcore": 2000, "pods": 1},
        {"initContainerStatuses": [status("s", allocated="2")]},
    ),
    "a resize that cannot be carried out does not count": Row(
        {"containers": [container(cpu="9")]},
        {"vcore": 3000, "pods": 1},
        {"containerStatuses": [status(allocated="3", actual="1")], "conditions": [INFEASIBLE]},
    ),
    "the first condition of a resize tells": Row(
        {"containers": [container(cpu="9")]},
        {"vcore": 9000, "pods": 1},
        {"containerStatuses": [status(allocated="2")], "conditions": [DEFERRED, INFEASIBLE]},
    ),
    "what containers are given is summed up before it is compared": Row(
        {"containers": [container("a", cpu="1"), container("b", cpu="2")]},
        {"vcore": 3000, "pods": 1},
        {
            "containerStatuses": [
                status("a", allocated="2", actual="2"),
                status("b", allocated="1", actual="1"),
            ]
        },
    ),
    "a pod as a whole that shrinks has what it was given": Row(
        {"containers": [container()], "resources": {"requests": {"cpu": "2"}}},
        {"vcore": 6000, "pods": 1},
        {"resources": {"requests": {"cpu": "6"}}, "allocatedResources": {"cpu": "6"}},
    ),
    "one that cannot grow does not count as grown": Row(
        {"containers": [container()], "resources": {"requests": {"cpu": "9"}}},
        {"vcore": 6000, "pods": 1},
        {
            "resources": {"requests": {"cpu": "6"}},
            "allocatedResources": {"cpu": "5"},
            "conditions": [INFEASIBLE],
        },
    ),
    "what the whole was given replaces what its containers were": Row(
        {"containers": [container(cpu="1")]},
        {"vcore": 2000, "pods": 1},
        {
            "resources": {"requests": {"cpu": "2"}},
            "allocatedResources": {"cpu": "1"},
            "containerStatuses": [status(allocated="7", actual="7")],
        },
    ),
    "a resize that waits counts": Row(
        {"containers": [container(cpu="9")]},
        {"vcore": 9000, "pods": 1},
        {"containerStatuses": [status(allocated="2", actual="1")], "conditions": [DEFERRED]},
    ),
    "an amount beyond 64 bits is the largest there is": Row(
        {"containers": [container(memory="8E"), container("b", memory="8E")]},
        {"memory": 2**63 - 1, "pods": 1},
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_pod_needs(case: Row) -> None:
    """What a node must have free before its kubelet accepts the pod."""
    assert case.expected == pod_resource(pod_of(spec=case.spec, status=case.status))


def test_pods_need_what_kubernetes_counts() -> None:
    """Random ones, for which its own function was asked; `make sizes` asks about 100,000."""
    cases = recorded()

    assert (600, []) == (len(cases), [pod for pod, sizes in cases if sizes != sizes_of(pod)])


REQUESTS: Final = st.dictionaries(
    st.sampled_from(["cpu", "memory", "nvidia.com/gpu"]),
    st.sampled_from(["0", "1", "300u", "1500m", "2", "7", "1Ki"]),
)
INIT_CONTAINERS: Final = st.lists(st.tuples(REQUESTS, st.sampled_from([None, "Always", "Never"])), max_size=5)
EXACT: Final = {"300u": Fraction(3, 10000), "1500m": Fraction(3, 2), "1Ki": Fraction(1024)}


def simulated(
    containers: list[dict[str, str]], init_containers: list[tuple[dict[str, str], str | None]]
) -> Any:
    """Start a pod step by step, and note the most of each resource that is in use at one moment."""
    sidecars: list[dict[str, str]] = []
    moments: list[list[dict[str, str]]] = []
    for requests, restart in init_containers:
        moments.append([*sidecars, requests])
        if restart == "Always":
            sidecars = [*sidecars, requests]
    moments.append([*containers, *sidecars])
    highest: Counter[str] = Counter()
    for running in moments:
        used: Counter[str] = Counter()
        for name, text in (item for requests in running for item in requests.items()):
            used[name] += EXACT.get(text) or Fraction(text)  # type: ignore[assignment]  # a counter of fractions
        highest |= used
    in_thousandths = {"vcore": math.ceil(highest.pop("cpu", 0) * 1000)}
    rounded = {name: math.ceil(amount) for name, amount in highest.items()} | in_thousandths
    return {name: amount for name, amount in rounded.items() if amount} | {"pods": 1}


@given(st.lists(REQUESTS, max_size=4), INIT_CONTAINERS)
def test_a_pod_needs_the_most_that_it_uses_at_one_moment(
    containers: list[dict[str, str]], init_containers: list[tuple[dict[str, str], str | None]]
) -> None:
    """Its start is simulated: each init container in turn, sidecars from theirs on, then all containers."""
    spec = {
        "containers": [container(f"c{index}", **requests) for index, requests in enumerate(containers)],
        "initContainers": [
            container(f"i{index}", restart, **requests)
            for index, (requests, restart) in enumerate(init_containers)
        ],
    }

    needs = pod_resource(pod_of(spec=spec))

    assert simulated(containers, init_containers) == {
        name: amount for name, amount in needs.items() if amount
    }


def test_a_node_has_what_pods_may_use() -> None:
    """Also the number of pods that it takes; nothing is subtracted for its system."""
    node = node_of(allocatable={"cpu": "3920m", "memory": "7Gi", "pods": "110", "nvidia.com/gpu": "1"})

    assert {"vcore": 3920, "memory": 7 << 30, "pods": 110, "nvidia.com/gpu": 1} == node_resource(node)
