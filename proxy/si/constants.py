"""The names that both sides of the scheduler interface agree on, of both generations.

They are keys of attributes and tags, parts of such keys, and names of resource types. Names of the older
generation alone are marked; this scheduler gives them no meaning.
"""

from __future__ import annotations

from typing import Final

# Attributes of nodes.
ARCH: Final = "si/arch"
HOST_NAME: Final = "si/hostname"
RACK_NAME: Final = "si/rackname"
OS: Final = "si/os"
INSTANCE_TYPE: Final = "si/instance-type"
FAILURE_DOMAIN_ZONE: Final = "si/zone"
FAILURE_DOMAIN_REGION: Final = "si/region"
LOCAL_IMAGES: Final = "si/local-images"
NODE_PARTITION: Final = "si/node-partition"
NODE_READY_ATTRIBUTE: Final = "ready"  # older: a node is drained and undrained now
# Attributes of allocations.
APPLICATION_ID: Final = "si/application-id"
CONTAINER_IMAGE: Final = "si/container-image"
CONTAINER_PORTS: Final = "si/container-ports"
# The key of an allocation tag is a domain, maybe a group, and a name: "kubernetes.io/meta/namespace".
DOMAIN_K8S: Final = "kubernetes.io/"
DOMAIN_YUNIKORN: Final = "yunikorn.apache.org/"
DOMAIN_YUNIKORN_INTERNAL: Final = "internal.yunikorn.apache.org/"
GROUP_META: Final = "meta/"
GROUP_LABEL: Final = "label/"
GROUP_ANNOTATION: Final = "annotation/"
KEY_POD_NAME: Final = "podName"
KEY_NAMESPACE: Final = "namespace"
KEY_REQUIRED_NODE: Final = "requiredNode"
KEY_ALLOW_PREEMPTION: Final = "allowPreemption"  # older: see PreemptionPolicy now
# Whole keys of allocation and application tags.
CREATION_TIME: Final = "creationTime"
FOREIGN: Final = "foreign"
APP_TAG_NAMESPACE_RESOURCE_QUOTA: Final = "namespace.resourcequota"
APP_TAG_NAMESPACE_RESOURCE_GUARANTEED: Final = "namespace.resourceguaranteed"
APP_TAG_NAMESPACE_RESOURCE_MAX_APPS: Final = "namespace.resourcemaxapps"
APP_TAG_CREATE_FORCE: Final = "application.create.force"
APP_TAG_STATE_AWARE_DISABLE: Final = "application.stateaware.disable"  # older: that sort policy is gone
# Values of the tag `foreign`.
ALLOC_TYPE_STATIC: Final = "static"
ALLOC_TYPE_DEFAULT: Final = "default"
# Resource types.
MEMORY: Final = "memory"
CPU: Final = "vcore"


def keepalive_options(silence_seconds: float, sign_seconds: float) -> tuple[tuple[str, int], ...]:
    """Return the options.

    Args:
        silence_seconds: How long the other end may be silent before it is asked for a sign of life.
        sign_seconds: How long it may take to give one.
    """
    sign_ms = _milliseconds(sign_seconds)
    return (
        ("grpc.keepalive_time_ms", _milliseconds(silence_seconds)),
        ("grpc.keepalive_timeout_ms", sign_ms),
        # gRPC pings to measure a connection, too, and does not ask for a sign of life meanwhile.
        ("grpc.http2.ping_timeout_ms", sign_ms),
    )


def _milliseconds(seconds: float) -> int:
    return max(1, round(seconds * 1_000))
