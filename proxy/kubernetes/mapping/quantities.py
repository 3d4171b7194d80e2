"""Quantities of Kubernetes: from their texts to the whole numbers of the scheduler, exactly.

A text such as `500m`, `1.5Gi` or `2e3` becomes a number of billionths, which is the finest step that
Kubernetes knows: sums of billionths are sums of integers. They become thousandths of a core or whole bytes
and pieces at the end, rounded up. What Kubernetes rounds up is rounded away from zero.

The rules are those of the scheduler of Kubernetes: what a node must have free, so that its kubelet accepts
the pod. Sums are made in billionths and rounded up once, at the end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final, TypeAlias

from ....model.resources.quantities import QuantityError, saturate
from ...si import constants
from ..objects import Container, ContainerStatus, KubernetesNode, Pod

Quantities: TypeAlias = Mapping[str, str | float]
"""Quantities as Kubernetes writes them, by resource."""
_KUBERNETES_CPU: Final = "cpu"
_NANO: Final = 10**9
_NANO_OF_MILLI: Final = 10**6
_SUFFIXES: Final = {
    "n": 1,
    "u": 10**3,
    "m": 10**6,
    "": _NANO,
    "k": 10**3 * _NANO,
    "M": 10**6 * _NANO,
    "G": 10**9 * _NANO,
    "T": 10**12 * _NANO,
    "P": 10**15 * _NANO,
    "E": 10**18 * _NANO,
    "Ki": 2**10 * _NANO,
    "Mi": 2**20 * _NANO,
    "Gi": 2**30 * _NANO,
    "Ti": 2**40 * _NANO,
    "Pi": 2**50 * _NANO,
    "Ei": 2**60 * _NANO,
}
"""What each suffix means in billionths."""
_TEXT: Final = re.compile(
    r"([+-]?)(?=\.?[0-9])([0-9]*)(?:\.([0-9]*))?([numkMGTPE]|[KMGTPE]i|[eE]([+-]?[0-9]+)|)"
)
_LENGTH_MAX: Final = 256
"""A quantity that is meant seriously is shorter."""
_EXPONENT_MAX: Final = 2 * _LENGTH_MAX
"""An exponent beyond it leads out of the range, or below a billionth, whatever the digits are."""
PODS: Final = "pods"
"""The resource that counts pods; each needs one."""
_INFEASIBLE: Final = "Infeasible"
_SIDECAR: Final = "Always"
_HUGE_PAGES: Final = "hugepages-"


@lru_cache(maxsize=65536)
def quantity_nano(text: str | float) -> int:
    """Return a quantity in billionths; what is finer is rounded up.

    Its size is not limited to 64 bits: `rounded_up` and `milli_value` see to that.

    Raises:
        QuantityError: The text is no quantity of Kubernetes.
    """
    written = str(text)
    match = _TEXT.fullmatch(written) if len(written) <= _LENGTH_MAX else None
    if match is None:
        raise QuantityError(f"{written[:_LENGTH_MAX]!r} is no quantity, such as 500m, 2 or 1.5Gi")
    sign, whole, fraction, suffix, exponent = match.groups(default="")
    shift = -len(fraction)
    if exponent:
        shift += max(-_EXPONENT_MAX, min(int(exponent), _EXPONENT_MAX))
    digits = int(whole + fraction) * _SUFFIXES["" if exponent else suffix]
    size: int = digits * 10**shift if shift >= 0 else _divided(digits, 10**-shift)
    return -size if sign == "-" else size


def rounded_up(nano: int) -> int:
    """Return billionths as a whole number, at most 2**63-1."""
    return saturate(_divided(nano, _NANO))


def milli_value(nano: int) -> int:
    """Return billionths as thousandths, at most 2**63-1."""
    return saturate(_divided(nano, _NANO_OF_MILLI))


def exact_amounts(nanos: Mapping[str, int]) -> dict[str, int]:
    """Return billionths by resource as amounts of the scheduler, which may exceed 64 bits.

    `cpu` becomes `vcore` in thousandths; the others keep their names, rounded up to whole numbers.

    Raises:
        QuantityError: There are both `cpu` and `vcore`.
    """
    if _KUBERNETES_CPU in nanos and constants.CPU in nanos:
        raise QuantityError("cpu and vcore mean one resource: name one of them")
    return {
        constants.CPU if name == _KUBERNETES_CPU else name: _divided(
            nano, _NANO_OF_MILLI if name == _KUBERNETES_CPU else _NANO
        )
        for name, nano in nanos.items()
    }


def amounts(nanos: Mapping[str, int]) -> dict[str, int]:
    """Return billionths by resource as amounts of the scheduler, each at most 2**63-1.

    Raises:
        QuantityError: There are both `cpu` and `vcore`.
    """
    return {name: saturate(amount) for name, amount in exact_amounts(nanos).items()}


def _divided(number: int, divisor: int) -> int:
    """Divide and round away from zero."""
    return -(-number // divisor) if number >= 0 else number // divisor


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
