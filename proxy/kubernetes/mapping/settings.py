"""The settings of the scheduler of pods, from two objects of the cluster.

The objects are `yunikorn-defaults` and `yunikorn-configs`, of which the second overrides the first key by
key. Besides settings they hold the queue configuration, as `queues.yaml` or compressed as `queues.yaml.gz`.

They are the settings of the scheduler that users migrate from, so that their manifests work unchanged. Names
that the interface of the scheduler defines are in `proxy/si/constants.py`.
"""

from __future__ import annotations

import base64
import gzip
import io
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeVar, final

from ....model.configuration.durations import DurationError, parse_duration_ns
from ....model.configuration.names import flag_of
from ....model.configuration.problems import ConfigurationError
from ....model.configuration.reader import load
from ....model.errors import LicorneError
from ....model.requests.submission_terms import (
    TOPOLOGY_BALANCED_TAG,
    TOPOLOGY_PREFERRED_TAG,
    TOPOLOGY_REQUIRED_TAG,
    TOPOLOGY_SLICE_SIZE_TAG,
    TOPOLOGY_SLICE_TAG,
)
from ....model.values.dependencies import (
    AFTER_FAILED_TAG,
    AFTER_OK_TAG,
    AFTER_TAG,
    ARRAY_LIMIT_TAG,
    ARRAY_TAG,
)
from ..objects import ConfigMap, Pod
from .user_signatures import UserAndGroups, UserSigner

