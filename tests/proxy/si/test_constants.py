"""The names that both sides of the interface agree on, literally."""

from __future__ import annotations

from typing import Final

from licorne.model.values.allocation import CREATION_TIME_TAG, FOREIGN_TAG, REQUIRED_NODE_TAG
from licorne.proxy.si import constants

EXPECTED: Final = {
    "ARCH": "si/arch",
    "HOST_NAME": "si/hostname",
    "RACK_NAME": "si/rackname",
    "OS": "si/os",
    "INSTANCE_TYPE": "si/instance-type",
    "FAILURE_DOMAIN_ZONE": "si/zone",
    "FAILURE_DOMAIN_REGION": "si/region",
    "LOCAL_IMAGES": "si/local-images",
    "NODE_PARTITION": "si/node-partition",
    "NODE_READY_ATTRIBUTE": "ready",
    "APPLICATION_ID": "si/application-id",
    "CONTAINER_IMAGE": "si/container-image",
    "CONTAINER_PORTS": "si/container-ports",
    "DOMAIN_K8S": "kubernetes.io/",
    "DOMAIN_YUNIKORN": "yunikorn.apache.org/",
    "DOMAIN_YUNIKORN_INTERNAL": "internal.yunikorn.apache.org/",
    "GROUP_META": "meta/",
    "GROUP_LABEL": "label/",
    "GROUP_ANNOTATION": "annotation/",
    "KEY_POD_NAME": "podName",
    "KEY_NAMESPACE": "namespace",
    "KEY_REQUIRED_NODE": "requiredNode",
    "KEY_ALLOW_PREEMPTION": "allowPreemption",
    "CREATION_TIME": "creationTime",
    "FOREIGN": "foreign",
    "ALLOC_TYPE_STATIC": "static",
    "ALLOC_TYPE_DEFAULT": "default",
    "MEMORY": "memory",
    "CPU": "vcore",
    "APP_TAG_NAMESPACE_RESOURCE_QUOTA": "namespace.resourcequota",
    "APP_TAG_NAMESPACE_RESOURCE_GUARANTEED": "namespace.resourceguaranteed",
    "APP_TAG_NAMESPACE_RESOURCE_MAX_APPS": "namespace.resourcemaxapps",
    "APP_TAG_CREATE_FORCE": "application.create.force",
    "APP_TAG_STATE_AWARE_DISABLE": "application.stateaware.disable",
}


def test_the_constants_of_both_generations_are_all_there() -> None:
    """Every name has the text that resource managers use."""
    actual = {name: value for name, value in vars(constants).items() if name.isupper()}

    assert actual == EXPECTED


def test_the_model_means_the_same_tags() -> None:
    """The tags that steer the model are those of the interface."""
    assert constants.FOREIGN == FOREIGN_TAG
    assert constants.CREATION_TIME == CREATION_TIME_TAG
    assert constants.DOMAIN_YUNIKORN + constants.KEY_REQUIRED_NODE == REQUIRED_NODE_TAG
