"""The application of a pod: its id, queue, user, tags, and the request that adds it."""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

import pytest
from google.protobuf.json_format import MessageToDict
from support.kubernetes.decoded import CREATED_SECONDS, namespace_of, pod_of

from licorne.proxy.kubernetes.mapping.applications import (
    add_application_request,
    application_id,
    application_tags,
    application_warnings,
    ignored_sources,
    queue_name,
    separate_id,
    user_and_groups,
)
from licorne.proxy.kubernetes.mapping.settings import PLACEHOLDER, KubernetesSettings
from licorne.proxy.kubernetes.mapping.user_signatures import UserAndGroups

D: Final = "yunikorn.apache.org/"
SETTINGS: Final = KubernetesSettings()
UNIQUE: Final = KubernetesSettings(generate_unique_app_id=True)
UID: Final = "0b6c2f6e-1f5f-4d3c-9f6e-0123456789ab"
LONG: Final = "a-namespace-with-a-name-of-more-than-forty-nine-characters-in-all"
GROUPS: Final = [{"name": "g", "minMember": 2, "minResource": {"cpu": "500m", "memory": "1Gi"}}]
GANG: Final = {
    f"{D}task-groups": json.dumps(GROUPS),
    f"{D}schedulingPolicyParameters": "placeholderTimeoutInSeconds=30 gangSchedulingStyle=Hard",
}


class Named(NamedTuple):
    metadata: dict[str, Any]
    expected: str
    settings: KubernetesSettings = SETTINGS


ALL_IDS: Final = {
    "labels": {f"{D}app-id": "a", "applicationId": "c", "spark-app-selector": "d"},
    "annotations": {f"{D}app-id": "b"},
}
IDS: Final = {
    "the label of the domain counts first": Named(ALL_IDS, "a"),
    "the annotation of the domain counts second": Named(
        {**ALL_IDS, "labels": {"applicationId": "c", "spark-app-selector": "d"}}, "b"
    ),
    "the older label counts third": Named({"labels": {"spark-app-selector": "d", "applicationId": "c"}}, "c"),
    "the label of Spark counts last": Named({"labels": {"spark-app-selector": "d"}}, "d"),
    "an empty label is passed over": Named(
        {"labels": {f"{D}app-id": "", "applicationId": "c"}, "annotations": {f"{D}app-id": ""}}, "c"
    ),
    "an id that was made without the uid gets it": Named(
        {"labels": {"applicationId": "team-uniqueautogen"}, "uid": UID}, f"team-{UID}"
    ),
    "without an id the namespace is an application": Named({}, "yunikorn-team-autogen"),
    "without a namespace it is the default one": Named({"namespace": ""}, "yunikorn-default-autogen"),
    "a generated id is short enough for a label": Named({"namespace": LONG}, f"yunikorn-{LONG}"[:63]),
    "without an id each pod can be an application": Named({"uid": UID}, f"team-{UID}", UNIQUE),
    "a generated id of a pod is short enough for a label": Named(
        {"namespace": LONG, "uid": UID}, f"{LONG[:26]}-{UID}", UNIQUE
    ),
    "an id that is given is never generated": Named({"labels": {"applicationId": "c"}}, "c", UNIQUE),
}
QUEUES: Final = {
    "the label of the domain counts first": Named(
        {"labels": {f"{D}queue": "root.a", "queue": "root.c"}, "annotations": {f"{D}queue": "root.b"}},
        "root.a",
    ),
    "the annotation of the domain counts second": Named(
        {"labels": {"queue": "root.c"}, "annotations": {f"{D}queue": "root.b"}}, "root.b"
    ),
    "the older label counts last": Named({"labels": {"queue": "root.c"}}, "root.c"),
    "without any the placement rules decide": Named({}, ""),
}


@pytest.mark.parametrize("case", IDS.values(), ids=IDS)
def test_a_pod_says_its_application(case: Named) -> None:
    """Or one is generated from its namespace and uid, so that it is the same after a restart."""
    assert case.expected == application_id(pod_of(**case.metadata), case.settings)


@pytest.mark.parametrize("case", QUEUES.values(), ids=QUEUES)
def test_a_pod_says_its_queue(case: Named) -> None:
    """By the first text that is not empty."""
    assert case.expected == queue_name(pod_of(**case.metadata))


def test_sources_that_disagree_are_told() -> None:
    """One that says the same as the one that counts is not worth a word."""
    pod = pod_of(
        labels={f"{D}app-id": "a", "applicationId": "a", "spark-app-selector": "d", "queue": "root.c"},
        annotations={f"{D}queue": "root.b"},
    )

    assert (
        f"label spark-app-selector: application id 'd' is ignored, since label {D}app-id says 'a'",
        f"label queue: queue 'root.c' is ignored, since annotation {D}queue says 'root.b'",
    ) == ignored_sources(pod)


