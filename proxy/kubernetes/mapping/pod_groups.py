"""Gangs without annotations: pods of an object that contains how many of its pods start together.

The pods of such an object are one application. Its first pods wait until that number of them exists, and are
placed at once; later pods are placed one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final, TypeAlias, final

from ..group_objects import CoschedulingGroup, JobSet, PodGroup, RayCluster
from ..objects import Pod
from .settings import TASK_GROUPS, KubernetesSettings

_ID_LENGTH_MAX: Final = 63
"""The maximum length of a value of a label."""
_HASH_BYTES: Final = 4
_RAY_GANG: Final = "ray.io/gang-scheduling-enabled"
"""The label of a Ray cluster whose pods start together."""

GroupObjects: TypeAlias = Mapping[type, Mapping[str, Any]]
"""The objects of each kind by `namespace/name`; a kind that the API server does not have is missing."""


TemplatePath: TypeAlias = tuple[str, ...]
"""The fields from an object to a template of pods; `*` stands for each element of a list."""


@final
@dataclass(frozen=True, slots=True)
class GroupKind:
    """A kind of objects whose pods may start together."""

    kind: type[Any]
    name: str
    """The name of the kind in Kubernetes."""
    path: str
    """Where the API server lists the objects."""
    prefix: str
    """The beginning of the ids of the applications."""
    object_of: Callable[[Pod], str]
    """Returns the name of the object of a pod, in the namespace of the pod; empty for none."""
    minimum: Callable[[Any], int]
    """Returns how many pods of an object start together; 0 if each may start alone."""
    templates: tuple[TemplatePath, ...] = ()
    """The paths to the templates of its pods."""

    @property
    def api_version(self) -> str:
        """The group and version of the kind."""
        return self.path.removeprefix("/apis/").rpartition("/")[0]


@final
@dataclass(frozen=True, slots=True)
class PodGroupName:
    """The object that a pod belongs to."""

    kind: GroupKind
    namespace: str
    name: str

    @property
    def full_name(self) -> str:
        """Namespace and name, separated by a slash."""
        return f"{self.namespace}/{self.name}"

    @property
    def application_id(self) -> str:
        """The application of its pods, as the value of a label."""
        text = f"{self.kind.prefix}-{self.namespace}-{self.name}"
        if len(text) <= _ID_LENGTH_MAX:
            return text
        ending = blake2b(text.encode(), digest_size=_HASH_BYTES).hexdigest()
        return f"{text[: _ID_LENGTH_MAX - len(ending) - 1]}-{ending}"


def _scheduling_group(pod: Pod) -> str:
    group = pod.spec.scheduling_group
    return "" if group is None else group.pod_group_name


def _labelled(label: str) -> Callable[[Pod], str]:
    return lambda pod: pod.metadata.labels.get(label, "")


def _pods_of_policy(group: PodGroup) -> int:
    gang = group.spec.scheduling_policy.gang
    return 0 if gang is None else gang.min_count


def _pods_of_jobs(jobs: JobSet) -> int:
    """Return the pods of the Jobs that are created first: others are created when these run."""
    first = [job for job in jobs.spec.replicated_jobs if not job.depends_on]
    if jobs.spec.startup_policy.startup_policy_order == "InOrder":
        first = first[:1]
    return sum(job.replicas * job.template.spec.pod_count for job in first)


def _pods_of_ray(cluster: RayCluster) -> int:
    """Return the head and the requested workers, if the cluster has the label."""
    if _RAY_GANG not in cluster.metadata.labels:
        return 0
    return 1 + sum(group.pod_count for group in cluster.spec.worker_group_specs)


GROUP_KINDS: Final = (
    GroupKind(
        PodGroup,
        "PodGroup",
        "/apis/scheduling.k8s.io/v1beta1/podgroups",
        "podgroup",
        _scheduling_group,
        _pods_of_policy,
    ),
    GroupKind(
        CoschedulingGroup,
        "PodGroup",
        "/apis/scheduling.x-k8s.io/v1alpha1/podgroups",
        "coscheduling",
        _labelled("scheduling.x-k8s.io/pod-group"),
        lambda group: group.spec.min_member,
    ),
    GroupKind(
        JobSet,
        "JobSet",
        "/apis/jobset.x-k8s.io/v1alpha2/jobsets",
        "jobset",
        _labelled("jobset.sigs.k8s.io/jobset-name"),
        _pods_of_jobs,
        (("spec", "replicatedJobs", "*", "template", "spec", "template"),),
    ),
    GroupKind(
        RayCluster,
        "RayCluster",
        "/apis/ray.io/v1/rayclusters",
        "raycluster",
        _labelled("ray.io/cluster"),
        _pods_of_ray,
        (("spec", "headGroupSpec", "template"), ("spec", "workerGroupSpecs", "*", "template")),
    ),
)
"""The kinds of groups; a pod of several belongs to the first one."""


def group_of(pod: Pod, namespace: str) -> PodGroupName | None:
    """Return the object that a pod belongs to, `None` for none.

    Args:
        pod: The pod.
        namespace: Its namespace, which a pod under review does not contain.
    """
    for kind in GROUP_KINDS:
        name = kind.object_of(pod)
        if name:
            return PodGroupName(kind, namespace, name)
    return None


def gang_of(pod: Pod, application_id: str, settings: KubernetesSettings) -> PodGroupName | None:
    """Return the object whose pods may start together with a pod, `None` for none.

    A pod that belongs to another application, or that declares task groups, has no such object.
    """
    if settings.gangs_disabled or pod.metadata.annotations.get(TASK_GROUPS):
        return None
    group = group_of(pod, pod.metadata.namespace)
    return group if group is not None and group.application_id == application_id else None


def missing_group(group: PodGroupName | None, objects: GroupObjects) -> str:
    """Return why the pods of a group wait for its object, empty if it exists or its kind does not."""
    if group is None or group.full_name in objects.get(group.kind.kind, {group.full_name: None}):
        return ""
    return f"the pod waits for the {group.kind.name} {group.full_name}, which does not exist"


def gang_size(group: PodGroupName | None, objects: GroupObjects) -> int:
    """Return how many pods of a group start together, 0 if each may start alone."""
    found = None if group is None else objects.get(group.kind.kind, {}).get(group.full_name)
    size = 0 if group is None or found is None else group.kind.minimum(found)
    return size if size > 1 else 0
