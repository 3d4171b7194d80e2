"""The settings of the scheduler of pods, from the two objects that hold them in the cluster."""

from __future__ import annotations

import base64
import gzip
from typing import Any, Final

import pytest
from support.kubernetes.decoded import config_map

from licorne.proxy.kubernetes.mapping import settings as module
from licorne.proxy.kubernetes.mapping.settings import (
    ConfigMapError,
    KubernetesSettings,
    reloaded,
    settings_from_config_maps,
)

SECOND_NS: Final = 10**9
DEFAULTS: Final = {
    "rm_id": "mycluster",
    "policy_group": "queues",
    "scheduler_name": "yunikorn",
    "gangs_disabled": False,
    "hot_reload": True,
    "generate_unique_app_id": False,
    "volume_bind_timeout_ns": 600 * SECOND_NS,
    "queries_per_second": 1000,
    "query_burst": 1000,
    "placeholder_image": "registry.k8s.io/pause:3.7",
    "placeholder_user_id": None,
    "placeholder_group_id": None,
    "placeholder_fs_group_id": None,
    "placeholder_pods": True,
    "evict_preempted": False,
    "instance_type_label": "node.kubernetes.io/instance-type",
    "topology_labels": (),
    "signer": None,
    "unsigned_users": None,
    "bypass_auth": False,
    "separate_users": False,
    "account": None,
    "shows_labels": True,
}
KEYS: Final[dict[str, tuple[str, str, object]]] = {
    "the id of the cluster": ("service.clusterId", "rm_id", "prod"),
    "the name of the queue file": ("service.policyGroup", "policy_group", "teams"),
    "gangs are disabled": ("service.disableGangScheduling", "gangs_disabled", True),
    "gangs have no placeholder pods": ("service.placeholderPods", "placeholder_pods", False),
    "preempted pods are evicted": ("service.evictPreempted", "evict_preempted", True),
    "nothing is read again": ("service.enableConfigHotRefresh", "hot_reload", False),
    "each pod is an application": (
        "admissionController.filtering.generateUniqueAppId",
        "generate_unique_app_id",
        True,
    ),
    "users are separate": ("admissionController.accessControl.separateUsers", "separate_users", True),
    "no check of users": ("admissionController.accessControl.bypassAuth", "bypass_auth", True),
    "users that are not signed": (
        "admissionController.accessControl.unsignedUsers",
        "unsigned_users",
        "refused",
    ),
    "the image of placeholders": ("service.placeholderImage", "placeholder_image", "pause:1"),
    "the user of placeholders": ("service.placeholderRunAsUser", "placeholder_user_id", 1000),
    "the group of placeholders": ("service.placeholderRunAsGroup", "placeholder_group_id", 3000),
    "the group of their files": ("service.placeholderFsGroup", "placeholder_fs_group_id", 2000),
    "the label of instance types": ("service.nodeInstanceTypeNodeLabelKey", "instance_type_label", "size"),
    "the label of instance types, by its other key": (
        "service.instanceTypeNodeLabelKey",
        "instance_type_label",
        "size",
    ),
    "requests a second": ("kubernetes.qps", "queries_per_second", 50),
    "requests at once": ("kubernetes.burst", "query_burst", 0),
}
DURATIONS: Final = {
    "10m": 600 * SECOND_NS,
    "1h2m3.5s": 3723 * SECOND_NS + SECOND_NS // 2,
    "300ms": 300_000_000,
    "0": 0,
}
BAD: Final = {
    "a flag": ("service.disableGangScheduling", "yes", "neither true nor false"),
    "a word for users that are not signed": (
        "admissionController.accessControl.unsignedUsers",
        "root",
        "not one of believed, nobody, refused",
    ),
    "a duration without a unit": ("service.volumeBindTimeout", "10", "not a duration such as 1m30s or 300ms"),
    "a negative duration": ("service.volumeBindTimeout", "-1s", "not a duration"),
    "an interval that has no effect": ("service.schedulingInterval", "often", "not a duration"),
    "a timeout that has no effect": ("service.dispatchTimeout", "", "not a duration"),
    "a capacity that has no effect": ("service.eventChannelCapacity", "1e6", "not a whole number"),
    "a negative number": ("kubernetes.qps", "-1", "not a whole number from 0 to 2147483647"),
    "a number that is too large": (
        "kubernetes.burst",
        "2147483648",
        "not a whole number from 0 to 2147483647",
    ),
    "the id of a user": ("service.placeholderRunAsUser", "root", "not a whole number"),
    "an empty id": ("service.clusterId", "", "empty"),
    "an empty image": ("service.placeholderImage", "", "empty"),
}