USERS: Final = {
    "a user with groups": ('{"user": "ada", "groups": ["dev", "ops"]}', ("ada", ("dev", "ops"))),
    "a user without groups": ('{"user": "ada"}', ("ada", ())),
    "a user whose groups are null": ('{"user": "ada", "groups": null}', ("ada", ())),
    "further fields are passed over": ('{"user": "ada", "uid": 7}', ("ada", ())),
    "an empty user is nobody, with the groups": ('{"user": "", "groups": ["dev"]}', ("nobody", ("dev",))),
    "no user is nobody, with the groups": ('{"groups": ["dev"]}', ("nobody", ("dev",))),
    "what is no JSON is nobody": ("ada", ("nobody", ())),
    "what has another type is nobody": ('{"user": 5, "groups": ["dev"]}', ("nobody", ())),
    "groups of another type are nobody's": ('{"user": "ada", "groups": "dev"}', ("nobody", ())),
    "endless nesting is nobody": ('{"x":' + "[" * 100_000, ("nobody", ())),
    "an empty annotation is nobody": ("", ("nobody", ())),
}


@pytest.mark.parametrize("case", USERS.values(), ids=USERS)
def test_a_pod_says_its_user(case: tuple[str, tuple[str, tuple[str, ...]]]) -> None:
    """In JSON, which an admission controller writes."""
    text, expected = case

    assert expected == user_and_groups(pod_of(annotations={f"{D}user.info": text}), KubernetesSettings())


def test_a_pod_without_the_annotation_runs_for_nobody() -> None:
    """Limits by user then count all such pods together."""
    assert ("nobody", ()) == user_and_groups(pod_of(), KubernetesSettings())


OWN: Final = UserAndGroups("licorne", ())


class Joining(NamedTuple):
    addition: str
    owner: str = "ada"
    user: str = "bob"
    namespace: str = "team"
    placeholder: str = ""
    is_separate: bool = True
    is_gang: bool = False
    account: UserAndGroups | None = OWN


JOINING: Final = {
    "the same user joins": Joining("", user="ada", namespace="other"),
    "another user of another namespace does not": Joining("-other", namespace="other", is_separate=False),
    "another user joins in the namespace": Joining("", is_separate=False),
    "unless a setting separates users": Joining("-bob"),
    "the account of the first pod joins": Joining("", user="system:serviceaccount:team:spark"),
    "another account does not": Joining(
        "-system:serviceaccount:team:default", user="system:serviceaccount:team:default"
    ),
    "a placeholder of the gang joins": Joining("", user=OWN.user, placeholder="pod", is_gang=True),
    "a placeholder that a user has written does not": Joining("-bob", placeholder="pod", is_gang=True),
    "a member joins the placeholders": Joining("", owner=OWN.user, placeholder="first", is_gang=True),
    "a member does not join what a user has written": Joining("-bob", placeholder="first", is_gang=True),
    "who creates placeholders is not known": Joining("", placeholder="pod", is_gang=True, account=None),
    "a placeholder without a gang is a pod as others": Joining("-bob", placeholder="pod"),
    "a placeholder of another namespace does not": Joining(
        "-other", user=OWN.user, namespace="other", placeholder="pod", is_gang=True
    ),
}


@pytest.mark.parametrize("case", JOINING.values(), ids=JOINING)
def test_which_pods_join_the_application_of_a_user(case: Joining) -> None:
    """The others get an application with an addition to its id."""
    users = {"first": (case.owner, "team"), "pod": (case.user, case.namespace)}
    first, pod = (
        pod_of(
            namespace=namespace,
            annotations={
                f"{D}user.info": json.dumps({"user": user}),
                **({PLACEHOLDER: "true"} if case.placeholder == name else {}),
            },
            spec={"serviceAccountName": "spark"},
        )
        for name, (user, namespace) in users.items()
    )
    settings = KubernetesSettings(separate_users=case.is_separate, account=case.account)

    assert case.addition == separate_id(pod, first, settings, is_gang=case.is_gang)


class Tagged(NamedTuple):
    expected: dict[str, str]
    metadata: dict[str, Any] | None = None
    spec: dict[str, Any] | None = None
    quota: dict[str, str] | None = None


TAGS: Final = {
    "the namespace is that of the first pod": Tagged({"namespace": "team"}),
    "a pod without a namespace is in the default one": Tagged({"namespace": "default"}, {"namespace": ""}),
    "an application that is there already stays": Tagged({"licorne/create-if-missing": "true"}),
    "secrets to pull images are named": Tagged(
        {"imagePullSecrets": "a,b"}, spec={"imagePullSecrets": [{"name": "a"}, {"name": "b"}]}
    ),
    "texts about gangs are kept as they are": Tagged({key: GANG[key] for key in GANG}, {"annotations": GANG}),
    "texts about gangs are there without a gang": Tagged(
        {f"{D}task-groups": "", f"{D}schedulingPolicyParameters": ""}
    ),
    "its age is that of the first pod": Tagged({f"{D}creationTime": CREATED_SECONDS}),
    "the namespace limits its queue": Tagged(
        {"namespace.resourcemaxapps": "3", "namespace.parentqueue": "root.teams"},
        quota={"namespace_maxApps": "3", "parentqueue": "root.teams"},
    ),
}