_INT32_MAX: Final = 2**31 - 1
_SECOND_NS: Final = 10**9
_COMPRESSED: Final = ".gz"
_TEXT_BYTES_MAX: Final = 16 << 20
"""The maximum number of bytes of a compressed value after decompression."""
_DOMAIN: Final = "yunikorn.apache.org/"
PARTITION: Final = "default"
"""The partition of all nodes and applications of the cluster."""
DEFAULT_NAMESPACE: Final = "default"
DEFAULT_USER: Final = "nobody"
"""The user of a pod without one."""
# Labels and annotations of pods.
APPLICATION_ID: Final = f"{_DOMAIN}app-id"
LEGACY_APPLICATION_ID: Final = "applicationId"
SPARK_APPLICATION_ID: Final = "spark-app-selector"
UNIQUE_ID_SUFFIX: Final = "-uniqueautogen"
"""The end of an application id that was made before the pod had a uid."""
QUEUE: Final = f"{_DOMAIN}queue"
LEGACY_QUEUE: Final = "queue"
USER_INFO: Final = f"{_DOMAIN}user.info"
TASK_GROUPS: Final = f"{_DOMAIN}task-groups"
TASK_GROUP_NAME: Final = f"{_DOMAIN}task-group-name"
SCHEDULING_POLICY: Final = f"{_DOMAIN}schedulingPolicyParameters"
PLACEHOLDER: Final = f"internal.{_DOMAIN}placeholder"
LEGACY_PLACEHOLDER: Final = f"{_DOMAIN}placeholder"
"""The same flag on placeholders that YuniKorn has created before version 1.6."""
ALLOW_PREEMPTION: Final = f"{_DOMAIN}allow-preemption"
"""An annotation of pods and of priority classes."""
# Annotations of namespaces.
NAMESPACE_QUOTA: Final = f"{_DOMAIN}namespace.quota"
NAMESPACE_GUARANTEED: Final = f"{_DOMAIN}namespace.guaranteed"
TOPOLOGY_TAGS: Final = {
    "licorne.io/topology-required": TOPOLOGY_REQUIRED_TAG,
    "licorne.io/topology-preferred": TOPOLOGY_PREFERRED_TAG,
    "licorne.io/topology-balanced": TOPOLOGY_BALANCED_TAG,
    "licorne.io/topology-slice": TOPOLOGY_SLICE_TAG,
    "licorne.io/topology-slice-size": TOPOLOGY_SLICE_SIZE_TAG,
}
"""The annotations of pods for the domain of their gang, and the tags of its application."""
WAITING_TAGS: Final = {
    "licorne.io/after": AFTER_TAG,
    "licorne.io/after-ok": AFTER_OK_TAG,
    "licorne.io/after-failed": AFTER_FAILED_TAG,
    "licorne.io/array": ARRAY_TAG,
    "licorne.io/array-limit": ARRAY_LIMIT_TAG,
}
"""The annotations of pods for what their application waits for, and its tags."""
NAMESPACE_ENABLED: Final = f"{_DOMAIN}namespace.enableYuniKorn"
"""Whether the pods of the namespace are given to the scheduler when they are created."""
NAMESPACE_GENERATES_ID: Final = f"{_DOMAIN}namespace.generateAppId"
"""Whether such pods get an application id if they have none."""
NAMESPACE_MAX_APPLICATIONS: Final = f"{_DOMAIN}namespace.maxApps"
NAMESPACE_MAX_CPU: Final = f"{_DOMAIN}namespace.max.cpu"
NAMESPACE_MAX_MEMORY: Final = f"{_DOMAIN}namespace.max.memory"
NAMESPACE_PARENT_QUEUE: Final = f"{_DOMAIN}parentqueue"
# Tags of applications.
NAMESPACE_TAG: Final = "namespace"
IMAGE_PULL_SECRETS_TAG: Final = "imagePullSecrets"
APPLICATION_CREATION_TAG: Final = f"{_DOMAIN}creationTime"
PARENT_QUEUE_TAG: Final = "namespace.parentqueue"
CREATE_IF_MISSING_TAG: Final = "licorne/create-if-missing"
# Tags of asks and allocations.
POD_NAMESPACE_TAG: Final = "kubernetes.io/meta/namespace"
POD_NAME_TAG: Final = "kubernetes.io/meta/podName"
LABEL_TAG_PREFIX: Final = "kubernetes.io/label/"
REQUIRED_NODE_TAG: Final = f"{_DOMAIN}requiredNode"
PREDICATE_CLASS_TAG: Final = "licorne/predicate-class"
CORDONED: Final = "licorne/cordoned"
MIRROR: Final = "kubernetes.io/config.mirror"
# Attributes of nodes, as other resource managers name them; the interface has different names.
HOST_NAME_OF_SHIM: Final = "si.io/hostname"
RACK_NAME_OF_SHIM: Final = "si.io/rackname"
DEFAULT_RACK: Final = "/rack-default"
# The two objects that hold the configuration; the second overrides the first.
DEFAULTS_NAME: Final = "yunikorn-defaults"
CONFIGS_NAME: Final = "yunikorn-configs"


class ConfigMapError(LicorneError):
    """A value of the configuration in the cluster cannot be read; the message names object, key and value."""


class UnsignedUsers(StrEnum):
    """The treatment of a pod whose user the webhook has not signed."""

    BELIEVED = "believed"
    """It runs for its named user."""
    NOBODY = "nobody"
    REFUSED = "refused"
    """It waits, with the reason."""


