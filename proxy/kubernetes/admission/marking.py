"""What is added to pods and workloads when they are created, and which writes are denied.

A pod gets the user who creates it, the name of the scheduler, an application and whether it may be preempted.
A workload gets the user in the template of its pods, since a controller creates those. Who names another
user has to be allowed to, in every namespace: a pod can name the scheduler itself where nothing is marked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol, final

import msgspec

from licorne.proxy.kubernetes.objects import resolve_structs

from ..mapping.applications import UserInfoError, generated_id, given_id, parsed_user_info, queue_name
from ..mapping.asks import allows_preemption_of_itself
from ..mapping.settings import (
    ALLOW_PREEMPTION,
    APPLICATION_ID,
    DEFAULT_NAMESPACE,
    LEGACY_APPLICATION_ID,
    LEGACY_QUEUE,
    QUEUE,
    SPARK_APPLICATION_ID,
    USER_INFO,
)
from ..objects import Namespace, ObjectMeta, Pod, PriorityClass
from .reviews import ADMITTED, AdmissionRequest, AdmissionVerdict, added_entries, denied, object_of
from .settings import AdmissionSettings

_POD: Final = "Pod"
_CREATE: Final = "CREATE"
_UPDATE: Final = "UPDATE"
_OWN_APP: Final = "yunikorn"
"""The label `app` of pods that are the scheduler itself, which must not wait for it."""
_TEMPLATE: Final = ("spec", "template")
_TEMPLATES: Final[Mapping[str, tuple[str, ...]]] = {
    "Deployment": _TEMPLATE,
    "DaemonSet": _TEMPLATE,
    "StatefulSet": _TEMPLATE,
    "ReplicaSet": _TEMPLATE,
    "Job": _TEMPLATE,
    "CronJob": ("spec", "jobTemplate", "spec", "template"),
}
"""Where each kind of workload has the template of its pods."""


class ClusterKnowledge(Protocol):
    """What is known of the cluster."""

    def namespace(self, name: str) -> Namespace | None:
        """Return a namespace, `None` if nothing is known about it."""

    def priority_class(self, name: str) -> PriorityClass | None:
        """Return a priority class, `None` if nothing is known about it."""


class _Labelled(msgspec.Struct, frozen=True):
    """The template of pods, or any object of which the metadata alone are read."""

    metadata: ObjectMeta | None = None


@final
class Marking:
    """Judges the writes of pods and workloads.

    Args:
        scheduler_name: What pods are to have as the name of their scheduler.
        settings: The settings that are in force.
        cluster: What is known of the cluster.
    """

    def __init__(self, scheduler_name: str, settings: AdmissionSettings, cluster: ClusterKnowledge) -> None:
        self._scheduler_name = scheduler_name
        self._settings = settings
        self._cluster = cluster

    def verdict(self, request: AdmissionRequest) -> AdmissionVerdict:
        """Return what is to be answered.

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
        namespace = request.namespace or DEFAULT_NAMESPACE
        problem = self._problem_of_user(request, pod.metadata.annotations)
        if problem:
            return denied(problem)
        known = self._cluster.namespace(namespace)
        if pod.metadata.labels.get("app") == _OWN_APP or not self._settings.processes(namespace, known):
            return ADMITTED
        labels: dict[str, str] = {}
        annotations = self._user_annotation(request, pod.metadata.annotations)
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
        """Return the labels that say application and queue, the older names of both included."""
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
        if kind == "ReplicaSet" and self._settings.system_users.match(request.user_info.username):
            return ADMITTED  # A deployment whose replica set differs from its template makes another one.
        path = _TEMPLATES[kind]
        template = object_of(_at(request.object, path), _Labelled)
        metadata = template.metadata or ObjectMeta()
        problem = self._problem_of_user(request, metadata.annotations)
        if problem:
            return denied(problem)
        if not self._is_marked(request.namespace or DEFAULT_NAMESPACE, metadata):
            return ADMITTED
        entries = self._user_annotation(request, metadata.annotations)
        if template.metadata is None and entries:
            pointer = "/" + "/".join((*path, "metadata"))
            return AdmissionVerdict(
                patch=({"op": "add", "path": pointer, "value": {"annotations": entries}},)
            )
        return AdmissionVerdict(
            patch=added_entries((*path, "metadata", "annotations"), metadata.annotations, entries)
        )

    def _updated_workload(self, request: AdmissionRequest) -> AdmissionVerdict:
        """Return that a workload may be changed, but for its user by one who may not name one.

        Otherwise who may edit a Deployment could have its pods run for anybody: controllers are trusted.
        """
        path = _TEMPLATES[request.kind.kind]
        annotations = _annotations(_at(request.object, path))
        if annotations.get(USER_INFO) == _annotations(_at(request.old_object, path)).get(USER_INFO):
            return ADMITTED
        problem = self._problem_of_user(request, annotations)
        return denied(problem) if problem else ADMITTED

    def _is_marked(self, namespace: str, template: ObjectMeta) -> bool:
        """Return whether the pods of a template will be given to the scheduler as an application."""
        known = self._cluster.namespace(namespace)
        if not self._settings.processes(namespace, known):
            return False
        names = (APPLICATION_ID, LEGACY_APPLICATION_ID, SPARK_APPLICATION_ID)
        return any(map(template.labels.get, names)) or self._settings.labels(namespace, known)

    # ------------------------------------------------------------------------------------------------ users

    def _problem_of_user(self, request: AdmissionRequest, annotations: Mapping[str, str]) -> str:
        """Return why the annotation of a user is refused; the empty text if it is not."""
        if USER_INFO not in annotations or self._settings.bypass_auth:
            return ""
        user, groups = request.user_info.username, request.user_info.groups
        if not self._settings.may_name_user(user, groups):
            return f"user {user} with groups [{','.join(groups)}] may not set the annotation {USER_INFO}"
        try:
            parsed_user_info(annotations[USER_INFO])
        except UserInfoError as error:
            return f"the annotation {USER_INFO} cannot be used: {error}"
        return ""

    def _user_annotation(self, request: AdmissionRequest, annotations: Mapping[str, str]) -> dict[str, str]:
        """Return the annotation that says who creates the object, unless it says so already."""
        if USER_INFO in annotations or self._settings.bypass_auth:
            return {}
        user = {"user": request.user_info.username, "groups": request.user_info.groups}
        return {USER_INFO: msgspec.json.encode(user).decode()}


def _updated_pod(request: AdmissionRequest) -> AdmissionVerdict:
    """Return that a pod may be changed, but for the user it runs for."""
    was = _annotations(request.old_object).get(USER_INFO)
    if _annotations(request.object).get(USER_INFO) == was:
        return ADMITTED
    return denied(f"the annotation {USER_INFO} of a pod cannot be changed")


def _annotations(raw: msgspec.Raw) -> Mapping[str, str]:
    metadata = object_of(raw, _Labelled).metadata
    return {} if metadata is None else metadata.annotations


def _at(raw: msgspec.Raw, path: tuple[str, ...]) -> msgspec.Raw:
    """Return what is at the end of a way into an object, an empty object where it ends before."""
    for step in path:
        raw = object_of(raw, dict[str, msgspec.Raw]).get(step, msgspec.Raw(b"{}"))
    return raw


resolve_structs(__name__)