@pytest.mark.parametrize("case", TAGS.values(), ids=TAGS)
def test_an_application_has_the_tags(case: Tagged) -> None:
    """By which the scheduler places it and limits its queue."""
    pod = pod_of(spec=case.spec, **(case.metadata or {}))

    tags = application_tags(pod, namespace_of(**(case.quota or {})))

    assert case.expected == {key: tags.get(key) for key in case.expected}


def test_an_application_has_no_tag_for_what_nobody_said() -> None:
    """Secrets and limits of the namespace are left out."""
    assert {
        "namespace",
        "licorne/create-if-missing",
        f"{D}task-groups",
        f"{D}schedulingPolicyParameters",
        f"{D}creationTime",
    } == set(application_tags(pod_of(), None))


def test_a_request_adds_an_application() -> None:
    """All of it is a function of the first pod and its namespace."""
    annotations = {f"{D}user.info": '{"user": "ada", "groups": ["dev"]}'}
    pod = pod_of(labels={"applicationId": "app", "queue": "root.a"}, annotations=annotations)

    request = MessageToDict(add_application_request(pod, None, SETTINGS))

    assert {
        "applicationID": "app",
        "queueName": "root.a",
        "partitionName": "default",
        "ugi": {"user": "ada", "groups": ["dev"]},
        "tags": application_tags(pod, None),
    } == request


def test_a_request_says_how_a_gang_waits() -> None:
    """The size of all placeholders, the time in milliseconds, and what happens after it."""
    request = MessageToDict(add_application_request(pod_of(annotations=GANG), None, SETTINGS))

    assert {
        "placeholderAsk": {
            "resources": {
                "vcore": {"value": "1000"},
                "memory": {"value": str(2 << 30)},
                "pods": {"value": "2"},
            }
        },
        "executionTimeoutMilliSeconds": "30000",
        "gangSchedulingStyle": "Hard",
    } == {
        key: request[key] for key in ("placeholderAsk", "executionTimeoutMilliSeconds", "gangSchedulingStyle")
    }


def test_a_gang_asks_for_one_domain_of_nodes() -> None:
    """Then it is placed whole; a pod without a gang asks for nothing."""
    wanted = {"licorne.io/topology-required": "zone", "licorne.io/topology-balanced": "true"}
    tags = add_application_request(pod_of(annotations={**GANG, **wanted}), None, SETTINGS).tags
    alone = add_application_request(pod_of(annotations=wanted), None, SETTINGS).tags

    assert ("zone", "true", "whole") == tuple(
        tags[name] for name in ("topologyRequired", "topologyBalanced", "gangPlacing")
    )
    assert not {"topologyRequired", "topologyBalanced", "gangPlacing"} & set(alone)
    slices = {"licorne.io/topology-slice": "rack", "licorne.io/topology-slice-size": "4"}
    tags = add_application_request(pod_of(annotations={**GANG, **slices}), None, SETTINGS).tags
    assert ("rack", "4", "whole") == (tags["topologySlice"], tags["topologySliceSize"], tags["gangPlacing"])


@pytest.mark.parametrize(
    ("annotations", "settings"),
    [
        (GANG, KubernetesSettings(gangs_disabled=True)),
        ({**GANG, f"{D}task-groups": "nonsense"}, SETTINGS),
        ({f"{D}schedulingPolicyParameters": GANG[f"{D}schedulingPolicyParameters"]}, SETTINGS),
    ],
    ids=["gangs are disabled", "the groups cannot be read", "there are no groups"],
)
def test_without_a_gang_a_request_says_nothing_of_one(
    annotations: dict[str, str], settings: KubernetesSettings
) -> None:
    """The application runs as if it had never asked for one."""
    request = add_application_request(pod_of(annotations=annotations), None, settings)

    assert (False, 0, "") == (
        request.HasField("placeholderAsk"),
        request.executionTimeoutMilliSeconds,
        request.gangSchedulingStyle,
    )


def test_what_a_request_leaves_out_is_told() -> None:
    """By the action of the event that says it; what is in order is not mentioned."""
    pod = pod_of(labels={f"{D}app-id": "a", "applicationId": "b"}, annotations={f"{D}task-groups": "[{}]"})
    warnings = application_warnings(pod, namespace_of(namespace_maxApps="many"), SETTINGS)

    assert {
        "IgnoredSources": ignored_sources(pod),
        "TaskGroupsError": ("a task group has no name",),
        "NamespaceAnnotations": (
            f"annotation {D}namespace.maxApps is ignored: 'many' is not a whole number",
        ),
    } == warnings
    assert {} == application_warnings(pod_of(), None, SETTINGS)