@final
@dataclass(frozen=True, slots=True)
class KubernetesSettings:
    """The behaviour of the scheduler of pods."""

    scheduler_name: str = "yunikorn"
    """The pods with this `spec.schedulerName` are scheduled here."""
    rm_id: str = "mycluster"
    """The id of the resource manager, which names the cluster."""
    policy_group: str = "queues"
    """The name of the queue configuration, without `.yaml`."""
    generate_unique_app_id: bool = False
    """Whether each pod without an application id becomes an application, instead of each namespace."""
    gangs_disabled: bool = False
    hot_reload: bool = True
    """Whether a change of the configuration takes effect without a restart."""
    volume_bind_timeout_ns: int = 600 * _SECOND_NS
    queries_per_second: int = 1000
    """Requests to the API server, on average."""
    query_burst: int = 1000
    """Requests to the API server in an instant."""
    placeholder_image: str = "registry.k8s.io/pause:3.7"
    placeholder_user_id: int | None = None
    """The user of placeholders; `None` leaves it to their image. The same holds for the two groups."""
    placeholder_group_id: int | None = None
    placeholder_fs_group_id: int | None = None
    placeholder_pods: bool = True
    """Whether pods keep the room of a gang, as users expect; otherwise only the scheduler keeps it."""
    evict_preempted: bool = False
    """Whether preempted pods are evicted, which disruption budgets may delay, instead of deleted."""
    instance_type_label: str = "node.kubernetes.io/instance-type"
    """The label of a node with its instance type."""
    topology_labels: tuple[str, ...] = ()
    """The labels of nodes that are sent as attributes: those that the topology and windows name."""
    signer: UserSigner | None = None
    """Tells whether the webhook has written the user of a pod; `None` without a webhook."""
    unsigned_users: UnsignedUsers | None = None
    """The treatment of other pods; `None` if it is not set."""
    bypass_auth: bool = False
    """Whether everybody may choose the user of a pod."""
    separate_users: bool = False
    """Whether pods of one namespace are in one application only if they have the same user."""
    account: UserAndGroups | None = None
    """The user who creates placeholders, if users are separate; `None` if the user is not known."""
    shows_labels: bool = True
    """Whether the tags of asks contain the labels of pods, which readers of the REST interface see."""

    @property
    def unsigned(self) -> UnsignedUsers:
        """The treatment of pods with an unsigned user; without a webhook no user is signed."""
        if self.bypass_auth:
            return UnsignedUsers.BELIEVED
        return self.unsigned_users or (UnsignedUsers.NOBODY if self.signer else UnsignedUsers.BELIEVED)


class ConfigMapsRead(NamedTuple):
    """The contents of the configuration in the cluster."""

    settings: KubernetesSettings
    queue_yaml: str
    """The queue configuration, the empty text for none."""
    extra_config: dict[str, str]
    """Every key that is not a file, for the extra configuration of the scheduler."""


_Parsed = TypeVar("_Parsed")


class ConfigValue(NamedTuple):
    """A value of the configuration in the cluster, and its place."""

    map_name: str
    key: str
    text: str

    def parsed(self, parse: Callable[[str], _Parsed]) -> _Parsed:
        """Return the result of a function that reads the text.

        Raises:
            ConfigMapError: The function raises a `ValueError`, whose message describes the value.
        """
        try:
            return parse(self.text)
        except ValueError as error:
            raise ConfigMapError(
                f"ConfigMap {self.map_name}: {self.key}: {self.text!r} is {error}"
            ) from error


def settings_from_config_maps(
    defaults: ConfigMap | None,
    configs: ConfigMap | None,
    base: KubernetesSettings = KubernetesSettings(),
) -> ConfigMapsRead:
    """Read the configuration in the cluster.

    Args:
        defaults: `yunikorn-defaults`, `None` if it does not exist.
        configs: `yunikorn-configs`, whose values override the defaults.
        base: The settings for keys that both lack, for example the name of the scheduler.

    Raises:
        ConfigMapError: A value cannot be read; then no value may be used.
    """
    values = values_of_config_maps(defaults, configs)
    found: dict[str, Any] = {}
    for key, (field, parse) in _READERS.items():
        if key in values:
            setting = values[key].parsed(parse)
            if field:
                found[field] = setting
    settings = replace(base, **found)
    queue_file = values.get(f"{settings.policy_group}.yaml")
    extra = {key: value.text for key, value in values.items() if not key.endswith(".yaml")}
    queue_yaml = queue_file.text if queue_file else ""
    return ConfigMapsRead(replace(settings, topology_labels=_levels(queue_yaml)), queue_yaml, extra)


