"""What pods and workloads get when they are created, by a row for each rule."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, final

import pytest
from support.kubernetes.reviews import a_review, patch_of, patched

from licorne.proxy.kubernetes.admission.marking import Marking
from licorne.proxy.kubernetes.admission.reviews import AdmissionVerdict, encoded_review, request_of
from licorne.proxy.kubernetes.admission.settings import admission_settings
from licorne.proxy.kubernetes.mapping.user_signatures import SIGNATURE, Subject, UserSigner
from licorne.proxy.kubernetes.objects import ConfigMap, Namespace, ObjectMeta, PriorityClass

DOMAIN: Final = "yunikorn.apache.org/"
USER: Final = f"{DOMAIN}user.info"
APP: Final = f"{DOMAIN}app-id"
QUEUE: Final = f"{DOMAIN}queue"
PREEMPTION: Final = f"{DOMAIN}allow-preemption"
ANN: Final = {USER: '{"user":"ann","groups":["dev"]}'}
BOB: Final = {USER: '{"user":"bob"}'}
GENERATED: Final = {APP: "yunikorn-team-autogen", "applicationId": "yunikorn-team-autogen"}
YES: Final = {PREEMPTION: "true"}
CONTROLLER: Final = "system:serviceaccount:kube-system:replicaset-controller"
LONG: Final = f"podgroup-team-{'g' * 40}-ca4c131d"
FILTERING: Final = "admissionController.filtering."
SIGNER: Final = UserSigner(b"k" * 32)
ACCESS: Final = "admissionController.accessControl."


@final
class Known:
    """A cluster with a namespace, if it has annotations, and two priority classes."""

    def __init__(self, annotations: Mapping[str, str]) -> None:
        self._annotations = dict(annotations)

    def namespace(self, name: str) -> Namespace | None:
        if not self._annotations:
            return None
        return Namespace(metadata=ObjectMeta(name=name, annotations=self._annotations))

    def priority_class(self, name: str) -> PriorityClass | None:
        texts = {"never": "false", "always": "true"}
        if name not in texts:
            return None
        return PriorityClass(metadata=ObjectMeta(name=name, annotations={PREEMPTION: texts[name]}))


def answered(
    review: Mapping[str, Any], data: Mapping[str, str], namespace: Mapping[str, str]
) -> AdmissionVerdict:
    """Return the verdict under some settings, in a cluster whose namespace has annotations."""
    maps = ConfigMap(metadata=ObjectMeta(name="yunikorn-configs"), data=dict(data))
    marking = Marking("yunikorn", admission_settings(None, maps), Known(namespace), SIGNER)
    return marking.verdict(request_of(json.dumps(review).encode()))


class Row(NamedTuple):
    """A pod that is created, and what it is then; `reason` alone if it is denied."""

    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    spec: Mapping[str, Any] = {}
    data: Mapping[str, str] = {}
    namespace: Mapping[str, str] = {}
    asked: Mapping[str, Any] = {}
    more: Mapping[str, str] = {}
    expected_labels: Mapping[str, str] = GENERATED
    expected_annotations: Mapping[str, str] = {**ANN, **YES}
    scheduler: str = "yunikorn"
    reason: str = ""


UNTOUCHED: Final = Row(expected_labels={}, expected_annotations={}, scheduler="")
UNLABELLED: Final = Row(expected_labels={}, expected_annotations=ANN)
PODS: Final = {
    "a pod gets user, scheduler, application and whether it may be preempted": Row(),
    "other labels and annotations stay": Row(
        {"a/b~c": "1"},
        {"note": "x"},
        expected_labels={"a/b~c": "1", **GENERATED},
        expected_annotations={"note": "x", **ANN, **YES},
    ),
    "the scheduler that a pod names is replaced": Row(spec={"schedulerName": "default-scheduler"}),
    "a user without groups has none": Row(
        asked={"groups": ()}, expected_annotations={USER: '{"user":"ann","groups":[]}', **YES}
    ),
    # Applications.
    "an application id is kept, and copied to the older label": Row(
        {APP: "etl"}, expected_labels={APP: "etl", "applicationId": "etl"}
    ),
    "the older label follows the newer one": Row(
        {APP: "etl", "applicationId": "old"}, expected_labels={APP: "etl", "applicationId": "etl"}
    ),
    "the older label of an application is enough": Row(
        {"applicationId": "etl"}, expected_labels={"applicationId": "etl"}
    ),
    "the label of spark is enough": Row(
        {"spark-app-selector": "spark-1"}, expected_labels={"spark-app-selector": "spark-1"}
    ),
    "the annotation of an application is enough": Row(
        annotations={APP: "etl"}, expected_labels={}, expected_annotations={APP: "etl", **ANN, **YES}
    ),
    "the pods of a group are an application": Row(
        {"jobset.sigs.k8s.io/jobset-name": "train"},
        data={f"{FILTERING}generateUniqueAppId": "true"},
        expected_labels={
            "jobset.sigs.k8s.io/jobset-name": "train",
            APP: "jobset-team-train",
            "applicationId": "jobset-team-train",
        },
    ),
    "the group of a pod may be in its specification": Row(
        spec={"schedulingGroup": {"podGroupName": "g" * 80}},
        expected_labels={APP: LONG, "applicationId": LONG},
    ),
    "each pod is an application where ids are unique": Row(
        data={f"{FILTERING}generateUniqueAppId": "true"},
        expected_labels={APP: "team-uniqueautogen", "applicationId": "team-uniqueautogen"},
    ),
    "a uid that is known is in the unique id": Row(
        data={f"{FILTERING}generateUniqueAppId": "true"},
        more={"uid": "u1"},
        expected_labels={APP: "team-u1", "applicationId": "team-u1"},
    ),
    "a long namespace is cut in the unique id": Row(
        data={f"{FILTERING}generateUniqueAppId": "true"},
        asked={"namespace": "n" * 60},
        expected_labels=dict.fromkeys((APP, "applicationId"), "n" * 26 + "-uniqueautogen"),
    ),
    "a long generated id is cut": Row(
        asked={"namespace": "n" * 60},
        expected_labels=dict.fromkeys((APP, "applicationId"), "yunikorn-" + "n" * 54),
    ),
    "a question without namespace is about the default one": Row(
        asked={"namespace": ""},
        expected_labels=dict.fromkeys((APP, "applicationId"), "yunikorn-default-autogen"),
    ),
    # Queues.
    "a queue is copied to the older label": Row(
        {QUEUE: "root.a"}, expected_labels={QUEUE: "root.a", "queue": "root.a", **GENERATED}
    ),
    "the older label of a queue is kept": Row(
        {"queue": "root.a"}, expected_labels={"queue": "root.a", **GENERATED}
    ),
    "a pod without queue gets the default one": Row(
        data={f"{FILTERING}defaultQueue": "root.d"},
        expected_labels={QUEUE: "root.d", "queue": "root.d", **GENERATED},
    ),
    "a pod whose annotation names a queue does not": Row(
        annotations={QUEUE: "root.a"},
        data={f"{FILTERING}defaultQueue": "root.d"},
        expected_annotations={QUEUE: "root.a", **ANN, **YES},
    ),
    # Preemption.
    "a class forbids preemption": Row(
        spec={"priorityClassName": "never"}, expected_annotations={**ANN, PREEMPTION: "false"}
    ),
    "a class allows preemption": Row(spec={"priorityClassName": "always"}),
    "a class that is not known allows it": Row(spec={"priorityClassName": "unknown"}),
    "what the pod says counts more than its class": Row(
        annotations=YES, spec={"priorityClassName": "never"}, expected_annotations={**ANN, **YES}
    ),
    "what the pod says in other words does not count": Row(
        annotations={PREEMPTION: "maybe"},
        spec={"priorityClassName": "never"},
        expected_annotations={**ANN, PREEMPTION: "false"},
    ),
    # Namespaces.
    "pods of the system's namespace pass": UNTOUCHED._replace(asked={"namespace": "kube-system"}),
    "a namespace that resembles it does not": Row(
        asked={"namespace": "my-kube-system"},
        expected_labels=dict.fromkeys((APP, "applicationId"), "yunikorn-my-kube-system-autogen"),
    ),
    "without exceptions the system's namespace is processed": Row(
        data={f"{FILTERING}bypassNamespaces": ""},
        asked={"namespace": "kube-system"},
        expected_labels=dict.fromkeys((APP, "applicationId"), "yunikorn-kube-system-autogen"),
    ),
    "a namespace of the list is processed": Row(data={f"{FILTERING}processNamespaces": "^x$, ^te"}),
    "one that is not in the list passes": UNTOUCHED._replace(
        data={f"{FILTERING}processNamespaces": "^x$,^y$"}
    ),
    "an exception passes": UNTOUCHED._replace(
        data={f"{FILTERING}processNamespaces": "^team$", f"{FILTERING}bypassNamespaces": "ea"}
    ),
    "a namespace may say that it is processed": Row(
        data={f"{FILTERING}bypassNamespaces": "team"},
        namespace={f"{DOMAIN}namespace.enableYuniKorn": "true"},
    ),
    "a namespace may say that it is not": UNTOUCHED._replace(
        namespace={f"{DOMAIN}namespace.enableYuniKorn": "false"}
    ),
    "another word of the namespace is no": UNTOUCHED._replace(
        namespace={f"{DOMAIN}namespace.enableYuniKorn": "yes"}
    ),
    "other annotations of the namespace change nothing": Row(namespace={"note": "x"}),
    "a namespace of the list of labels is labelled": Row(data={f"{FILTERING}labelNamespaces": "^team$"}),
    "one that is not in the list is scheduled without labels": UNLABELLED._replace(
        data={f"{FILTERING}labelNamespaces": "^x$"}
    ),
    "an exception from labels is scheduled without": UNLABELLED._replace(
        data={f"{FILTERING}noLabelNamespaces": "^team$"}
    ),
    "a namespace may say that it is labelled": Row(
        data={f"{FILTERING}noLabelNamespaces": "^team$"},
        namespace={f"{DOMAIN}namespace.generateAppId": "true"},
    ),
    "a namespace may say that it is not labelled": UNLABELLED._replace(
        namespace={f"{DOMAIN}namespace.generateAppId": "false"}
    ),
    "a label lets no pod pass": Row(
        labels={"app": "yunikorn"}, expected_labels={"app": "yunikorn", **GENERATED}
    ),
    # Users.
    "a user may not name another one": Row(
        annotations=BOB, reason=f"user ann with groups [dev] may not set the annotation {USER}"
    ),
    "a user may name himself": Row(annotations=ANN),
    "nor may an account with the name of a controller": Row(
        annotations=BOB,
        asked={"user": CONTROLLER},
        reason=f"user {CONTROLLER} with groups [dev] may not set the annotation {USER}",
    ),
    "an external user may": Row(
        annotations=BOB, data={f"{ACCESS}externalUsers": "^x$,^an"}, expected_annotations={**BOB, **YES}
    ),
    "a member of an external group may": Row(
        annotations=BOB,
        data={f"{ACCESS}externalGroups": "^gateways$"},
        asked={"groups": ("dev", "gateways")},
        expected_annotations={**BOB, **YES},
    ),
    "a member of a group that resembles it may not": Row(
        annotations=BOB,
        data={f"{ACCESS}externalGroups": "^gateways$"},
        asked={"groups": ("gateways-2",)},
        reason=f"user ann with groups [gateways-2] may not set the annotation {USER}",
    ),
    "everybody may where nothing is checked": Row(
        annotations=BOB, data={f"{ACCESS}bypassAuth": "true"}, expected_annotations={**BOB, **YES}
    ),
    "no user is added where nothing is checked": Row(
        data={f"{ACCESS}bypassAuth": "true"}, expected_annotations=YES
    ),
    "a user may not in a namespace that passes either": Row(
        annotations=BOB,
        asked={"namespace": "kube-system"},
        reason=f"user ann with groups [dev] may not set the annotation {USER}",
    ),
    "a user may not in a pod of the scheduler either": Row(
        labels={"app": "yunikorn"},
        annotations=BOB,
        reason=f"user ann with groups [dev] may not set the annotation {USER}",
    ),
}


@pytest.mark.parametrize("case", PODS.values(), ids=PODS)
def test_a_pod_is_marked_when_it_is_created(case: Row) -> None:
    """Or denied, if it names a user and its creator may not do that."""
    metadata = {"name": "p", "labels": dict(case.labels), "annotations": dict(case.annotations), **case.more}
    pod = {"metadata": metadata, "spec": {"containers": [], **case.spec}}

    verdict = answered(a_review("Pod", pod, **case.asked), case.data, case.namespace)

    assert (not case.reason, case.reason) == (verdict.is_allowed, verdict.reason)
    if verdict.is_allowed:
        result = patched(pod, patch_of(json.loads(encoded_review("u", verdict))))
        signature = result["metadata"]["annotations"].pop(SIGNATURE, "")
        is_checked = f"{ACCESS}bypassAuth" not in case.data
        text = case.expected_annotations.get(USER, "") if is_checked else ""
        subject = Subject("Pod", str(case.asked.get("namespace", "team")) or "default", "p")
        assert (SIGNER.signature(subject, text) if text else "") == signature
        assert case.expected_labels == result["metadata"]["labels"]
        assert case.expected_annotations == result["metadata"]["annotations"]
        assert case.scheduler == result["spec"].get("schedulerName", "")


def test_a_pod_without_labels_and_annotations_gets_both() -> None:
    """The objects that hold them are added whole."""
    pod = {"metadata": {"name": "p"}, "spec": {}}

    verdict = answered(a_review("Pod", pod), {}, {})

    metadata = patched(pod, [dict(each) for each in verdict.patch])["metadata"]
    metadata["annotations"].pop(SIGNATURE)
    assert {"name": "p", "labels": GENERATED, "annotations": {**ANN, **YES}} == metadata


BAD_USERS: Final = {
    "an empty text": "",
    "no JSON": "bob",
    "no object": '"bob"',
    "a user that is no text": '{"user":1}',
    "deeper than can be read": "[" * 100_000,
}


@pytest.mark.parametrize("text", BAD_USERS.values(), ids=BAD_USERS)
def test_a_user_that_cannot_be_read_is_denied(text: str) -> None:
    """Also of a system user."""
    pod = {"metadata": {"annotations": {USER: text}}, "spec": {}}

    verdict = answered(a_review("Pod", pod, user=CONTROLLER), {}, {})

    assert not verdict.is_allowed
    assert f"the annotation {USER} cannot be used" in verdict.reason