def read(data: dict[str, str]) -> KubernetesSettings:
    """Return the settings of `yunikorn-configs` alone."""
    return settings_from_config_maps(None, config_map(data)).settings


def compressed(text: str) -> str:
    """Return a text as binary data has it."""
    return base64.b64encode(gzip.compress(text.encode())).decode()


def as_dict(settings: KubernetesSettings) -> dict[str, Any]:
    """Return settings by name."""
    return {name: getattr(settings, name) for name in settings.__slots__}


def test_without_the_objects_the_defaults_hold() -> None:
    """There are no queues either: the scheduler has a default for those."""
    settings, queue_yaml, extra = settings_from_config_maps(None, None)

    assert (DEFAULTS, "", {}) == (as_dict(settings), queue_yaml, extra)


@pytest.mark.parametrize("case", KEYS.values(), ids=KEYS)
def test_a_key_sets_one_thing(case: tuple[str, str, object]) -> None:
    """All others stay as they are."""
    key, field, expected = case
    text = str(expected).lower() if isinstance(expected, bool) else str(expected)

    assert {**DEFAULTS, field: expected} == as_dict(read({key: text}))


@pytest.mark.parametrize("text", DURATIONS)
def test_durations_are_read_as_go_writes_them(text: str) -> None:
    """In nanoseconds."""
    assert DURATIONS[text] == read({"service.volumeBindTimeout": text}).volume_bind_timeout_ns


def test_what_polling_needs_has_no_effect() -> None:
    """Three settings are accepted, so that an old file works; nothing here is polled."""
    data = {
        "service.schedulingInterval": "1s",
        "service.eventChannelCapacity": "1048576",
        "service.dispatchTimeout": "5m",
    }

    assert DEFAULTS == as_dict(read(data))


def test_an_empty_id_leaves_the_user_to_the_image() -> None:
    """As if the key were not there."""
    assert read({"service.placeholderRunAsUser": ""}).placeholder_user_id is None


@pytest.mark.parametrize("case", BAD.values(), ids=BAD)
def test_a_bad_value_is_refused_with_its_place(case: tuple[str, str, str]) -> None:
    """The error names the object, the key and the value; nothing is taken."""
    key, text, what = case

    with pytest.raises(ConfigMapError) as caught:
        read({key: text})

    assert str(caught.value).startswith(f"ConfigMap yunikorn-configs: {key}: {text!r} is {what}")


def test_the_second_object_overrides_the_first_by_key() -> None:
    """Keys that only one of them has are kept."""
    first = config_map({"service.clusterId": "a", "kubernetes.qps": "5", "log.level": "0"})
    second = config_map({"service.clusterId": "b", "log.level": "-1"})

    settings, _, extra = settings_from_config_maps(first, second)

    assert ("b", 5, "-1") == (settings.rm_id, settings.queries_per_second, extra["log.level"])


def test_a_bad_value_that_is_overridden_does_no_harm() -> None:
    """What counts is the value in the end; and its object is the one that is named."""
    first, second = config_map({"kubernetes.qps": "many"}), config_map({"kubernetes.qps": "5"})

    assert settings_from_config_maps(first, second).settings.queries_per_second == 5
    with pytest.raises(ConfigMapError, match=r"ConfigMap yunikorn-defaults: kubernetes\.qps: 'many'"):
        settings_from_config_maps(first, None)


