"""The settings of the webhook in the two objects of the cluster, and the check of what is written there."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import pytest
from support.kubernetes.reviews import a_review

from licorne.proxy.kubernetes.admission.cluster_objects import ConfigMapPair, configuration_verdict
from licorne.proxy.kubernetes.admission.reviews import (
    ADMITTED,
    AdmissionVerdict,
    UnreadableReviewError,
    request_of,
)
from licorne.proxy.kubernetes.admission.settings import AdmissionSettings, Patterns, admission_settings
from licorne.proxy.kubernetes.mapping.settings import ConfigMapError
from licorne.proxy.kubernetes.objects import ConfigMap, ObjectMeta

FILTERING: Final = "admissionController.filtering."
ACCESS: Final = "admissionController.accessControl."
GOOD: Final = "partitions:\n  - name: default\n    queues:\n      - name: root\n"
BAD: Final = "partitions:\n  - name: default\n    queues:\n      - name: root\n        color: red\n"


def config_map(data: Mapping[str, str], name: str = "yunikorn-configs") -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name), data=dict(data))


def texts(settings: AdmissionSettings) -> dict[str, object]:
    """Return the settings by field, patterns as their expressions."""
    values = {name: getattr(settings, name) for name in AdmissionSettings.__dataclass_fields__}
    return {
        name: [each.text for each in value.expressions] if isinstance(value, Patterns) else value
        for name, value in values.items()
    }


DEFAULTS: Final[dict[str, object]] = {
    "process_namespaces": [],
    "bypass_namespaces": ["^kube-system$"],
    "label_namespaces": [],
    "no_label_namespaces": [],
    "generate_unique_app_id": False,
    "default_queue": "",
    "bypass_auth": False,
    "trust_controllers": True,
    "system_users": ["^system:serviceaccount:kube-system:"],
    "external_users": [],
    "external_groups": [],
    "unsigned_users": None,
    "hot_reload": True,
}


def test_without_the_objects_the_defaults_hold() -> None:
    """They are those that users come from."""
    assert texts(admission_settings(None, None)) == DEFAULTS


KEYS: Final[dict[str, tuple[str, str, str, object]]] = {
    "processed namespaces": (f"{FILTERING}processNamespaces", "^a-, b", "process_namespaces", ["^a-", "b"]),
    "exceptions": (f"{FILTERING}bypassNamespaces", "", "bypass_namespaces", []),
    "labelled namespaces": (f"{FILTERING}labelNamespaces", "a", "label_namespaces", ["a"]),
    "exceptions from labels": (f"{FILTERING}noLabelNamespaces", ",a,,", "no_label_namespaces", ["a"]),
    "unique ids": (f"{FILTERING}generateUniqueAppId", "true", "generate_unique_app_id", True),
    "the queue of pods without one": (f"{FILTERING}defaultQueue", "root.d", "default_queue", "root.d"),
    "no check of users": (f"{ACCESS}bypassAuth", "T", "bypass_auth", True),
    "no trust in controllers": (f"{ACCESS}trustControllers", "0", "trust_controllers", False),
    "users that are not signed": (f"{ACCESS}unsignedUsers", "refused", "unsigned_users", "refused"),
    "system users": (f"{ACCESS}systemUsers", "^s", "system_users", ["^s"]),
    "external users": (f"{ACCESS}externalUsers", "^e", "external_users", ["^e"]),
    "external groups": (f"{ACCESS}externalGroups", "^g", "external_groups", ["^g"]),
    "no change without a restart": ("service.enableConfigHotRefresh", "false", "hot_reload", False),
    "a key of others": ("service.clusterId", "x", "default_queue", ""),
}


@pytest.mark.parametrize("case", KEYS.values(), ids=KEYS)
def test_a_key_sets_one_thing(case: tuple[str, str, str, object]) -> None:
    """All others stay as they are."""
    key, text, field, expected = case

    assert {**DEFAULTS, field: expected} == texts(admission_settings(None, config_map({key: text})))


def test_the_second_object_overrides_the_first() -> None:
    """Key by key."""
    first = config_map({f"{ACCESS}externalUsers": "a", f"{ACCESS}externalGroups": "g"}, "yunikorn-defaults")
    settings = admission_settings(first, config_map({f"{ACCESS}externalUsers": "b"}))

    assert (["b"], ["g"]) == (texts(settings)["external_users"], texts(settings)["external_groups"])


BAD_VALUES: Final = {
    "a flag": (f"{ACCESS}bypassAuth", "maybe", "'maybe' is neither true nor false"),
    "an expression": (f"{ACCESS}externalUsers", "^a,(", "'^a,(' is not a list of regular expressions: '('"),
    "an expression of Python alone": (
        f"{FILTERING}bypassNamespaces",
        "(?!a)",
        "'(?!a)' is not a list of regular expressions",
    ),
}


@pytest.mark.parametrize("case", BAD_VALUES.values(), ids=BAD_VALUES)
def test_a_bad_value_is_named_with_its_object_and_key(case: tuple[str, str, str]) -> None:
    """Then nothing is taken."""
    key, text, problem = case

    with pytest.raises(ConfigMapError) as caught:
        admission_settings(config_map({key: text}, "yunikorn-defaults"), None)

    assert str(caught.value).startswith(f"ConfigMap yunikorn-defaults: {key}: {problem}")


NOTHING: Final = ConfigMapPair()


class Write(NamedTuple):
    """A write of an object: what is written, the configuration as it is, and the namespace."""

    item: Mapping[str, Any]
    held: ConfigMapPair = NOTHING
    namespace: str = "yunikorn"


def judged(write: Write) -> AdmissionVerdict:
    """Return the verdict about a write."""
    review = a_review("ConfigMap", write.item, namespace=write.namespace)
    return configuration_verdict(request_of(json.dumps(review).encode()), write.held, "yunikorn")


def an_object(name: str = "yunikorn-configs", **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": {key.replace("_", "."): text for key, text in data.items()}}


def compressed(text: str) -> dict[str, Any]:
    encoded = base64.b64encode(gzip.compress(text.encode())).decode()
    return {"metadata": {"name": "yunikorn-configs"}, "binaryData": {"queues.yaml.gz": encoded}}


HELD: Final = ConfigMapPair(
    config_map({"queues.yaml": BAD, "other.yaml": GOOD, "service.policyGroup": "queues"}, "yunikorn-defaults")
)
PASSING: Final = {
    "queues that can be used": Write(an_object(queues_yaml=GOOD)),
    "no queues": Write(an_object()),
    "empty queues": Write(an_object(queues_yaml="")),
    "queues of a group that is not used": Write(an_object(other_yaml=BAD)),
    "bad queues of another object": Write(an_object("other", queues_yaml=BAD)),
    "bad queues of another namespace": Write(an_object(queues_yaml=BAD), namespace="team"),
    "good queues that override bad ones": Write(an_object(queues_yaml=GOOD), HELD),
    "compressed queues that can be used": Write(compressed(GOOD)),
}


@pytest.mark.parametrize("case", PASSING.values(), ids=PASSING)
def test_a_configuration_passes_if_its_queues_can_be_used(case: Write) -> None:
    """Both objects together are the configuration."""
    assert judged(case) == ADMITTED


DENIED: Final = {
    "queues that cannot be used": (Write(an_object(queues_yaml=BAD)), "yunikorn-configs: queues.yaml:5"),
    "queues that are no YAML": (Write(an_object(queues_yaml="a: [")), "yunikorn-configs: queues.yaml:2"),
    "bad queues of the first object": (
        Write(an_object("yunikorn-defaults", queues_yaml=BAD)),
        "yunikorn-defaults: queues.yaml:5",
    ),
    "a change that leaves bad queues": (Write(an_object(), HELD), "yunikorn-defaults: queues.yaml:5"),
    "queues of the group that is to be used": (
        Write(
            {"metadata": {"name": "yunikorn-configs"}, "data": {"service.policyGroup": "g", "g.yaml": BAD}}
        ),
        "yunikorn-configs: g.yaml:5",
    ),
    "compressed queues that cannot be used": (Write(compressed(BAD)), "yunikorn-configs: queues.yaml:5"),
    "queues that cannot be decompressed": (
        Write({"metadata": {"name": "yunikorn-configs"}, "binaryData": {"queues.yaml.gz": "AAAA"}}),
        "yunikorn-configs: queues.yaml.gz: it cannot be decompressed",
    ),
}


@pytest.mark.parametrize("case", DENIED.values(), ids=DENIED)
def test_a_configuration_is_denied_if_its_queues_cannot_be_used(case: tuple[Write, str]) -> None:
    """The reason says where, and what is wrong there."""
    write, place = case

    verdict = judged(write)

    assert not verdict.is_allowed
    assert verdict.reason.startswith(f"ConfigMap {place}")


def test_another_bad_value_is_a_warning() -> None:
    """The scheduler keeps what it has, and the user sees why."""
    data = {"service.volumeBindTimeout": "soon", f"{ACCESS}bypassAuth": "maybe", "queues.yaml": GOOD}

    verdict = judged(Write({"metadata": {"name": "yunikorn-configs"}, "data": data}))

    problem = "'soon' is not a duration such as 1m30s or 300ms"
    expected = (
        f"ConfigMap yunikorn-configs: service.volumeBindTimeout: {problem}",
        f"ConfigMap yunikorn-configs: {ACCESS}bypassAuth: 'maybe' is neither true nor false",
    )
    assert AdmissionVerdict(warnings=expected) == verdict


def test_an_object_that_is_no_config_map_passes() -> None:
    """A registration that asks about more than it needs does no harm."""
    review = a_review("Secret", {}, namespace="yunikorn")

    assert configuration_verdict(request_of(json.dumps(review).encode()), HELD, "yunikorn") == ADMITTED


def test_a_config_map_that_cannot_be_read_has_no_answer() -> None:
    """The failure policy decides."""
    with pytest.raises(UnreadableReviewError, match="cannot be read as ConfigMap"):
        judged(Write({"metadata": {"name": "yunikorn-configs"}, "data": {"a": 1}}))
