"""What the templates of workloads get, which updates are denied, and questions that cannot be read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import pytest
from support.kubernetes.reviews import a_review, patched

from licorne.proxy.kubernetes.admission.marking import Marking
from licorne.proxy.kubernetes.admission.reviews import (
    ADMITTED,
    AdmissionVerdict,
    UnreadableReviewError,
    denied,
    encoded_review,
    request_of,
)
from licorne.proxy.kubernetes.admission.settings import admission_settings
from licorne.proxy.kubernetes.mapping.user_signatures import SIGNATURE, Subject, UserSigner
from licorne.proxy.kubernetes.objects import ConfigMap, ObjectMeta

USER: Final = "yunikorn.apache.org/user.info"
ANN: Final = {USER: '{"user":"ann","groups":["dev"]}'}
BOB: Final = {USER: '{"user":"bob"}'}
CONTROLLER: Final = "system:serviceaccount:kube-system:deployment-controller"
SIGNER: Final = UserSigner(b"k" * 32)
FILTERING: Final = "admissionController.filtering."
BYPASS: Final = {"admissionController.accessControl.bypassAuth": "true"}
REFUSED: Final = f"user ann with groups [dev] may not set the annotation {USER}"


class Unknown:
    """A cluster of which nothing is known."""

    def namespace(self, _: str) -> None:
        return None

    def priority_class(self, _: str) -> None:
        return None


def answered(review: Mapping[str, Any], data: Mapping[str, str]) -> AdmissionVerdict:
    """Return the verdict under some settings."""
    maps = ConfigMap(metadata=ObjectMeta(name="yunikorn-configs"), data=dict(data))
    marking = Marking("yunikorn", admission_settings(None, maps), Unknown(), SIGNER)
    return marking.verdict(request_of(json.dumps(review).encode()))


def a_workload(kind: str, template: Mapping[str, Any]) -> dict[str, Any]:
    """Return a workload with a template of pods."""
    spec: dict[str, Any] = {"template": {**template, "spec": {"containers": []}}}
    if kind == "PodTemplate":
        return {"metadata": {"name": "w"}, **spec}
    if kind == "CronJob":
        spec = {"schedule": "@daily", "jobTemplate": {"spec": spec}}
    return {"metadata": {"name": "w"}, "spec": spec}


KINDS: Final = (
    *("Deployment", "DaemonSet", "StatefulSet", "ReplicaSet", "Job", "CronJob"),
    *("ReplicationController", "PodTemplate"),
)


class Row(NamedTuple):
    """A workload that is created, and the annotations of its template then."""

    template: Mapping[str, Any] = {"metadata": {"labels": {"app": "w"}}}
    kind: str = "Deployment"
    data: Mapping[str, str] = {}
    asked: Mapping[str, Any] = {}
    owner: str = ""
    expected: Mapping[str, str] | None = ANN
    reason: str = ""


WORKLOADS: Final = {
    **{f"the pods of a {kind} run for who creates it": Row(kind=kind) for kind in KINDS},
    "other annotations stay": Row(
        {"metadata": {"annotations": {"note": "x"}}}, expected={"note": "x", **ANN}
    ),
    "a template without metadata gets them": Row({}),
    "a template of a CronJob without metadata gets them": Row({}, "CronJob"),
    "a template with empty metadata gets annotations": Row({"metadata": {}}),
    "a replica set of a controller passes": Row(
        kind="ReplicaSet", owner="Deployment", asked={"user": CONTROLLER}, expected=None
    ),
    "it passes also where controllers are not trusted": Row(
        kind="ReplicaSet",
        owner="Deployment",
        data={"admissionController.accessControl.trustControllers": "false"},
        asked={"user": CONTROLLER},
        expected=None,
    ),
    "it is not changed for who may name users either": Row(
        {"metadata": {"annotations": BOB}},
        kind="ReplicaSet",
        owner="Deployment",
        data={"admissionController.accessControl.externalUsers": "^ann$"},
        expected=BOB,
    ),
    "nor for others": Row(kind="ReplicaSet", owner="Deployment", expected=None),
    "a job of a controller runs for the controller": Row(
        kind="Job",
        asked={"user": CONTROLLER, "groups": ()},
        expected={USER: json.dumps({"user": CONTROLLER, "groups": []}, separators=(",", ":"))},
    ),
    "a user may not name another one": Row({"metadata": {"annotations": BOB}}, reason=REFUSED),
    "a user may not in a namespace that passes either": Row(
        {"metadata": {"annotations": BOB}}, asked={"namespace": "kube-system"}, reason=REFUSED
    ),
    "everybody may where nothing is checked": Row(
        {"metadata": {"annotations": BOB}}, data=BYPASS, expected=BOB
    ),
    "no user is added where nothing is checked": Row(data=BYPASS, expected=None),
    "workloads of the system's namespace pass": Row(asked={"namespace": "kube-system"}, expected=None),
    "without an application they pass where nothing is labelled": Row(
        data={f"{FILTERING}noLabelNamespaces": "team"}, expected=None
    ),
    "with one they do not": Row(
        {"metadata": {"labels": {"applicationId": "etl"}}}, data={f"{FILTERING}noLabelNamespaces": "team"}
    ),
    "with an application of spark they do not": Row(
        {"metadata": {"labels": {"spark-app-selector": "s"}}},
        data={f"{FILTERING}noLabelNamespaces": "team"},
    ),
    "with one in a namespace that is not processed they pass": Row(
        {"metadata": {"labels": {"applicationId": "etl"}}},
        data={f"{FILTERING}processNamespaces": "^other$"},
        expected=None,
    ),
}


@pytest.mark.parametrize("case", WORKLOADS.values(), ids=WORKLOADS)
def test_the_template_of_a_workload_names_its_user(case: Row) -> None:
    """So that its pods do, which a controller creates."""
    workload = a_workload(case.kind, case.template)
    if case.owner:
        owner = {"kind": case.owner, "name": "o", "controller": True}
        workload["metadata"]["ownerReferences"] = [owner]

    verdict = answered(a_review(case.kind, workload, **case.asked), case.data)

    assert (not case.reason, case.reason) == (verdict.is_allowed, verdict.reason)
    if verdict.is_allowed:
        annotations = annotations_of(case.kind, patched(workload, [dict(each) for each in verdict.patch]))
        signature = (annotations or {}).pop(SIGNATURE, "")
        is_signed = case.data != BYPASS and not case.owner
        text = (case.expected or {}).get(USER, "") if is_signed else ""
        subject = Subject(case.kind, case.asked.get("namespace", "team"), "w")
        assert case.expected == annotations
        assert (SIGNER.signature(subject, text) if text else "") == signature


def annotations_of(kind: str, workload: Mapping[str, Any]) -> dict[str, str] | None:
    """Return the annotations in the template of a workload."""
    spec = workload if kind == "PodTemplate" else workload["spec"]
    template = (spec["jobTemplate"]["spec"] if kind == "CronJob" else spec)["template"]
    found: dict[str, str] | None = template.get("metadata", {}).get("annotations")
    return found


def pod(annotations: Mapping[str, str], **labels: str) -> dict[str, Any]:
    return {"metadata": {"annotations": dict(annotations), "labels": labels}, "spec": {"containers": []}}


def signed(annotations: Mapping[str, str], kind: str = "Deployment", name: str = "w") -> dict[str, str]:
    """Return annotations with the signature of their user."""
    signature = SIGNER.signature(Subject(kind, "team", name), annotations[USER])
    return {**annotations, SIGNATURE: signature}


FIXED: Final = denied(f"the annotation {USER} of a pod cannot be changed")
UPDATES: Final = {
    "the user of a pod cannot be changed": ("Pod", pod(ANN), pod(BOB), {}, FIXED),
    "nor exchanged": ("Pod", pod(ANN), pod(BOB, app="yunikorn"), {}, FIXED),
    "nor added": ("Pod", pod({}), pod(ANN), {}, FIXED),
    "nor by a controller": ("Pod", pod(ANN), pod(BOB), {"user": CONTROLLER}, FIXED),
    "nor in a namespace that passes": ("Pod", pod(ANN), pod(BOB), {"namespace": "kube-system"}, FIXED),
    "other annotations can be changed": ("Pod", pod(ANN), pod({**ANN, "note": "x"}), {}, ADMITTED),
    "a pod that is not marked stays so": ("Pod", pod({}), pod({"note": "x"}), {}, ADMITTED),
    "an update of a workload whose user is signed passes": (
        "Deployment",
        a_workload("Deployment", pod(signed(ANN))),
        a_workload("Deployment", pod({**signed(ANN), "note": "x"})),
        {"user": "bob"},
        ADMITTED,
    ),
    "one that changes no template passes": (
        "Deployment",
        a_workload("Deployment", pod({})),
        {**a_workload("Deployment", pod({})), "status": {}},
        {},
        ADMITTED,
    ),
    "the template of a job cannot be changed": (
        "Job",
        a_workload("Job", pod({})),
        a_workload("Job", pod({"note": "x"})),
        {},
        ADMITTED,
    ),
    "controllers change templates without becoming their users": (
        "Deployment",
        a_workload("Deployment", pod({})),
        a_workload("Deployment", pod({"note": "x"})),
        {"user": CONTROLLER},
        ADMITTED,
    ),
    "the user of a workload cannot be changed by one who may not name it": (
        "CronJob",
        a_workload("CronJob", pod(ANN)),
        a_workload("CronJob", pod(BOB)),
        {},
        denied(REFUSED),
    ),
    "so does one of any other kind": ("Widget", {}, {}, {}, ADMITTED),
}


@pytest.mark.parametrize("case", UPDATES.values(), ids=UPDATES)
def test_an_update_passes_unless_it_changes_the_user(
    case: tuple[str, dict[str, Any], dict[str, Any], dict[str, Any], AdmissionVerdict],
) -> None:
    """Nothing is added then."""
    kind, old, new, asked, expected = case

    assert expected == answered(a_review(kind, new, old=old, **asked), {})


REWRITTEN: Final = {
    "a user that is taken away from a pod is put back": ("Pod", signed(ANN), {}, signed(ANN)),
    "so is one beside others": ("Pod", signed(ANN), {"note": "x"}, {"note": "x", **signed(ANN)}),
    "so is the signature": ("Pod", signed(ANN), ANN, signed(ANN)),
    "a user that is taken away from a workload is put back": ("Deployment", signed(ANN), {}, signed(ANN)),
    "so is the signature of a workload": ("CronJob", signed(ANN, "CronJob"), ANN, signed(ANN, "CronJob")),
    "who changes a template without user is its user": (
        "Deployment",
        {},
        {"n": "x"},
        {"n": "x", **signed(ANN)},
    ),
    "so is who changes one whose user is not signed": (
        "Deployment",
        BOB,
        {**BOB, "n": "x"},
        {"n": "x", **signed(ANN)},
    ),
    "and one whose signature is that of another workload": (
        "Deployment",
        signed(BOB, name="v"),
        {**signed(BOB, name="v"), "n": "x"},
        {"n": "x", **signed(ANN)},
    ),
}


@pytest.mark.parametrize("case", REWRITTEN.values(), ids=REWRITTEN)
def test_an_update_leaves_no_user_out(
    case: tuple[str, dict[str, str], dict[str, str], dict[str, str]],
) -> None:
    """What was signed stays, and what was not is rewritten."""
    kind, before, after, expected = case
    old, new = (
        pod(each) if kind == "Pod" else a_workload(kind, {"metadata": {"annotations": each}})
        for each in (before, after)
    )

    verdict = answered(a_review(kind, new, old=old), {})

    changed = patched(new, [dict(each) for each in verdict.patch])
    found = changed["metadata"]["annotations"] if kind == "Pod" else annotations_of(kind, changed)
    assert (True, expected) == (verdict.is_allowed, found)


def a_ray_cluster(**groups: Mapping[str, str]) -> dict[str, Any]:
    """Return a Ray cluster of ann, with groups of workers and the annotations of their templates."""
    workers = [{"groupName": name, "template": pod(each)} for name, each in groups.items()]
    head = {"template": pod(signed(ANN, "RayCluster"))}
    return {"metadata": {"name": "w"}, "spec": {"headGroupSpec": head, "workerGroupSpecs": workers}}


def test_each_template_of_a_workload_keeps_its_user() -> None:
    """Templates are known by their names: others may come before them, and a new one is of its author."""
    of_ann, of_bob = signed(ANN, "RayCluster"), signed(BOB, "RayCluster")
    old = a_ray_cluster(a=of_ann, b=of_bob)
    new = a_ray_cluster(new={}, b={}, a=of_ann)

    verdict = answered(a_review("RayCluster", new, old=old), {})

    changed = patched(new, [dict(each) for each in verdict.patch])
    assert a_ray_cluster(new=of_ann, b=of_bob, a=of_ann) == changed


@pytest.mark.parametrize("names", [("a", "b", "c"), ("a", "a", "a"), ("2", "a", "a"), ("a", "1", "a")])
def test_one_template_that_names_another_user_denies_the_workload(names: tuple[str, ...]) -> None:
    """Whatever the names of the others are."""
    for named in range(3):
        cluster = a_ray_cluster()
        cluster["spec"]["workerGroupSpecs"] = [
            {"groupName": name, "template": pod(BOB if number == named else {})}
            for number, name in enumerate(names)
        ]

        assert denied(REFUSED) == answered(a_review("RayCluster", cluster), {})


def test_an_operator_that_changes_no_template_changes_no_user() -> None:
    """An autoscaler sets how many workers a cluster has."""
    old = a_ray_cluster(a={})
    new = {**old, "spec": {**old["spec"], "suspend": True}}

    assert ADMITTED == answered(a_review("RayCluster", new, old=old, user="operator"), {})


@pytest.mark.parametrize("operation", ["DELETE", "CONNECT"])
def test_other_operations_pass(operation: str) -> None:
    """A registration that asks about more than it needs does no harm."""
    review = a_review("Pod", pod({}))
    review["request"]["operation"] = operation

    assert answered(review, {}) == ADMITTED


def test_the_creation_of_another_kind_passes() -> None:
    """It may have any shape."""
    assert answered(a_review("Widget", {"spec": 1}), {}) == ADMITTED


UNREADABLE: Final = {
    "no JSON": (b"{", "the body is not an AdmissionReview"),
    "no request": (b'{"apiVersion":"admission.k8s.io/v1"}', "missing required field `request`"),
    "another version": (
        json.dumps({**a_review("Pod", pod({})), "apiVersion": "admission.k8s.io/v1beta1"}).encode(),
        "the review is of 'admission.k8s.io/v1beta1', not of admission.k8s.io/v1",
    ),
    "deeper than can be read": (b'{"request":' + b"[" * 100_000, "the body is not an AdmissionReview"),
}


@pytest.mark.parametrize("case", UNREADABLE.values(), ids=UNREADABLE)
def test_a_question_that_cannot_be_read_has_no_answer(case: tuple[bytes, str]) -> None:
    """The failure policy decides."""
    body, text = case

    with pytest.raises(UnreadableReviewError) as caught:
        request_of(body)

    assert text in str(caught.value)


NULLS: Final = {
    "a template as older API servers write it": {
        "metadata": {"creationTimestamp": None, "labels": {"a": "b"}}
    },
    "no annotations": {"metadata": {"annotations": None, "ownerReferences": None}},
    "no metadata": {"metadata": None},
}


@pytest.mark.parametrize("template", NULLS.values(), ids=NULLS)
def test_null_is_as_nothing(template: dict[str, Any]) -> None:
    """What could not be read would pass without a judgement."""
    workload = a_workload("Deployment", template)

    verdict = answered(a_review("Deployment", workload), {})

    assert (True, 1) == (verdict.is_allowed, len(verdict.patch))
    assert "add" == verdict.patch[0]["op"]


def test_null_hides_no_user() -> None:
    """It is denied as without."""
    metadata = {"creationTimestamp": None, "annotations": BOB}

    assert denied(REFUSED) == answered(a_review("Pod", {"metadata": metadata, "spec": {"volumes": None}}), {})


OBJECTS: Final = {
    "a pod that is a list": ("Pod", []),
    "a workload whose template is a list": ("Job", {"spec": {"template": []}}),
    "a workload whose specification is a text": ("Job", {"spec": "x"}),
    "a pod whose labels are numbers": ("Pod", {"metadata": {"labels": {"a": 1}}}),
}


@pytest.mark.parametrize("case", OBJECTS.values(), ids=OBJECTS)
def test_an_object_that_cannot_be_read_has_no_answer(case: tuple[str, Any]) -> None:
    """An API server sends none: it has checked the shape."""
    kind, document = case

    with pytest.raises(UnreadableReviewError, match="the object cannot be read as"):
        answered(a_review(kind, document), {})


def test_an_answer_has_the_uid_of_its_question_and_the_reason() -> None:
    """Warnings are cut where the API server would cut them."""
    verdict = AdmissionVerdict(is_allowed=False, reason="no", warnings=("w" * 300,))

    answer = json.loads(encoded_review("question-1", verdict))

    status = {"code": 403, "reason": "Forbidden", "message": "no"}
    expected = {"uid": "question-1", "allowed": False, "status": status, "warnings": ["w" * 256]}
    assert expected == answer["response"]
    assert ("admission.k8s.io/v1", "AdmissionReview") == (answer["apiVersion"], answer["kind"])
