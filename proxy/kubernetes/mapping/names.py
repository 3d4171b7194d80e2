"""The names that pods, namespaces and messages share: labels, annotations, tags, attributes.

They are those of the scheduler that users come from, so that their manifests work unchanged. What the
interface of the scheduler names already is in `proxy/si/constants.py`.
"""

from __future__ import annotations

from typing import Final

_DOMAIN: Final = "yunikorn.apache.org/"

PARTITION: Final = "default"
"""The partition of all nodes and applications of the cluster."""
DEFAULT_NAMESPACE: Final = "default"
DEFAULT_USER: Final = "nobody"
"""The user of a pod that does not name one."""

# Labels and annotations of pods.
APPLICATION_ID: Final = f"{_DOMAIN}app-id"
LEGACY_APPLICATION_ID: Final = "applicationId"
SPARK_APPLICATION_ID: Final = "spark-app-selector"
UNIQUE_ID_SUFFIX: Final = "-uniqueautogen"
"""An application id ends so if it was made before the pod had a uid."""
QUEUE: Final = f"{_DOMAIN}queue"
LEGACY_QUEUE: Final = "queue"
USER_INFO: Final = f"{_DOMAIN}user.info"
TASK_GROUPS: Final = f"{_DOMAIN}task-groups"
TASK_GROUP_NAME: Final = f"{_DOMAIN}task-group-name"
SCHEDULING_POLICY: Final = f"{_DOMAIN}schedulingPolicyParameters"
PLACEHOLDER: Final = f"internal.{_DOMAIN}placeholder"
ALLOW_PREEMPTION: Final = f"{_DOMAIN}allow-preemption"
"""Of pods and of priority classes."""

# Annotations of namespaces.
NAMESPACE_QUOTA: Final = f"{_DOMAIN}namespace.quota"
NAMESPACE_GUARANTEED: Final = f"{_DOMAIN}namespace.guaranteed"
NAMESPACE_ENABLED: Final = f"{_DOMAIN}namespace.enableYuniKorn"
"""Whether the pods of the namespace are given to the scheduler when they are created."""
NAMESPACE_GENERATES_ID: Final = f"{_DOMAIN}namespace.generateAppId"
"""Whether such pods get the id of an application if they have none."""
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

# Attributes of nodes, as other resource managers name them; the interface has names of its own.
HOST_NAME_OF_SHIM: Final = "si.io/hostname"
RACK_NAME_OF_SHIM: Final = "si.io/rackname"
DEFAULT_RACK: Final = "/rack-default"

# The two objects that hold the configuration; the second overrides the first.
DEFAULTS_NAME: Final = "yunikorn-defaults"
CONFIGS_NAME: Final = "yunikorn-configs"
