"""The needs of a pod on its node, also while it is resized in place.

The rules are those of the scheduler of Kubernetes 1.37 (`component-helpers`, `resource.PodRequests` with the
features that are on by default): the room that a node must have free for its kubelet to accept the pod. The
need is the largest of three sums over the containers: the requests, the promises of the kubelet and the
resources that it has applied. A request that the node can never fulfil does not count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from ..objects import Container, ContainerStatus, Pod
from ..quantities import PODS, Quantities, amounts, quantity_nano

_INFEASIBLE: Final = "Infeasible"
_PENDING_RESIZE: Final = "PodResizePending"
_SIDECAR: Final = "Always"
_HUGE_PAGES: Final = "hugepages-"
_SizeOf = Callable[[Container], Quantities | None]


def pod_resource(pod: Pod) -> dict[str, int]:
    """Return the needs of a pod: `vcore` in thousandths, bytes and pieces of others, and `pods: 1`.

    Raises:
        QuantityError: A quantity of the pod cannot be read.
    """
    spec, status = pod.spec, pod.status
    is_infeasible = _is_infeasible(pod)
    needs = _of_containers(pod, is_infeasible=is_infeasible)
    of_pod = {} if spec.resources is None else spec.resources.requests
    if any(map(_is_of_pods, of_pod)):
        if status.resources is None:
            effective = _nanos(of_pod)
        else:
            promised = (status.resources.requests, status.allocated_resources)
            effective = _most(({} if is_infeasible else of_pod), *promised)
        needs |= {name: nano for name, nano in effective.items() if _is_of_pods(name)}
    if spec.overhead:
        _add(needs, _nanos(spec.overhead))
    resource = amounts(needs)
    resource[PODS] = 1
    return resource


def _is_of_pods(name: str) -> bool:
    """Return whether a pod as a whole may request a resource."""
    return name in {"cpu", "memory"} or name.startswith(_HUGE_PAGES)


def _is_infeasible(pod: Pod) -> bool:
    """Return whether the node cannot fulfil the request of the pod: the first such condition decides."""
    pending = (each.reason for each in pod.status.conditions if each.type == _PENDING_RESIZE)
    return next(pending, "") == _INFEASIBLE


def _of_containers(pod: Pod, *, is_infeasible: bool) -> dict[str, int]:
    """Return the needs of the containers together, in billionths."""
    status = pod.status
    requested = _sum_of(pod, lambda container: container.resources.requests)
    carried_out = None if status.resources is None else status.resources.requests
    if status.allocated_resources is not None and carried_out is not None:
        promised = (_nanos(status.allocated_resources), _nanos(carried_out))
        return _raised({} if is_infeasible else requested, *promised)
    statuses = {
        each.name: each for each in reversed((*status.container_statuses, *status.init_container_statuses))
    }
    if not is_infeasible and not any(map(_has_sizes, statuses.values())):
        return requested

    def allocated(container: Container) -> Quantities | None:
        found = statuses.get(container.name)
        if found is not None and found.allocated_resources is not None:
            return found.allocated_resources
        return None if is_infeasible else container.resources.requests

    def actuated(container: Container) -> Quantities | None:
        found = statuses.get(container.name)
        if found is not None and found.resources is not None and found.resources.requests is not None:
            return found.resources.requests
        return allocated(container)

    return _raised({} if is_infeasible else requested, _sum_of(pod, actuated), _sum_of(pod, allocated))


def _has_sizes(status: ContainerStatus) -> bool:
    return status.allocated_resources is not None or status.resources is not None


def _sum_of(pod: Pod, size_of: _SizeOf) -> dict[str, int]:
    """Return the sum of one size of each container; sidecars run in addition to the containers after them."""
    needs: dict[str, int] = {}
    for container in pod.spec.containers:
        _add(needs, _nanos(size_of(container)))
    if pod.spec.init_containers:
        _add_init_containers(needs, pod.spec.init_containers, size_of)
    return needs


def _add_init_containers(needs: dict[str, int], containers: Iterable[Container], size_of: _SizeOf) -> None:
    """Raise the needs of the containers to those of each step before they start; sidecars keep running."""
    sidecars: dict[str, int] = {}
    highest: dict[str, int] = {}
    for container in containers:
        size = _nanos(size_of(container))
        if container.restart_policy == _SIDECAR:
            _add(sidecars, size)
            _raise_to(highest, sidecars)
        else:
            step = dict(sidecars)
            _add(step, size)
            _raise_to(highest, step)
    _add(needs, sidecars)
    _raise_to(needs, highest)


def _most(*quantities: Quantities | None) -> dict[str, int]:
    return _raised(*map(_nanos, quantities))


def _raised(first: dict[str, int], *others: Mapping[str, int]) -> dict[str, int]:
    """Return the first sizes, raised to each of the others."""
    for other in others:
        _raise_to(first, other)
    return first


def _nanos(quantities: Quantities | None) -> dict[str, int]:
    return {name: quantity_nano(text) for name, text in (quantities or {}).items()}


def _add(total: dict[str, int], more: Mapping[str, int]) -> None:
    for name, nano in more.items():
        total[name] = total.get(name, 0) + nano


def _raise_to(total: dict[str, int], least: Mapping[str, int]) -> None:
    for name, nano in least.items():
        if name not in total or nano > total[name]:
            total[name] = nano