def _levels(queue_yaml: str) -> tuple[str, ...]:
    """Return the labels that the topology and windows name; none if the configuration is invalid.

    The user of the configuration reports that.
    """
    try:
        partitions = load(queue_yaml).partitions if queue_yaml else ()
    except ConfigurationError:
        return ()
    return tuple(
        dict.fromkeys(
            label
            for each in partitions
            if each.name == PARTITION
            for label in (*each.topology, *(name for window in each.windows for name in window.attributes))
        )
    )


def values_of_config_maps(defaults: ConfigMap | None, configs: ConfigMap | None) -> dict[str, ConfigValue]:
    """Return the values of both objects by key; the second object has precedence.

    Raises:
        ConfigMapError: A compressed value cannot be decompressed.
    """
    values: dict[str, ConfigValue] = {}
    for name, read in ((DEFAULTS_NAME, defaults), (CONFIGS_NAME, configs)):
        if read is not None:
            values |= {key: ConfigValue(name, key, text) for key, text in _texts(name, read).items()}
    return values


def reloaded(
    running: KubernetesSettings, read: KubernetesSettings
) -> tuple[KubernetesSettings, tuple[str, ...]]:
    """Return the settings after a change while the scheduler runs, and the fields that need a restart.

    Only `hot_reload` changes at once; the other fields keep their values.
    """
    names = (each.name for each in fields(KubernetesSettings))
    changed = tuple(name for name in names if getattr(running, name) != getattr(read, name))
    return (
        replace(running, hot_reload=read.hot_reload),
        tuple(name for name in changed if name != "hot_reload"),
    )


def _texts(name: str, read: ConfigMap) -> dict[str, str]:
    """Return the values of an object by key, compressed ones decompressed and without their suffix."""
    texts = dict(read.data)
    for key, encoded in read.binary_data.items():
        if key.endswith(_COMPRESSED):
            try:
                texts[key.removesuffix(_COMPRESSED)] = _decompressed(encoded)
            except (ValueError, OSError, EOFError, zlib.error) as error:
                raise ConfigMapError(
                    f"ConfigMap {name}: {key}: it cannot be decompressed: {error}"
                ) from error
    return texts


def _decompressed(encoded: str) -> str:
    compressed = io.BytesIO(base64.b64decode(encoded, validate=True))
    with gzip.GzipFile(fileobj=compressed) as file:
        text = file.read(_TEXT_BYTES_MAX + 1)
    if len(text) > _TEXT_BYTES_MAX:
        raise ValueError(f"it has more than {_TEXT_BYTES_MAX} bytes")
    return text.decode()


# ------------------------------------------------------------------------------------------ single values
def _name(text: str) -> str:
    if not text:
        raise ValueError("empty")
    return text


def parsed_flag(text: str) -> bool:
    """Return the value of a word for true or false.

    Raises:
        ValueError: It is another word; the message continues a sentence after "is".
    """
    flag = flag_of(text)
    if flag is None:
        raise ValueError("neither true nor false")
    return flag


def parsed_unsigned(text: str) -> UnsignedUsers | None:
    """Return the treatment of pods whose user is not signed; an empty text leaves it open.

    Raises:
        ValueError: It is another word; the message continues a sentence after "is".
    """
    try:
        return UnsignedUsers(text) if text else None
    except ValueError:
        raise ValueError(f"not one of {', '.join(UnsignedUsers)}") from None


def _count(text: str) -> int:
    """Read a whole number from 0 to 2**31-1."""
    if re.fullmatch(r"\+?[0-9]{1,10}", text) is None or int(text) > _INT32_MAX:
        raise ValueError(f"not a whole number from 0 to {_INT32_MAX}")
    return int(text)


def _id(text: str) -> int | None:
    """Read the id of a user or group; an empty text leaves it open."""
    return _count(text) if text else None


def _duration_ns(text: str) -> int:
    try:
        duration_ns = parse_duration_ns(text)
    except DurationError:
        duration_ns = -1
    if duration_ns < 0:
        raise ValueError("not a duration such as 1m30s or 300ms")
    return duration_ns


