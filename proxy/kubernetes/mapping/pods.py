"""What a pod is to the scheduler, by its fields alone, so that it is the same after a restart."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache

from ..objects import Pod
from .names import PLACEHOLDER, TASK_GROUP_NAME
from .settings import KubernetesSettings


def is_ours(pod: Pod, settings: KubernetesSettings) -> bool:
    """Return whether a pod names this scheduler; the others are foreign."""
    return pod.spec.scheduler_name == settings.scheduler_name


def counts_as_foreign(pod: Pod, settings: KubernetesSettings) -> bool:
    """Return whether a pod of another scheduler uses room on a node: assigned, and not ended."""
    return bool(pod.spec.node_name) and not pod.is_terminal and not is_ours(pod, settings)


def gate_names(pod: Pod) -> tuple[str, ...]:
    """Return the gates that keep a pod from being scheduled; without any it is an ask."""
    return tuple(gate.name for gate in pod.spec.scheduling_gates)


def is_placeholder(pod: Pod) -> bool:
    """Return whether a pod keeps the place of a member of a gang."""
    return pod.metadata.annotations.get(PLACEHOLDER) == "true"


def task_group_name(pod: Pod, settings: KubernetesSettings) -> str:
    """Return the task group of a pod, the empty text without one or with gangs disabled."""
    return "" if settings.gangs_disabled else pod.metadata.annotations.get(TASK_GROUP_NAME, "")


@lru_cache(maxsize=4096)
def creation_seconds(timestamp: str) -> int:
    """Return a time of Kubernetes in seconds since 1970.

    Raises:
        ValueError: It is no time in RFC 3339.
    """
    return int(datetime.fromisoformat(timestamp).timestamp())
