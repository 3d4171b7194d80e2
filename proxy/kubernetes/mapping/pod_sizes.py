"""How much a pod needs, and how much a node has, in the amounts of the scheduler.

The rules are those of the scheduler of Kubernetes: what a node must have free, so that its kubelet accepts
the pod. Sums are made in billionths and rounded up once, at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from ..objects import Container, ContainerStatus, KubernetesNode, Pod
from .quantities import Quantities, amounts, quantity_nano

PODS: Final = "pods"
"""The resource that counts pods; each needs one."""
_INFEASIBLE: Final = "Infeasible"
_SIDECAR: Final = "Always"
_HUGE_PAGES: Final = "hugepages-"


def pod_resource(pod: Pod) -> dict[str, int]:
    """Return what a pod needs: `vcore` in thousandths, bytes and pieces of others, and `pods: 1`.

    Raises:
        QuantityError: A quantity of the pod cannot be read.
    """
    spec = pod.spec
    sizes = _Sizes(pod)
    needs: dict[str, int] = {}
    for container in spec.containers:
        _add(needs, sizes.of(container))
    if spec.init_containers:
        _add_init_containers(needs, spec.init_containers, sizes)
    if spec.resources is not None:
        for name, text in spec.resources.requests.items():
            if name in {"cpu", "memory"} or name.startswith(_HUGE_PAGES):
                needs[name] = quantity_nano(text)
    if spec.overhead:
        _add(needs, _nanos(spec.overhead))
    resource = amounts(needs)
    resource[PODS] = 1
    return resource


def node_resource(node: KubernetesNode) -> dict[str, int]:
    """Return what pods may use of a node, in the same units, with the number of pods that it takes.

    Raises:
        QuantityError: A quantity of the node cannot be read.
    """
    return amounts(_nanos(node.status.allocatable))


def _add_init_containers(needs: dict[str, int], containers: Iterable[Container], sizes: _Sizes) -> None:
    """Raise the needs of the containers to those of each step before they start; sidecars keep running."""
    sidecars: dict[str, int] = {}
    highest: dict[str, int] = {}
    for container in containers:
        size = sizes.of(container)
        if container.restart_policy == _SIDECAR:
            _add(sidecars, size)
            _raise_to(highest, sidecars)
        else:
            step = dict(sidecars)
            _add(step, size)
            _raise_to(highest, step)
    _add(needs, sidecars)
    _raise_to(needs, highest)


class _Sizes:
    """The size of each container of a pod, which may differ from its requests while it is resized."""

    def __init__(self, pod: Pod) -> None:
        status = pod.status
        self._statuses: dict[str, ContainerStatus] = {}
        if status.container_statuses or status.init_container_statuses:
            both = (*status.container_statuses, *status.init_container_statuses)
            self._statuses = {each.name: each for each in both}
        self._infeasible = bool(self._statuses) and _resize_is_infeasible(pod)

    def of(self, container: Container) -> Mapping[str, int]:
        """Return the size in billionths: what is requested or what is given, whichever is more.

        A resize that the node cannot carry out does not count: then it is what was given.
        """
        requested = _nanos(container.resources.requests)
        status = self._statuses.get(container.name)
        if status is None:
            return requested
        if self._infeasible and status.resources is not None:
            return _nanos(status.resources.requests)
        _raise_to(requested, _nanos(status.allocated_resources))
        if status.resources is not None:
            _raise_to(requested, _nanos(status.resources.requests))
        return requested


def _resize_is_infeasible(pod: Pod) -> bool:
    if pod.status.resize == _INFEASIBLE:
        return True
    pending = (each for each in pod.status.conditions if each.type == "PodResizePending")
    return any(condition.reason == _INFEASIBLE for condition in pending)


def _nanos(quantities: Quantities) -> dict[str, int]:
    return {name: quantity_nano(text) for name, text in quantities.items()}


def _add(total: dict[str, int], more: Mapping[str, int]) -> None:
    for name, nano in more.items():
        total[name] = total.get(name, 0) + nano


def _raise_to(total: dict[str, int], least: Mapping[str, int]) -> None:
    for name, nano in least.items():
        if nano > total.get(name, -1):
            total[name] = nano
