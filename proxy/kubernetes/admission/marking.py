"""Additions to pods and workloads when they are written, and the writes that are denied.

A pod gets its user, the name of the scheduler, an application and whether it may be preempted. A workload
gets the user in the template of its pods, since a controller creates those. Naming another user needs a
permission in every namespace: where the webhook marks nothing, a pod can still name the scheduler.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol, final

import msgspec

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
    is_mirror,
)
from ..mapping.user_signatures import UserSigner
from ..objects import Namespace, ObjectMeta, Pod, PriorityClass
from .reviews import ADMITTED, AdmissionRequest, AdmissionVerdict, added_entries, denied, object_of
from .settings import AdmissionSettings
from .templates import WORKLOAD_KINDS, Labelled, PodTemplate, templates_of
from .users import ChosenUser, PodUsers, controller_of, kept_user, namespace_of

_POD: Final = "Pod"
_CREATE: Final = "CREATE"
_UPDATE: Final = "UPDATE"
_KUBELET: Final = "system:node:"
"""The beginning of the names of kubelets, which the API server lets create no other pods than mirrors."""


class ClusterKnowledge(Protocol):
    """Look-ups of objects of the cluster."""

    def namespace(self, name: str) -> Namespace | None:
        """Return a namespace, `None` if it is unknown."""

    def priority_class(self, name: str) -> PriorityClass | None:
        """Return a priority class, `None` if it is unknown."""


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
        if kind == _POD and request.operation == _CREATE:
            return self._created_pod(request)
        is_written = request.operation in {_CREATE, _UPDATE}
        return self._workload(request) if is_written and kind in WORKLOAD_KINDS else ADMITTED

    # ------------------------------------------------------------------------------------------------ pods

    def _created_pod(self, request: AdmissionRequest) -> AdmissionVerdict:
        pod = object_of(request.object, Pod)
        if is_mirror(pod) and request.user_info.username.startswith(_KUBELET):
            return ADMITTED
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
            made = generated_id(pod, namespace, is_unique=unique)
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

    def _workload(self, request: AdmissionRequest) -> AdmissionVerdict:
        """Return the verdict on a workload, with the users of all of its templates."""
        kind, is_created = request.kind.kind, request.operation == _CREATE
        whole = metadata_of(request.object)
        before = {} if is_created else templates_of(kind, request.old_object)
        patch: list[Mapping[str, object]] = []
        for key, template in templates_of(kind, request.object).items():
            if is_created:
                chosen = self._user_of_new(request, whole, template)
            else:
                chosen = self._user_of_changed(request, whole, template, before.get(key, PodTemplate()))
            if chosen.problem:
                return denied(chosen.problem)
            patch += template.patch(chosen.annotations)
        return AdmissionVerdict(patch=tuple(patch))

    def _user_of_new(self, request: AdmissionRequest, whole: ObjectMeta, template: PodTemplate) -> ChosenUser:
        # A Deployment creates another replica set if one differs from its template: none is changed.
        is_unchanged = request.kind.kind == "ReplicaSet" and controller_of(whole) is not None
        if is_unchanged and self._settings.system_users.match(request.user_info.username):
            return ChosenUser()
        chosen = self._user_of_created(request, whole, template.annotations)
        if chosen.problem:
            return chosen
        is_named = USER_INFO in template.annotations or self._is_marked(namespace_of(request), template)
        return chosen if is_named and not is_unchanged else ChosenUser()

    def _user_of_changed(
        self, request: AdmissionRequest, whole: ObjectMeta, template: PodTemplate, before: PodTemplate
    ) -> ChosenUser:
        """Return the user of a changed workload, which only permitted users may change.

        A removed user is restored. Without a signed user before, the author of a change of the template
        becomes the user. An unchanged template is not touched, since its pods would be recreated; neither is
        the template of a Job, which cannot be changed.
        """
        if self._settings.bypass_auth:
            return ChosenUser()
        after, held = template.annotations, before.annotations
        said = after.get(USER_INFO)
        if said in {None, held.get(USER_INFO)}:
            if self._users.is_signed(request, whole, held):
                return ChosenUser(kept_user(held, after))
            is_of_system = self._settings.system_users.match(request.user_info.username)
            if template.raw == before.raw or is_of_system or request.kind.kind == "Job":
                return ChosenUser()
            if not self._is_marked(namespace_of(request), template):
                return ChosenUser()
            after = {}
        return self._users.of_named(request, whole, after)

    def _is_marked(self, namespace: str, template: PodTemplate) -> bool:
        """Return whether the pods of a template will be given to the scheduler as an application."""
        known = self._cluster.namespace(namespace)
        if not self._settings.processes(namespace, known):
            return False
        names = (APPLICATION_ID, LEGACY_APPLICATION_ID, SPARK_APPLICATION_ID)
        labels = (template.metadata or ObjectMeta()).labels
        return any(map(labels.get, names)) or self._settings.labels(namespace, known)

    def _user_of_created(
        self, request: AdmissionRequest, whole: ObjectMeta, annotations: Mapping[str, str]
    ) -> ChosenUser:
        if self._settings.bypass_auth:
            return ChosenUser()
        return self._users.of_created(request, whole, annotations)


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
    return object_of(raw, Labelled).metadata or ObjectMeta()


def _annotations(raw: msgspec.Raw) -> Mapping[str, str]:
    return metadata_of(raw).annotations
