"""The application of a pod, and the request that adds the application to the scheduler.

The first pod of an application decides its queue, user, groups, tags and gang; later pods change nothing. So
each function here depends only on the pod, its namespace and the settings.

A placeholder carries the labels and annotations that identify its application, so that it is recognised after
a restart. It belongs to the first pod of the application, with which Kubernetes deletes it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from random import Random
from typing import Final, NamedTuple

import msgspec

from ....model.configuration.policies import GangPlacing
from ....model.requests.submission_terms import GANG_PLACING_TAG
from ....model.resources.quantities import QuantityError
from ...si import constants
from ...si import si_pb2 as si
from ..objects import Namespace, Pod
from ..quantities import amounts, quantity_nano
from .gangs import DeclaredTaskGroup, RefusedTaskGroups, placeholder_ask, scheduling_policy, task_groups
from .pod_groups import group_of
from .settings import (
    APPLICATION_CREATION_TAG,
    APPLICATION_ID,
    CREATE_IF_MISSING_TAG,
    DEFAULT_NAMESPACE,
    DEFAULT_USER,
    IMAGE_PULL_SECRETS_TAG,
    LEGACY_APPLICATION_ID,
    LEGACY_QUEUE,
    NAMESPACE_GUARANTEED,
    NAMESPACE_MAX_APPLICATIONS,
    NAMESPACE_MAX_CPU,
    NAMESPACE_MAX_MEMORY,
    NAMESPACE_PARENT_QUEUE,
    NAMESPACE_QUOTA,
    NAMESPACE_TAG,
    PARENT_QUEUE_TAG,
    PARTITION,
    PLACEHOLDER,
    QUEUE,
    SCHEDULING_POLICY,
    SPARK_APPLICATION_ID,
    TASK_GROUP_NAME,
    TASK_GROUPS,
    TOPOLOGY_TAGS,
    UNIQUE_ID_SUFFIX,
    USER_INFO,
    WAITING_TAGS,
    KubernetesSettings,
    UnsignedUsers,
    creation_seconds,
    is_placeholder,
)
from .user_signatures import (
    SIGNATURE,
    Subject,
    UserAndGroups,
    UserInfoError,
    parsed_user_info,
    subject_of,
)

_TEXTS: Final = msgspec.json.Decoder(dict[str, str])
_ID_LENGTH_MAX: Final = 63
"""The maximum length of a value of a label."""
_NAMESPACE_LENGTH_MAX: Final = 26
_MILLISECONDS: Final = 1000
_ALPHABET: Final = "abcdefghijklmnopqrstuvwxyz0123456789"
_RANDOM_LENGTH: Final = 10
_PLACEHOLDER_LENGTH_MAX: Final = 28
_GROUP_LENGTH_MAX: Final = 20
_NOT_IN_NAMES: Final = re.compile("[^a-z0-9-]")
_LABEL_VALUE: Final = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")


class _Source(NamedTuple):
    """A label or an annotation that may describe a pod."""

    kind: str
    key: str

    def read(self, pod: Pod) -> str:
        metadata = pod.metadata
        return (metadata.labels if self.kind == "label" else metadata.annotations).get(self.key, "")

    def __str__(self) -> str:
        return f"{self.kind} {self.key}"


_ID_SOURCES: Final = (
    _Source("label", APPLICATION_ID),
    _Source("annotation", APPLICATION_ID),
    _Source("label", LEGACY_APPLICATION_ID),
    _Source("label", SPARK_APPLICATION_ID),
)
_QUEUE_SOURCES: Final = (
    _Source("label", QUEUE),
    _Source("annotation", QUEUE),
    _Source("label", LEGACY_QUEUE),
)
"""The first one that is not empty counts."""


def application_id(pod: Pod, settings: KubernetesSettings) -> str:
    """Return the application of a pod: its given id, or a generated one."""
    given = given_id(pod)
    uid = pod.metadata.uid
    if given.endswith(UNIQUE_ID_SUFFIX):
        return f"{given.removesuffix(UNIQUE_ID_SUFFIX)}-{uid}"
    namespace = _namespace_name(pod)
    return given or generated_id(pod, namespace, is_unique=settings.generate_unique_app_id)


def given_id(pod: Pod) -> str:
    """Return the application that a pod names, the empty text for none."""
    return _first(pod, _ID_SOURCES)


def generated_id(pod: Pod, namespace: str, *, is_unique: bool) -> str:
    """Return the application of a pod that does not name one.

    Args:
        pod: The pod; if it does not have a uid yet, a unique id shows that.
        namespace: The namespace of the pod.
        is_unique: Whether each such pod is a separate application, instead of all of a namespace together.
            The pods of a `PodGroup`, JobSet or Ray cluster are one application in any case.
    """
    group = group_of(pod, namespace)
    if group is not None:
        return group.application_id
    if not is_unique:
        return f"yunikorn-{namespace}-autogen"[:_ID_LENGTH_MAX]
    ending = f"-{pod.metadata.uid}" if pod.metadata.uid else UNIQUE_ID_SUFFIX
    return f"{namespace[:_NAMESPACE_LENGTH_MAX]}{ending}"[:_ID_LENGTH_MAX]


def queue_name(pod: Pod) -> str:
    """Return the queue that a pod names; for the empty text the placement rules decide alone."""
    return _first(pod, _QUEUE_SOURCES)


def ignored_sources(pod: Pod) -> tuple[str, ...]:
    """Return a sentence for each label or annotation that another one overrides with a different value."""
    return (*_ignored(pod, "application id", _ID_SOURCES), *_ignored(pod, "queue", _QUEUE_SOURCES))


def user_and_groups(pod: Pod, settings: KubernetesSettings) -> UserAndGroups:
    """Return the user of a pod, and the user's groups.

    The user is `nobody` if the pod does not name a user in a readable way, or is not trusted.
    """
    text = pod.metadata.annotations.get(USER_INFO, "") if _is_believed(pod, settings) else ""
    try:
        user, groups = parsed_user_info(text)
    except UserInfoError:
        user, groups = "", ()
    return UserAndGroups(user or DEFAULT_USER, groups)


def _is_believed(pod: Pod, settings: KubernetesSettings) -> bool:
    if settings.unsigned is UnsignedUsers.BELIEVED:
        return True
    metadata, signer = pod.metadata, settings.signer
    text = metadata.annotations.get(USER_INFO)
    if text is None or signer is None:
        return False
    subject = subject_of("Pod", _namespace_name(pod), metadata)
    return signer.is_signed((subject,), text, metadata.annotations.get(SIGNATURE, ""))


def separate_id(pod: Pod, first: Pod, settings: KubernetesSettings, *, is_gang: bool) -> str:
    """Return what to add to an application id, since the application is of another user; empty if it is not.

    Pods of one namespace may have several users, unless a setting separates them. The exceptions are
    placeholders of a gang that this scheduler has created, and executors, which the account of their driver
    creates.

    Args:
        pod: The pod that names the application.
        first: The first pod of the application.
        settings: Whether users of one namespace are separated.
        is_gang: Whether the application has task groups.
    """
    owner, user = (user_and_groups(each, settings).user for each in (first, pod))
    namespace = _namespace_name(pod)
    if owner == user:
        return ""
    if _namespace_name(first) != namespace:
        return f"-{namespace}"
    account = f"system:serviceaccount:{namespace}:{first.spec.service_account_name or 'default'}"
    is_allowed = user == account or (is_gang and any(_is_own(each, settings) for each in (first, pod)))
    return f"-{user}" if settings.separate_users and not is_allowed else ""


def _is_own(pod: Pod, settings: KubernetesSettings) -> bool:
    """Return whether a pod is a placeholder of this scheduler, and not one that a user has written."""
    own = settings.account
    return is_placeholder(pod) and (own is None or user_and_groups(pod, settings).user == own.user)


def refused_user(pod: Pod, settings: KubernetesSettings) -> str:
    """Return why a pod may not run because of its named user, empty if it may."""
    if settings.unsigned is not UnsignedUsers.REFUSED or _is_believed(pod, settings):
        return ""
    return f"the webhook has not signed the annotation {USER_INFO}: the pod has to be created anew"


def application_tags(pod: Pod, namespace: Namespace | None) -> dict[str, str]:
    """Return the tags of an application.

    Args:
        pod: Its first pod.
        namespace: The namespace of the pod, `None` if it is unknown.
    """
    metadata = pod.metadata
    tags = {
        NAMESPACE_TAG: _namespace_name(pod),
        CREATE_IF_MISSING_TAG: "true",
        TASK_GROUPS: metadata.annotations.get(TASK_GROUPS, ""),
        SCHEDULING_POLICY: metadata.annotations.get(SCHEDULING_POLICY, ""),
    }
    if metadata.creation_timestamp:
        tags[APPLICATION_CREATION_TAG] = str(creation_seconds(metadata.creation_timestamp))
    if pod.spec.image_pull_secrets:
        tags[IMAGE_PULL_SECRETS_TAG] = ",".join(each.name for each in pod.spec.image_pull_secrets)
    if namespace is not None:
        tags |= namespace_tags(namespace).tags
    return tags | waiting_tags(pod)


def waiting_tags(pod: Pod) -> dict[str, str]:
    """Return the tags for what the application of a pod waits for."""
    annotations = pod.metadata.annotations
    return {tag: annotations[name] for name, tag in WAITING_TAGS.items() if name in annotations}


def topology_tags(pod: Pod) -> dict[str, str]:
    """Return the tags for the domain of nodes that the gang of a pod asks for; it is placed whole then."""
    annotations = pod.metadata.annotations
    tags = {tag: annotations[name] for name, tag in TOPOLOGY_TAGS.items() if name in annotations}
    return tags and {**tags, GANG_PLACING_TAG: GangPlacing.WHOLE.value}


def add_application_request(
    pod: Pod, namespace: Namespace | None, settings: KubernetesSettings, identity: str | None = None
) -> si.AddApplicationRequest:
    """Return the entry of a request that adds an application.

    It is accepted without effect if the application exists already.

    Args:
        pod: The first pod of the application.
        namespace: The namespace of the pod, `None` if it is unknown.
        settings: How ids are generated, and whether there are gangs.
        identity: The id of the application, `None` for the one that the pod names.
    """
    user = user_and_groups(pod, settings)
    entry = si.AddApplicationRequest(
        applicationID=application_id(pod, settings) if identity is None else identity,
        queueName=queue_name(pod),
        partitionName=PARTITION,
        ugi=si.UserGroupInformation(user=user.user, groups=user.groups),
        tags=application_tags(pod, namespace),
    )
    groups = task_groups(pod, settings)
    # Without a gang the older interface would take the timeout as the timeout of the application itself.
    if groups and not isinstance(groups, RefusedTaskGroups):
        policy = scheduling_policy(pod)
        entry.placeholderAsk.CopyFrom(placeholder_ask(groups))
        entry.executionTimeoutMilliSeconds = policy.placeholder_timeout_seconds * _MILLISECONDS
        entry.gangSchedulingStyle = policy.style
        entry.tags.update(topology_tags(pod))
    return entry


def application_warnings(
    pod: Pod, namespace: Namespace | None, settings: KubernetesSettings
) -> Mapping[str, tuple[str, ...]]:
    """Return warnings for people about the request, as sentences by the action of an event."""
    groups = task_groups(pod, settings)
    found = {
        "IgnoredSources": ignored_sources(pod),
        "TaskGroupsError": (groups.reason,) if isinstance(groups, RefusedTaskGroups) else (),
        "NamespaceAnnotations": namespace_tags(namespace).warnings if namespace is not None else (),
    }
    return {action: sentences for action, sentences in found.items() if sentences}


def _first(pod: Pod, sources: tuple[_Source, ...]) -> str:
    for source in sources:
        text = source.read(pod)
        if text:
            return text
    return ""


def _ignored(pod: Pod, what: str, sources: tuple[_Source, ...]) -> list[str]:
    given = [(source, text) for source in sources if (text := source.read(pod))]
    if not given:
        return []
    first, counts = given[0]
    return [
        f"{source}: {what} {text!r} is ignored, since {first} says {counts!r}"
        for source, text in given[1:]
        if text != counts
    ]


def _namespace_name(pod: Pod) -> str:
    return pod.metadata.namespace or DEFAULT_NAMESPACE


class NamespaceTags(NamedTuple):
    """The tags of an application from its namespace, and the omitted annotations."""

    tags: dict[str, str]
    warnings: tuple[str, ...]
    """A sentence for each annotation that cannot be read."""


def namespace_tags(namespace: Namespace) -> NamespaceTags:
    """Return the tags for the applications of a namespace, also for the queue that is made for them.

    The annotations hold quantities of Kubernetes as JSON; the tags hold amounts of the scheduler as JSON. An
    unreadable annotation gives a warning instead of a tag, since the pods of the namespace can run without
    it.
    """
    annotations = namespace.metadata.annotations
    tags: dict[str, str] = {}
    warnings: list[str] = []
    quota_tag = constants.APP_TAG_NAMESPACE_RESOURCE_QUOTA
    if annotations.get(NAMESPACE_QUOTA):
        _put_quota(tags, warnings, quota_tag, NAMESPACE_QUOTA, annotations[NAMESPACE_QUOTA])
    else:
        older = {"cpu": NAMESPACE_MAX_CPU, "memory": NAMESPACE_MAX_MEMORY}
        texts = {name: annotations[key] for name, key in older.items() if annotations.get(key)}
        _put_quota(tags, warnings, quota_tag, " and ".join(older.values()), json.dumps(texts))
    if annotations.get(NAMESPACE_GUARANTEED):
        guaranteed_tag = constants.APP_TAG_NAMESPACE_RESOURCE_GUARANTEED
        _put_quota(tags, warnings, guaranteed_tag, NAMESPACE_GUARANTEED, annotations[NAMESPACE_GUARANTEED])
    count = annotations.get(NAMESPACE_MAX_APPLICATIONS, "")
    if re.fullmatch(r"[0-9]{1,19}", count):
        tags[constants.APP_TAG_NAMESPACE_RESOURCE_MAX_APPS] = count
    elif count:
        warnings.append(
            f"annotation {NAMESPACE_MAX_APPLICATIONS} is ignored: {count!r} is not a whole number"
        )
    if annotations.get(NAMESPACE_PARENT_QUEUE):
        tags[PARENT_QUEUE_TAG] = annotations[NAMESPACE_PARENT_QUEUE]
    return NamespaceTags(tags, tuple(warnings))


def _put_quota(tags: dict[str, str], warnings: list[str], tag: str, annotation: str, text: str) -> None:
    """Set a tag from the JSON of an annotation, unless it is zero throughout."""
    try:
        resource = _quota(text)
    except (msgspec.DecodeError, QuantityError) as error:
        warnings.append(f"annotation {annotation} is ignored: {text!r}: {error}")
        return
    if any(resource.values()):
        values = {name: {"value": amount} for name, amount in resource.items()}
        tags[tag] = json.dumps({"resources": values}, separators=(",", ":"))


def _quota(text: str) -> dict[str, int]:
    nanos = {name: quantity_nano(quantity) for name, quantity in _TEXTS.decode(text).items()}
    resource = amounts(nanos)
    for name, amount in resource.items():
        if amount < 0:
            raise QuantityError(f"{name} is negative")
    return resource


def placeholder_name(of_application: str, group: str, rng: Random) -> str:
    """Return a new name for a placeholder; characters that names of pods must not have become hyphens."""
    parts = (of_application[:_PLACEHOLDER_LENGTH_MAX], group[:_GROUP_LENGTH_MAX])
    names = [_NOT_IN_NAMES.sub("-", part.lower()) for part in parts]
    return "-".join(("tg", *names, "".join(rng.choices(_ALPHABET, k=_RANDOM_LENGTH))))


def placeholder_manifest(
    originator: Pod, group: DeclaredTaskGroup, settings: KubernetesSettings, rng: Random
) -> dict[str, object]:
    """Return the JSON document that creates one placeholder.

    Args:
        originator: The first pod of the application, which is not a placeholder.
        group: The task group, whose members have the size of the placeholder.
        settings: The image of placeholders, the users that they run as, and the name of the scheduler.
        rng: The source of the end of the name.
    """
    spec = originator.spec
    of_application = application_id(originator, settings)
    fields: dict[str, object] = {
        **group.pod_fields,
        "schedulerName": settings.scheduler_name,
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "hostNetwork": False,
        "securityContext": _security(settings),
        "containers": [_container(group, settings)],
    }
    if spec.priority_class_name:
        fields["priorityClassName"] = spec.priority_class_name
    if spec.image_pull_secrets:
        fields["imagePullSecrets"] = [{"name": each.name} for each in spec.image_pull_secrets]
    name = placeholder_name(of_application, group.name, rng)
    metadata = _metadata(originator, group, of_application, settings, name)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": fields}


def _metadata(
    originator: Pod, group: DeclaredTaskGroup, of_application: str, settings: KubernetesSettings, name: str
) -> dict[str, object]:
    own = originator.metadata
    namespace = own.namespace or DEFAULT_NAMESPACE
    labels = dict(group.labels)
    annotations = {
        **group.annotations,
        **_account_annotations(namespace, name, settings),
        PLACEHOLDER: "true",
        TASK_GROUP_NAME: group.name,
        TASK_GROUPS: own.annotations.get(TASK_GROUPS, ""),
        SCHEDULING_POLICY: own.annotations.get(SCHEDULING_POLICY, ""),
    }
    for key, value in ((APPLICATION_ID, of_application), (QUEUE, queue_name(originator))):
        # An annotation may hold any text, and is read after the label; a label may not, and would prevent the
        # creation.
        fits = _LABEL_VALUE.fullmatch(value) is not None
        labels.pop(key, None)
        (labels if fits else annotations)[key] = value
    owner = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": own.name,
        "uid": own.uid,
        "controller": False,
        "blockOwnerDeletion": True,
    }
    return {
        "name": name,
        "namespace": namespace,
        "labels": labels,
        "annotations": annotations,
        "ownerReferences": [owner],
    }


def _account_annotations(namespace: str, name: str, settings: KubernetesSettings) -> dict[str, str]:
    """Return the user of this process for a placeholder; empty if the user is not known."""
    if settings.account is None:
        return {}
    text = settings.account.annotation
    if settings.signer is None:
        return {USER_INFO: text}
    return {USER_INFO: text, SIGNATURE: settings.signer.signature(Subject("Pod", namespace, name), text)}


def _container(group: DeclaredTaskGroup, settings: KubernetesSettings) -> dict[str, object]:
    return {
        "name": "pause",
        "image": settings.placeholder_image,
        "resources": {"requests": dict(group.requests), "limits": dict(group.requests)},
        "securityContext": {
            "privileged": False,
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }


def _security(settings: KubernetesSettings) -> dict[str, object]:
    """Return the security context for the strictest rules of the API server, with the ids that are set."""
    ids = {
        "runAsUser": settings.placeholder_user_id,
        "runAsGroup": settings.placeholder_group_id,
        "fsGroup": settings.placeholder_fs_group_id,
    }
    given = {name: number for name, number in ids.items() if number is not None}
    return {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}, **given}