def test_the_queue_file_has_the_name_of_the_policy_group() -> None:
    """Another file is for another policy group."""
    data = {"queues.yaml": "a: 1", "teams.yaml": "b: 2"}

    assert ["a: 1", "b: 2", ""] == [
        settings_from_config_maps(None, config_map({**data, **more})).queue_yaml
        for more in ({}, {"service.policyGroup": "teams"}, {"service.policyGroup": "none"})
    ]


_WINDOW = "{name: w, attributes: {zone: z, pool: a}, from: 2026-12-01T06:00, to: 2026-12-01T07:00}"


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("partitions: [{name: default, topology: [zone, rack], queues: [{name: root}]}]", ("zone", "rack")),
        (
            f"partitions: [{{name: default, topology: [zone], windows: [{_WINDOW}], queues: []}}]",
            ("zone", "pool"),
        ),
        ("partitions: [{name: default, queues: [{name: root}]}]", ()),
        ("partitions: [", ()),
    ],
    ids=["two levels", "a window", "no topology", "an invalid file"],
)
def test_the_levels_of_the_queue_file_are_labels_of_nodes(text: str, labels: tuple[str, ...]) -> None:
    read = settings_from_config_maps(None, config_map({"queues.yaml": text}))

    assert labels == read.settings.topology_labels


def test_every_key_that_is_no_file_is_extra_configuration() -> None:
    """The scheduler looks for its own keys among them."""
    data = {"queues.yaml": "a: 1", "other.yaml": "b: 2", "log.level": "-1", "service.clusterId": "prod"}

    assert {"log.level": "-1", "service.clusterId": "prod"} == (
        settings_from_config_maps(None, config_map(data)).extra_config
    )


def test_a_compressed_value_is_decompressed() -> None:
    """Its key loses the suffix; it overrides a plain value, and the next object overrides it."""
    first = config_map(
        {"queues.yaml": "plain"}, {"queues.yaml.gz": compressed("compressed: ä"), "image.png": "AAAA"}
    )

    assert ("compressed: ä", {}) == settings_from_config_maps(first, None)[1:]
    assert settings_from_config_maps(first, config_map({"queues.yaml": "later"})).queue_yaml == "later"


@pytest.mark.parametrize(
    "value",
    [
        "%%%",
        base64.b64encode(b"plain").decode(),
        compressed("a" * 100)[:20],
        base64.b64encode(gzip.compress(b"\xff")).decode(),
    ],
    ids=["no base64", "no gzip", "cut off", "no text"],
)
def test_a_value_that_cannot_be_decompressed_is_refused(value: str) -> None:
    """The error names the object and the key; the value is no reading matter."""
    with pytest.raises(
        ConfigMapError, match=r"ConfigMap yunikorn-defaults: queues\.yaml\.gz: it cannot be decompressed"
    ):
        settings_from_config_maps(config_map(binary={"queues.yaml.gz": value}), None)


def test_a_value_that_swells_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few bytes must not fill the memory."""
    monkeypatch.setattr(module, "_TEXT_BYTES_MAX", 1000)
    settings_from_config_maps(config_map(binary={"queues.yaml.gz": compressed("a" * 1000)}), None)

    with pytest.raises(ConfigMapError, match="it has more than 1000 bytes"):
        settings_from_config_maps(config_map(binary={"queues.yaml.gz": compressed("a" * 1001)}), None)


def test_what_the_objects_do_not_say_stays_as_it_was_given() -> None:
    """The name of the scheduler, for example, is an option of the command."""
    base = KubernetesSettings(scheduler_name="licorne", rm_id="a")

    settings = settings_from_config_maps(None, config_map({"service.clusterId": "b"}), base).settings

    assert ("licorne", "b") == (settings.scheduler_name, settings.rm_id)


def test_while_it_runs_only_reloading_can_be_switched() -> None:
    """Everything else stays, and is named, since it needs a restart."""
    running = KubernetesSettings()
    changed = KubernetesSettings(hot_reload=False, rm_id="b", query_burst=5)

    assert (KubernetesSettings(hot_reload=False), ("rm_id", "query_burst")) == reloaded(running, changed)
    assert (running, ()) == reloaded(running, KubernetesSettings())
