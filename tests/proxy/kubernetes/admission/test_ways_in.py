"""Ways to have a pod run for somebody else: each with what it leads to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec
import pytest
from support.kubernetes.reviews import a_review, patched

from licorne.proxy.kubernetes.admission.marking import Marking
from licorne.proxy.kubernetes.admission.reviews import request_of
from licorne.proxy.kubernetes.admission.settings import admission_settings
from licorne.proxy.kubernetes.admission.templates import templates_of
from licorne.proxy.kubernetes.mapping.applications import refused_user, user_and_groups
from licorne.proxy.kubernetes.mapping.settings import KubernetesSettings, UnsignedUsers, is_ours
from licorne.proxy.kubernetes.mapping.user_signatures import UserSigner
from licorne.proxy.kubernetes.objects import ConfigMap, ObjectMeta, Pod

USER: Final = "yunikorn.apache.org/user.info"
ROOT: Final = {USER: '{"user":"root","groups":["admins"]}'}
SIGNER: Final = UserSigner(b"k" * 32)
UNSIGNED: Final = "admissionController.accessControl.unsignedUsers"
SYSTEM: Final = "system:serviceaccount:kube-system:"
OWN: Final = "its creator"


class Nothing:
    """A cluster of which nothing is known."""

    def namespace(self, _: str) -> None:
        return None

    def priority_class(self, _: str) -> None:
        return None


def written(kind: str, document: Mapping[str, Any], user: str, **data: str) -> dict[str, Any] | None:
    """Return an object as it is after the webhook, `None` if it is denied."""
    maps = ConfigMap(metadata=ObjectMeta(name="yunikorn-configs"), data=data)
    marking = Marking("licorne", admission_settings(None, maps), Nothing(), SIGNER)
    review = a_review(kind, document, user=user, groups=())
    verdict = marking.verdict(request_of(json.dumps(review).encode()))
    return patched(document, [dict(each) for each in verdict.patch]) if verdict.is_allowed else None


def an_object(kind: str, name: str, annotations: Mapping[str, str], **metadata: Any) -> dict[str, Any]:
    """Return a pod, or a workload with a template that has the annotations."""
    inner = {"metadata": {"annotations": dict(annotations)}, "spec": {"containers": []}}
    own = {"name": name, **metadata}
    match kind:
        case "Pod":
            return {**inner, "metadata": {**own, "annotations": dict(annotations)}}
        case "PodTemplate":
            return {"metadata": own, "template": inner}
        case "CronJob":
            return {"metadata": own, "spec": {"jobTemplate": {"spec": {"template": inner}}}}
        case "JobSet":
            jobs = [{"name": "workers", "template": {"spec": {"template": inner}}}]
            return {"metadata": own, "spec": {"replicatedJobs": jobs}}
        case "RayCluster":
            return {"metadata": own, "spec": ray_cluster(inner)}
        case "RayJob":
            return {"metadata": own, "spec": {"rayClusterSpec": ray_cluster(inner)}}
        case "RayService":
            return {"metadata": own, "spec": {"rayClusterConfig": ray_cluster(inner)}}
        case _:
            return {"metadata": own, "spec": {"template": inner}}


def ray_cluster(template: Mapping[str, Any]) -> dict[str, Any]:
    """Return the specification of a Ray cluster with a group of workers."""
    workers = [{"groupName": "workers", "template": template}]
    return {"headGroupSpec": {"template": template}, "workerGroupSpecs": workers}


def template_of(kind: str, workload: Mapping[str, Any]) -> dict[str, Any]:
    """Return the template of pods in a workload, or the last one of several."""
    raw = msgspec.Raw(json.dumps(workload).encode())
    *_, last = templates_of(kind, raw).values()
    found: dict[str, Any] = json.loads(bytes(last.raw))
    return found


def made_by(
    owner_kind: str, owner: Mapping[str, Any], kind: str, name: str, **metadata: Any
) -> dict[str, Any]:
    """Return what a controller makes of a workload: it copies the annotations of the template."""
    reference = {"kind": owner_kind, "name": owner["metadata"]["name"], "uid": "u", "controller": True}
    annotations = template_of(owner_kind, owner)["metadata"].get("annotations", {})
    return an_object(kind, name, annotations, ownerReferences=[reference], **metadata)


def runs_for(pod: Mapping[str, Any] | None, unsigned: UnsignedUsers | None = None) -> str:
    """Return the user of a pod in the scheduler; why it waits; or that it was denied."""
    if pod is None:
        return "denied"
    settings = KubernetesSettings(signer=SIGNER, unsigned_users=unsigned)
    read = msgspec.convert({**pod, "metadata": {**pod["metadata"], "namespace": "team"}}, Pod)
    return "refused" if refused_user(read, settings) else user_and_groups(read, settings).user


class Way(NamedTuple):
    """What somebody makes, who makes pods of it, and the user of those."""

    kind: str
    annotations: Mapping[str, str] = {}
    user: str = "mallory"
    is_webhook_up: bool = True
    """When the workload is made; it is up when its pods are made."""
    between: str = ""
    """What a controller makes of the workload, and of which it makes pods."""
    expected: str = "mallory"
    operator: str = f"{SYSTEM}controller"
    """The account of the controller."""


OPERATED: Final = (
    ("JobSet", "Job"),
    ("RayCluster", ""),
    ("RayJob", "RayCluster"),
    ("RayService", "RayCluster"),
)
OPERATOR: Final = "system:serviceaccount:operators:operator"
WAYS: Final = {
    **{
        f"the template of a {kind} names root": Way(kind, ROOT, expected="denied")
        for kind in (
            *("Pod", "Deployment", "DaemonSet", "StatefulSet", "ReplicaSet", "Job", "CronJob"),
            *("ReplicationController", "PodTemplate", *(kind for kind, _ in OPERATED)),
        )
    },
    **{
        f"the template of a {kind} named root while the webhook was down": Way(
            kind, ROOT, is_webhook_up=False, between=between, expected="nobody"
        )
        for kind, between in (
            *(("Deployment", "ReplicaSet"), ("DaemonSet", ""), ("StatefulSet", ""), ("ReplicaSet", "")),
            *(("Job", ""), ("CronJob", "Job"), ("ReplicationController", "")),
        )
    },
    **{
        f"the pods of a {kind} run for who made it": Way(kind, between=between)
        for kind, between in (
            *(("Deployment", "ReplicaSet"), ("DaemonSet", ""), ("StatefulSet", ""), ("ReplicaSet", "")),
            *(("Job", ""), ("CronJob", "Job"), ("ReplicationController", "")),
        )
    },
    **{
        f"the pods of a {kind} run for who made it, if its operator is trusted": Way(kind, between=between)
        for kind, between in OPERATED
    },
    **{
        f"the pods of a {kind} run for its operator otherwise": Way(
            kind, between=between, operator=OPERATOR, expected=OPERATOR
        )
        for kind, between in OPERATED
    },
    "an account beside the controllers names root": Way("Pod", ROOT, f"{SYSTEM}robot", expected="denied"),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_way_in_leads_to_nobody_else(way: Way) -> None:
    """To who makes the object, to `nobody`, or to a denial."""
    made: dict[str, Any] | None = an_object(way.kind, "w", way.annotations)
    if way.is_webhook_up:
        made = written(way.kind, made or {}, way.user)
    kind = way.kind
    if made is not None and way.between:
        made = written(way.between, made_by(kind, made, way.between, "w-5f6c"), way.operator)
        kind = way.between
    if made is not None and kind not in {"Pod", "PodTemplate"}:
        labels = {"labels": {"pod-template-hash": "5f6c"}} if kind == "ReplicaSet" and way.between else {}
        pod = made_by(kind, made, "Pod", "", generateName="w-", **labels)
        made = written("Pod", pod, f"{SYSTEM}controller" if kind == "Job" else way.operator)

    assert way.expected == runs_for(made)


def test_what_is_copied_from_another_workload_is_worth_nothing() -> None:
    """Who reads the template of a Deployment can write its annotations into one of his own."""
    of_root = written("Deployment", an_object("Deployment", "web", {}), "root")
    assert of_root is not None
    copied = of_root["spec"]["template"]["metadata"]["annotations"]

    assert written("Deployment", an_object("Deployment", "mine", copied), "mallory") is None

    unseen = an_object("Job", "mine", copied)
    pod = written("Pod", made_by("Job", unseen, "Pod", "mine-1"), f"{SYSTEM}job-controller")

    assert "nobody" == runs_for(pod)
    assert "nobody" == runs_for(an_object("Pod", "mine", copied))


def test_an_owner_that_somebody_writes_himself_is_no_way() -> None:
    """Only a controller is believed that it makes a pod for a workload."""
    of_root = written("Job", an_object("Job", "job", {}), "root")
    assert of_root is not None

    assert written("Pod", made_by("Job", of_root, "Pod", "job-1"), "mallory") is None


MIRROR: Final = {"kubernetes.io/config.mirror": "hash"}
OF_NODE: Final = [{"kind": "Node", "name": "n1", "uid": "u", "controller": True}]


@pytest.mark.parametrize(("user", "is_foreign"), [("system:node:n1", True), ("mallory", False)])
def test_a_mirror_of_a_static_pod_is_made_by_a_kubelet(user: str, *, is_foreign: bool) -> None:
    """It stays as it is, and is not scheduled; a user cannot leave the queues by its annotation."""
    document = an_object("Pod", "p", MIRROR, ownerReferences=OF_NODE)
    document["spec"] |= {"nodeName": "n1", "schedulerName": "licorne"}
    pod = written("Pod", document, user)

    assert (pod == document) is is_foreign
    assert is_ours(msgspec.convert(pod, Pod), KubernetesSettings("licorne")) is not is_foreign


def test_a_name_that_the_api_server_makes_is_recognized() -> None:
    """The webhook sees the beginning alone when the workload is created."""
    job = written("Job", an_object("Job", "", {}, generateName="train-"), "mallory")
    assert job is not None
    job["metadata"]["name"] = "train-x7k2p"

    pod = written("Pod", made_by("Job", job, "Pod", "", generateName="train-x7k2p-"), f"{SYSTEM}job")
    assert pod is not None
    pod["metadata"]["name"] = "train-x7k2p-9d4fz"

    assert "mallory" == runs_for(pod)


UNSIGNED_PODS: Final = {
    UnsignedUsers.BELIEVED: "root",
    UnsignedUsers.NOBODY: "nobody",
    UnsignedUsers.REFUSED: "refused",
    None: "nobody",
}


@pytest.mark.parametrize("setting", UNSIGNED_PODS, ids=str)
def test_a_pod_that_was_made_while_the_webhook_was_down(setting: UnsignedUsers | None) -> None:
    """With `failurePolicy: Ignore` it is created as it is; the scheduler has the last word."""
    assert UNSIGNED_PODS[setting] == runs_for(an_object("Pod", "p", ROOT), setting)


UNSIGNED_WORKLOADS: Final = {"believed": "root", "nobody": "nobody", "refused": "denied"}


@pytest.mark.parametrize("setting", UNSIGNED_WORKLOADS)
def test_a_workload_that_was_made_while_the_webhook_was_down(setting: str) -> None:
    """Its pods are made when the webhook is back."""
    pod = made_by("Job", an_object("Job", "w", ROOT), "Pod", "w-1")

    assert UNSIGNED_WORKLOADS[setting] == runs_for(written("Pod", pod, f"{SYSTEM}job", **{UNSIGNED: setting}))


def test_nothing_is_asked_of_pods_where_everybody_may_name_a_user() -> None:
    """The webhook signs nothing then."""
    settings = KubernetesSettings(signer=SIGNER, bypass_auth=True)
    pod = msgspec.convert(an_object("Pod", "p", ROOT), Pod)

    assert "root" == user_and_groups(pod, settings).user
