"""The objects of Kubernetes that make their pods a gang, with only the fields that a scheduler reads."""

from __future__ import annotations

import msgspec

from .decoding import resolve_structs
from .objects import ObjectMeta


class _GroupPart(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False, kw_only=True):
    """The common base of these structs."""


class GangPolicy(_GroupPart, frozen=True):
    """The policy of a group whose pods start together."""

    min_count: int = 0


class GroupPolicy(_GroupPart, frozen=True):
    """The policy of a group; without `gang` its pods start one by one."""

    gang: GangPolicy | None = None


class PodGroupSpec(_GroupPart, frozen=True):
    """The specification of a group of kube-scheduler."""

    scheduling_policy: GroupPolicy = GroupPolicy()


class PodGroup(_GroupPart, frozen=True):
    """A group of kube-scheduler, which pods name in their specification."""

    metadata: ObjectMeta
    spec: PodGroupSpec = PodGroupSpec()


class CoschedulingGroupSpec(_GroupPart, frozen=True):
    """The specification of a group of the plugin for co-scheduling."""

    min_member: int = 0


class CoschedulingGroup(_GroupPart, frozen=True):
    """A `PodGroup` of the plugin for co-scheduling, which pods name in a label."""

    metadata: ObjectMeta
    spec: CoschedulingGroupSpec = CoschedulingGroupSpec()


class JobSpec(_GroupPart, frozen=True):
    """The specification of a Job."""

    parallelism: int = 1
    completions: int | None = None
    """`None`: until one pod has succeeded."""

    @property
    def pod_count(self) -> int:
        """How many pods run at a time at first."""
        return self.parallelism if self.completions is None else min(self.parallelism, self.completions)


class JobTemplate(_GroupPart, frozen=True):
    """The template of a Job."""

    spec: JobSpec = JobSpec()


class ReplicatedJob(_GroupPart, frozen=True):
    """Equal Jobs of a JobSet."""

    replicas: int = 1
    template: JobTemplate = JobTemplate()
    depends_on: tuple[msgspec.Raw, ...] = ()
    """The Jobs that have to run before these are created."""


class StartupPolicy(_GroupPart, frozen=True):
    """When the Jobs of a JobSet are created."""

    startup_policy_order: str = "AnyOrder"
    """`AnyOrder`, or `InOrder`: each one when those before it run."""


class JobSetSpec(_GroupPart, frozen=True):
    """The specification of a JobSet."""

    replicated_jobs: tuple[ReplicatedJob, ...] = ()
    startup_policy: StartupPolicy = StartupPolicy()


class JobSet(_GroupPart, frozen=True):
    """Jobs that work together."""

    metadata: ObjectMeta
    spec: JobSetSpec = JobSetSpec()


class WorkerGroup(_GroupPart, frozen=True):
    """Equal workers of a Ray cluster."""

    replicas: int = 0
    min_replicas: int = 0
    max_replicas: int = 2**31 - 1
    num_of_hosts: int = 1
    """The number of pods of each replica."""
    suspend: bool = False

    @property
    def pod_count(self) -> int:
        """How many pods are requested."""
        replicas = min(max(self.replicas, self.min_replicas), self.max_replicas)
        return 0 if self.suspend else replicas * self.num_of_hosts


class RayClusterSpec(_GroupPart, frozen=True):
    """The specification of a Ray cluster."""

    worker_group_specs: tuple[WorkerGroup, ...] = ()


class RayCluster(_GroupPart, frozen=True):
    """A Ray cluster: a head and workers."""

    metadata: ObjectMeta
    spec: RayClusterSpec = RayClusterSpec()


resolve_structs(__name__)
