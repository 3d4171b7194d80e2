"""Additions to pods and workloads when they are written, and the writes that are denied.

A pod gets its user, the name of the scheduler, an application and whether it may be preempted. A workload
gets the user in the template of its pods, since a controller creates those. Naming another user needs a
permission in every namespace: where the webhook marks nothing, a pod can still name the scheduler.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol, final

import msgspec

from licorne.proxy.kubernetes.objects import resolve_structs

from ..mapping.applications import generated_id, given_id, queue_name
from ..mapping.asks import allows_preemption_of_itself
from ..mapping.settings import (
    ALLOW_PREEMPTION,
    APPLICATION_ID,
    LEGACY_APPLICATION_ID,
    LEGACY_QUEUE,
    QUEUE,
    SPARK_APPLICATION_ID,
    USER_INFO,
)
from ..mapping.user_signatures import UserSigner
from ..objects import Namespace, ObjectMeta, Pod, PriorityClass
from .reviews import ADMITTED, AdmissionRequest, AdmissionVerdict, added_entries, denied, object_of
from .settings import AdmissionSettings
from .users import ChosenUser, PodUsers, controller_of, kept_user, namespace_of

_POD: Final = "Pod"
_CREATE: Final = "CREATE"
_UPDATE: Final = "UPDATE"
_TEMPLATE: Final = ("spec", "template")
_TEMPLATES: Final[Mapping[str, tuple[str, ...]]] = {
    "Deployment": _TEMPLATE,
    "DaemonSet": _TEMPLATE,
    "StatefulSet": _TEMPLATE,
    "ReplicaSet": _TEMPLATE,
    "Job": _TEMPLATE,
    "CronJob": ("spec", "jobTemplate", "spec", "template"),
    "ReplicationController": _TEMPLATE,
    "PodTemplate": ("template",),
}
"""The path to the template of pods in each kind of workload."""


class ClusterKnowledge(Protocol):
    """Look-ups of objects of the cluster."""

    def namespace(self, name: str) -> Namespace | None:
        """Return a namespace, `None` if it is unknown."""

    def priority_class(self, name: str) -> PriorityClass | None:
        """Return a priority class, `None` if it is unknown."""


class _Labelled(msgspec.Struct, frozen=True):
    """The template of pods, or any object of which only the metadata are read."""

    metadata: ObjectMeta | None = None


@final
class Marking:
    """Decides on the writes of pods and workloads.

    Args:
        scheduler_name: The name of the scheduler for pods.
        settings: The settings in force.
        cluster: The look-ups of the cluster.
        signer: Signs the users of pods.
    """

    def __init__(
        self,
        scheduler_name: str,
        settings: AdmissionSettings,
        cluster: ClusterKnowledge,
        signer: UserSigner,
    ) -> None:
        self._scheduler_name = scheduler_name
        self._settings = settings
        self._cluster = cluster
        self._users = PodUsers(settings, signer)

    def verdict(self, request: AdmissionRequest) -> AdmissionVerdict:
        """Return the verdict on a write.

        Raises:
            UnreadableReviewError: The object cannot be read.
        """
        kind = request.kind.kind
        if kind == _POD and request.operation == _UPDATE:
            return _updated_pod(request)
        if kind in _TEMPLATES and request.operation == _UPDATE:
            return self._updated_workload(request)
        if request.operation != _CREATE:
            return ADMITTED
        if kind == _POD:
            return self._created_pod(request)
        if kind in _TEMPLATES:
            return self._created_workload(request)
        return ADMITTED

    # ------------------------------------------------------------------------------------------------ pods

    def _created_pod(self, request: AdmissionRequest) -> AdmissionVerdict:
        pod = object_of(request.object, Pod)
        namespace = namespace_of(request)
        held = pod.metadata.annotations
        chosen = self._user_of_created(request, pod.metadata, held)
        if chosen.problem:
            return denied(chosen.problem)
        annotations = dict(chosen.annotations)
        known = self._cluster.namespace(namespace)
        if not self._settings.processes(namespace, known):
            path = ("metadata", "annotations")
            return AdmissionVerdict(patch=added_entries(path, held, annotations) if USER_INFO in held else ())
        labels: dict[str, str] = {}
        if self._settings.labels(namespace, known):
            labels = self._labels(pod, namespace)
            annotations |= self._preemption_annotation(pod)
        name = {"op": "add", "path": "/spec/schedulerName", "value": self._scheduler_name}
        return AdmissionVerdict(
            patch=(
                *((name,) if pod.spec.scheduler_name != self._scheduler_name else ()),
                *added_entries(("metadata", "labels"), pod.metadata.labels, labels),
                *added_entries(("metadata", "annotations"), pod.metadata.annotations, annotations),
            )
        )

    def _labels(self, pod: Pod, namespace: str) -> dict[str, str]:
        """Return the labels for application and queue, including their older names."""
        settings = self._settings
        labels: dict[str, str] = {}
        if not given_id(pod):
            unique = settings.generate_unique_app_id
            made = generated_id(namespace, pod.metadata.uid, is_unique=unique)
            labels |= {APPLICATION_ID: made, LEGACY_APPLICATION_ID: made}
        elif pod.metadata.labels.get(APPLICATION_ID):
            labels[LEGACY_APPLICATION_ID] = pod.metadata.labels[APPLICATION_ID]
        if pod.metadata.labels.get(QUEUE):
            labels[LEGACY_QUEUE] = pod.metadata.labels[QUEUE]
        elif settings.default_queue and not queue_name(pod):
            labels |= {QUEUE: settings.default_queue, LEGACY_QUEUE: settings.default_queue}
        return labels

    def _preemption_annotation(self, pod: Pod) -> dict[str, str]:
        name = pod.spec.priority_class_name
        found = self._cluster.priority_class(name) if name else None
        may = allows_preemption_of_itself(pod, {} if found is None else {name: found})
        return {ALLOW_PREEMPTION: "true" if may else "false"}

    # ------------------------------------------------------------------------------------------- workloads

    def _created_workload(self, request: AdmissionRequest) -> AdmissionVerdict:
        kind = request.kind.kind
        whole = metadata_of(request.object)
        # A Deployment creates another replica set if one differs from its template: none is changed.
        is_unchanged = kind == "ReplicaSet" and controller_of(whole) is not None
        if is_unchanged and self._settings.system_users.match(request.user_info.username):
            return ADMITTED
        template = object_of(_at(request.object, _TEMPLATES[kind]), _Labelled).metadata
        held = (template or ObjectMeta()).annotations
        chosen = self._user_of_created(request, whole, held)
        if chosen.problem:
            return denied(chosen.problem)
        if is_unchanged:
            return ADMITTED
        is_marked = self._is_marked(namespace_of(request), template or ObjectMeta())
        return _with_user(kind, template, chosen.annotations if is_marked or USER_INFO in held else {})

    def _updated_workload(self, request: AdmissionRequest) -> AdmissionVerdict:
        """Return the verdict on a changed workload: only permitted users may change its user.

        A removed user is restored. Without a signed user before, the author of a change of the template
        becomes the user. An unchanged template is not touched, since its pods would be recreated; neither is
        the template of a Job, which cannot be changed.
        """
        if self._settings.bypass_auth:
            return ADMITTED
        kind = request.kind.kind
        path = _TEMPLATES[kind]
        template = object_of(_at(request.object, path), _Labelled).metadata
        after, before = (template or ObjectMeta()).annotations, _annotations(_at(request.old_object, path))
        whole = metadata_of(request.object)
        said = after.get(USER_INFO)
        if said in {None, before.get(USER_INFO)}:
            if USER_INFO in before and self._users.is_signed(request, whole, before):
                return _with_user(kind, template, kept_user(before, after))
            is_changed = _at(request.object, path) != _at(request.old_object, path)
            is_of_system = self._settings.system_users.match(request.user_info.username)
            if not is_changed or is_of_system or kind == "Job":
                return ADMITTED
            if not self._is_marked(namespace_of(request), template or ObjectMeta()):
                return ADMITTED
            after = {}
        chosen = self._users.of_named(request, whole, after)
        return denied(chosen.problem) if chosen.problem else _with_user(kind, template, chosen.annotations)

    def _is_marked(self, namespace: str, template: ObjectMeta) -> bool:
        """Return whether the pods of a template will be given to the scheduler as an application."""
        known = self._cluster.namespace(namespace)
        if not self._settings.processes(namespace, known):
            return False
        names = (APPLICATION_ID, LEGACY_APPLICATION_ID, SPARK_APPLICATION_ID)
        return any(map(template.labels.get, names)) or self._settings.labels(namespace, known)

    def _user_of_created(
        self, request: AdmissionRequest, whole: ObjectMeta, annotations: Mapping[str, str]
    ) -> ChosenUser:
        if self._settings.bypass_auth:
            return ChosenUser()
        return self._users.of_created(request, whole, annotations)


def _with_user(kind: str, template: ObjectMeta | None, annotations: Mapping[str, str]) -> AdmissionVerdict:
    """Return an admitting verdict that sets annotations in the template of a workload."""
    path = _TEMPLATES[kind]
    if template is None and annotations:
        pointer = "/" + "/".join((*path, "metadata"))
        return AdmissionVerdict(
            patch=({"op": "add", "path": pointer, "value": {"annotations": annotations}},)
        )
    held = (template or ObjectMeta()).annotations
    return AdmissionVerdict(patch=added_entries((*path, "metadata", "annotations"), held, annotations))


def _updated_pod(request: AdmissionRequest) -> AdmissionVerdict:
    """Return the verdict on a changed pod: its user may not change; a removed user is restored."""
    before, after = _annotations(request.old_object), _annotations(request.object)
    if after.get(USER_INFO, before.get(USER_INFO)) != before.get(USER_INFO):
        return denied(f"the annotation {USER_INFO} of a pod cannot be changed")
    path = ("metadata", "annotations")
    return AdmissionVerdict(patch=added_entries(path, after, kept_user(before, after)))


def metadata_of(raw: msgspec.Raw) -> ObjectMeta:
    """Return the metadata of an object, empty ones if it has none.

    Raises:
        UnreadableReviewError: They cannot be read.
    """
    return object_of(raw, _Labelled).metadata or ObjectMeta()


def _annotations(raw: msgspec.Raw) -> Mapping[str, str]:
    return metadata_of(raw).annotations


def _at(raw: msgspec.Raw, path: tuple[str, ...]) -> msgspec.Raw:
    """Return the value at the end of a path into an object, an empty object if the path ends early."""
    for step in path:
        raw = object_of(raw, dict[str, msgspec.Raw]).get(step, msgspec.Raw(b"{}"))
    return raw


resolve_structs(__name__)