_READERS: Final[Mapping[str, tuple[str, Callable[[str], object]]]] = {
    "service.clusterId": ("rm_id", _name),
    "service.policyGroup": ("policy_group", _name),
    "service.volumeBindTimeout": ("volume_bind_timeout_ns", _duration_ns),
    "service.disableGangScheduling": ("gangs_disabled", parsed_flag),
    "service.placeholderPods": ("placeholder_pods", parsed_flag),
    "service.evictPreempted": ("evict_preempted", parsed_flag),
    "service.enableConfigHotRefresh": ("hot_reload", parsed_flag),
    "service.placeholderImage": ("placeholder_image", _name),
    "service.placeholderRunAsUser": ("placeholder_user_id", _id),
    "service.placeholderRunAsGroup": ("placeholder_group_id", _id),
    "service.placeholderFsGroup": ("placeholder_fs_group_id", _id),
    # Pages for users have the second name, programs the first: both are read.
    "service.nodeInstanceTypeNodeLabelKey": ("instance_type_label", _name),
    "service.instanceTypeNodeLabelKey": ("instance_type_label", _name),
    "kubernetes.qps": ("queries_per_second", _count),
    "kubernetes.burst": ("query_burst", _count),
    "admissionController.filtering.generateUniqueAppId": ("generate_unique_app_id", parsed_flag),
    "admissionController.accessControl.unsignedUsers": ("unsigned_users", parsed_unsigned),
    "admissionController.accessControl.bypassAuth": ("bypass_auth", parsed_flag),
    "admissionController.accessControl.separateUsers": ("separate_users", parsed_flag),
    # These keys are checked without effect: nothing here is polled, and no channel can fill.
    "service.schedulingInterval": ("", _duration_ns),
    "service.eventChannelCapacity": ("", _count),
    "service.dispatchTimeout": ("", _duration_ns),
}
"""The field that each key sets, and the reader of its value."""


def is_ours(pod: Pod, settings: KubernetesSettings) -> bool:
    """Return whether a pod names this scheduler; all other pods are foreign, also those that no user made."""
    return pod.spec.scheduler_name == settings.scheduler_name and not is_mirror(pod)


def is_mirror(pod: Pod) -> bool:
    """Return whether a kubelet shows a static pod by this one, which cannot be placed or ended.

    The annotation alone is no proof: with the webhook, the pods of users have the annotation of their user.
    """
    metadata = pod.metadata
    owners = {owner.kind for owner in metadata.owner_references}
    return MIRROR in metadata.annotations and "Node" in owners and USER_INFO not in metadata.annotations


def counts_as_foreign(pod: Pod, settings: KubernetesSettings) -> bool:
    """Return whether a pod of another scheduler uses room on a node: it is assigned, and has not ended."""
    return bool(pod.spec.node_name) and not pod.is_terminal and not is_ours(pod, settings)


def gate_names(pod: Pod) -> tuple[str, ...]:
    """Return the gates that keep a pod from being scheduled; without any it is an ask."""
    return tuple(gate.name for gate in pod.spec.scheduling_gates)


def is_placeholder(pod: Pod) -> bool:
    """Return whether a pod reserves room for a member of a gang."""
    annotations = pod.metadata.annotations
    return annotations.get(PLACEHOLDER, annotations.get(LEGACY_PLACEHOLDER)) == "true"


def task_group_name(pod: Pod, settings: KubernetesSettings) -> str:
    """Return the task group of a pod, the empty text without one or with gangs disabled."""
    return "" if settings.gangs_disabled else pod.metadata.annotations.get(TASK_GROUP_NAME, "")


@lru_cache(maxsize=4096)
def creation_seconds(timestamp: str) -> int:
    """Return a time of Kubernetes in seconds since 1970.

    Raises:
        ValueError: It is not a time in RFC 3339.
    """
    return int(datetime.fromisoformat(timestamp).timestamp())
