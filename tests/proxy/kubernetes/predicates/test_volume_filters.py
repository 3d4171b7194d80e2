"""Storage refuses a pod where its volumes cannot be reached, and where this scheduler would have to guess."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
import pytest
from support.kubernetes.held_view import HeldView
from support.kubernetes.placing import ZONE, a_node, a_pod, term

from licorne.proxy.kubernetes.objects import (
    SELECTED_NODE,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from licorne.proxy.kubernetes.predicates.volume_filters import (
    claim_keys,
    refused_by_binding,
    refused_by_disks,
    refused_by_zone,
    refused_for_devices,
    refused_on_every_node,
    users_of_exclusive_claims,
)
from licorne.proxy.kubernetes.storage_objects import CsiDriver, CsiStorageCapacity

MOUNTED = [{"name": "disk", "persistentVolumeClaim": {"claimName": "c"}}]
EPHEMERAL = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}}]
BOUND = {"spec": {"volumeName": "v"}, "status": {"phase": "Bound"}}
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"


def a_view(
    claim: dict[str, Any] | None = None,
    volume: dict[str, Any] | None = None,
    storage_class: dict[str, Any] | None = None,
    key: str = "blue/c",
) -> HeldView:
    """Return a view with these objects; metadata are added where there are none."""
    view = HeldView()
    if claim is not None:
        view.claims[key] = msgspec.convert({"metadata": {"name": "c"}, **claim}, PersistentVolumeClaim)
    if volume is not None:
        view.volumes["v"] = msgspec.convert({"metadata": {"name": "v"}, **volume}, PersistentVolume)
    if storage_class is not None:
        view.storage_classes["fast"] = msgspec.convert(
            {"metadata": {"name": "fast"}, **storage_class}, StorageClass
        )
    return view


def of_class(name: str | None = "fast", **annotations: str) -> dict[str, Any]:
    return {"metadata": {"annotations": annotations}, "spec": {"storageClassName": name}}


def made_in(*zones: str) -> dict[str, Any]:
    """Return the topologies of a class that makes volumes in these zones."""
    terms = [{"matchLabelExpressions": [{"key": ZONE, "values": [zone]}]} for zone in zones]
    return {"allowedTopologies": terms}


WAITING = {"volumeBindingMode": "WaitForFirstConsumer", "provisioner": "disk.example"}
STATIC = {"volumeBindingMode": "WaitForFirstConsumer", "provisioner": "kubernetes.io/no-provisioner"}


def reachable_from(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": list(terms)}}}}


class BindingCase(NamedTuple):
    """What there is of storage for a pod with the claim `c`, and why a node in the zone `east` is refused."""

    view: HeldView
    refusal: str | None


NOT_BOUND = "the claim blue/c is not bound yet"
BINDING_CASES = {
    "the claim is missing": BindingCase(a_view(), "the claim blue/c does not exist"),
    "the claim has lost its volume": BindingCase(
        a_view({"spec": {"volumeName": "v"}, "status": {"phase": "Lost"}}),
        "the claim blue/c has lost its volume",
    ),
    "the claim is being deleted": BindingCase(
        a_view({**BOUND, "metadata": {"deletionTimestamp": "2026-11-28T08:46:11Z"}}),
        "the claim blue/c is being deleted",
    ),
    "the volume is missing": BindingCase(a_view(BOUND), "the volume v of the claim blue/c does not exist"),
    "the volume can be reached from everywhere": BindingCase(a_view(BOUND, {}), None),
    "the volume has an empty affinity": BindingCase(a_view(BOUND, {"spec": {"nodeAffinity": {}}}), None),
    "the volume can be reached from the zone": BindingCase(
        a_view(BOUND, reachable_from(term(ZONE, "In", "east"))), None
    ),
    "the volume cannot be reached from the zone": BindingCase(
        a_view(BOUND, reachable_from(term(ZONE, "In", "west"))),
        "the volume v of the claim blue/c cannot be reached from the node",
    ),
    "the names of nodes are not looked at": BindingCase(
        a_view(
            BOUND,
            reachable_from(
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["other"]}]}
            ),
        ),
        None,
    ),
    "a volume is named and not bound": BindingCase(
        a_view({"spec": {"volumeName": "v"}, "status": {"phase": "Pending"}}, {}), NOT_BOUND
    ),
    "no class is named": BindingCase(a_view(of_class(None)), NOT_BOUND),
    "the class is missing": BindingCase(a_view(of_class()), NOT_BOUND),
    "the class binds at once": BindingCase(a_view(of_class(), None, {}), NOT_BOUND),
    "the class waits for a pod, and makes volumes everywhere": BindingCase(
        a_view(of_class(), None, WAITING), None
    ),
    "the class makes volumes in the zone": BindingCase(
        a_view(of_class(), None, WAITING | made_in("west", "east")), None
    ),
    "the class makes no volumes in the zone": BindingCase(
        a_view(of_class(), None, WAITING | made_in("west")),
        "the class fast of the claim blue/c makes no volumes for the node",
    ),
    "a volume is being made for this node": BindingCase(
        a_view(of_class(**{SELECTED_NODE: "n1"}), None, WAITING), None
    ),
    "a volume is being made for another node": BindingCase(
        a_view(of_class(**{SELECTED_NODE: "other"}), None, WAITING),
        "the claim blue/c is being given a volume for node other",
    ),
    "the class chooses among volumes that exist": BindingCase(
        a_view(of_class(), None, STATIC),
        "the claim blue/c needs a volume that exists already, and this scheduler does not choose volumes",
    ),
    "the annotation of old claims names the class": BindingCase(
        a_view(of_class("other", **{"volume.beta.kubernetes.io/storage-class": "fast"}), None, WAITING),
        None,
    ),
    "a volume is named in a class that waits": BindingCase(
        a_view({"spec": {"volumeName": "v", "storageClassName": "fast"}}, {}, WAITING), NOT_BOUND
    ),
}


@pytest.mark.parametrize("case", BINDING_CASES.values(), ids=BINDING_CASES)
def test_a_pod_waits_for_claims_and_goes_where_its_volumes_are(case: BindingCase) -> None:
    """A claim must be bound, and the node must reach its volume."""
    pod, node = a_pod(volumes=MOUNTED), a_node(labels={ZONE: "east"})

    assert case.refusal == refused_by_binding(pod, node, case.view)


ROOM: dict[str, tuple[dict[str, Any], bool]] = {
    "enough": ({"capacity": "2Gi"}, True),
    "too little": ({"capacity": "1Gi"}, False),
    "enough, and no volume may be as large": ({"capacity": "9Gi", "maximumVolumeSize": "1Gi"}, False),
    "on other nodes": ({"capacity": "9Gi", "nodeTopology": {"matchLabels": {ZONE: "west"}}}, False),
    "on no node": ({"capacity": "9Gi", "nodeTopology": None}, False),
    "of another class": ({"capacity": "9Gi", "storageClassName": "slow"}, False),
    "unknown": ({}, False),
}


@pytest.mark.parametrize("published", [True, False])
@pytest.mark.parametrize("case", ROOM.values(), ids=ROOM)
def test_a_volume_is_made_where_its_driver_has_room(
    case: tuple[dict[str, Any], bool], *, published: bool
) -> None:
    """If the driver publishes its room."""
    room, has_room = case
    claim = of_class()
    claim["spec"]["resources"] = {"requests": {"storage": "2Gi"}}
    view = a_view(claim, None, WAITING)
    driver = {"metadata": {"name": "disk.example"}, "spec": {"storageCapacity": published}}
    view.csi_drivers["disk.example"] = msgspec.convert(driver, CsiDriver)
    reached = {"storageClassName": "fast", "nodeTopology": {"matchLabels": {ZONE: "east"}}}
    document = {"metadata": {"name": "room"}, **reached, **room}
    view.storage_capacities["kube-system/room"] = msgspec.convert(document, CsiStorageCapacity)
    refusal = "the storage that the node can reach has no room for the claim blue/c"

    expected = None if has_room or not published else refusal
    assert expected == refused_by_binding(a_pod(volumes=MOUNTED), a_node(labels={ZONE: "east"}), view)


OWNERS = {
    "the pod": ([{"uid": "asked", "controller": True}], None),
    "another pod": (
        [{"uid": "other", "controller": True}],
        "the claim blue/asked-scratch was not made for the pod",
    ),
    "the pod, without control": ([{"uid": "asked"}], "the claim blue/asked-scratch was not made for the pod"),
}


@pytest.mark.parametrize(("owners", "refusal"), OWNERS.values(), ids=OWNERS)
def test_the_claim_of_an_ephemeral_volume_belongs_to_the_pod(
    owners: list[dict[str, Any]], refusal: str | None
) -> None:
    """A claim of the same name that somebody else made is not used."""
    claim = {**BOUND, "metadata": {"ownerReferences": owners}}
    view = a_view(claim, {}, key="blue/asked-scratch")

    assert refusal == refused_by_binding(a_pod(volumes=EPHEMERAL), a_node(), view)


def test_claims_are_named_with_their_namespace() -> None:
    """The claim of an ephemeral volume is named after pod and volume; other volumes have none."""
    pod = a_pod(volumes=[*MOUNTED, *EPHEMERAL, {"name": "settings", "configMap": {}}])

    assert ["blue/c", "blue/asked-scratch"] == list(claim_keys(pod))


class ZoneCase(NamedTuple):
    """Labels of a volume and of a node, and whether the zone refuses the node."""

    volume: dict[str, str]
    node: dict[str, str]
    refuses: bool


ZONE_CASES = {
    "the volume has no zone": ZoneCase({}, {ZONE: "east"}, refuses=False),
    "the node has no zone": ZoneCase({ZONE: "east"}, {}, refuses=False),
    "the zones are equal": ZoneCase({ZONE: "east"}, {ZONE: "east"}, refuses=False),
    "the zones differ": ZoneCase({ZONE: "east"}, {ZONE: "west"}, refuses=True),
    "the zone is one of several": ZoneCase({ZONE: "west__east"}, {ZONE: "east"}, refuses=False),
    "the zone is none of several": ZoneCase({ZONE: "west__south"}, {ZONE: "east"}, refuses=True),
    "one of several is empty": ZoneCase({ZONE: "west__"}, {ZONE: "east"}, refuses=False),
    "the node has a region alone": ZoneCase(
        {ZONE: "east"}, {"topology.kubernetes.io/region": "north"}, refuses=True
    ),
    "the volume has the old label": ZoneCase({OLD_ZONE: "east"}, {ZONE: "east"}, refuses=False),
    "the volume has the old label of another zone": ZoneCase(
        {OLD_ZONE: "east"}, {ZONE: "west"}, refuses=True
    ),
    "both have the old label": ZoneCase({OLD_ZONE: "east"}, {OLD_ZONE: "east", ZONE: "west"}, refuses=False),
    "the node alone has the old label": ZoneCase({ZONE: "east"}, {OLD_ZONE: "east"}, refuses=True),
}


@pytest.mark.parametrize("case", ZONE_CASES.values(), ids=ZONE_CASES)
def test_a_pod_goes_to_the_zone_of_its_volume(case: ZoneCase) -> None:
    """Labels of zones and regions decide where the volume and the node have them."""
    view = a_view(BOUND, {"metadata": {"name": "v", "labels": case.volume}})
    refusal = "the volume v is in another zone or region than the node" if case.refuses else None

    assert refusal == refused_by_zone(a_pod(volumes=MOUNTED), a_node(labels=case.node), view)


def test_claims_without_a_volume_have_no_zone() -> None:
    """What is missing is refused by another filter."""
    node = a_node(labels={ZONE: "east"})

    assert [None, None] == [
        refused_by_zone(a_pod(volumes=MOUNTED), node, view) for view in (a_view(), a_view(of_class()))
    ]


MODES = {"ReadWriteOnce": set(), "ReadWriteOncePod": {"user"}}


@pytest.mark.parametrize(("mode", "users"), MODES.items(), ids=MODES)
def test_claims_for_one_pod_have_one_user(mode: str, users: set[str]) -> None:
    """Another pod on any node; pods of other namespaces have other claims of this name."""
    view = a_view({"spec": {"accessModes": ["ReadOnlyMany", mode]}})
    view.put(a_node(), [a_pod("user", volumes=MOUNTED), a_pod("other", namespace="red", volumes=MOUNTED)])
    view.put(a_node("n2"), [a_pod("idle")])

    assert users == users_of_exclusive_claims(a_pod(volumes=MOUNTED), view)


GCE, AWS, ISCSI, RBD = "gcePersistentDisk", "awsElasticBlockStore", "iscsi", "rbd"
IMAGE = {"monitors": ["a", "b"], "pool": "p", "image": "i"}
DISKS: dict[str, tuple[dict[str, Any], dict[str, Any], bool]] = {
    "the same disk of GCE": ({GCE: {"pdName": "d"}}, {GCE: {"pdName": "d", "readOnly": True}}, True),
    "the same disk of GCE, read by both": (
        {GCE: {"pdName": "d", "readOnly": True}},
        {GCE: {"pdName": "d", "readOnly": True}},
        False,
    ),
    "another disk of GCE": ({GCE: {"pdName": "d"}}, {GCE: {"pdName": "e"}}, False),
    "the same disk of AWS, read by both": (
        {AWS: {"volumeID": "d", "readOnly": True}},
        {AWS: {"volumeID": "d", "readOnly": True}},
        True,
    ),
    "the same target of iSCSI": ({ISCSI: {"iqn": "d"}}, {ISCSI: {"iqn": "d"}}, True),
    "the same image of Ceph": ({RBD: IMAGE}, {RBD: IMAGE | {"monitors": ["b", "c"]}}, True),
    "the same image of another Ceph": ({RBD: IMAGE}, {RBD: IMAGE | {"monitors": ["c"]}}, False),
    "the same image of another pool": ({RBD: IMAGE}, {RBD: IMAGE | {"pool": "q"}}, False),
    "disks of two kinds": ({GCE: {"pdName": "d"}}, {AWS: {"volumeID": "d"}}, False),
    "no disk": ({"configMap": {}}, {"configMap": {}}, False),
}


@pytest.mark.parametrize("case", DISKS.values(), ids=DISKS)
def test_pods_on_one_node_share_no_disk_that_is_written(
    case: tuple[dict[str, Any], dict[str, Any], bool],
) -> None:
    """As kube-scheduler decides for each kind."""
    own, others, is_refused = case
    refusal = "the pod blue/user on the node uses a disk of the pod" if is_refused else None

    assert refusal == refused_by_disks(a_pod(volumes=[own]), [a_pod("user", volumes=[others])])


EVERYWHERE = {
    "a claim that is not bound": (a_view(of_class(), None, {}), NOT_BOUND),
    "a claim whose volume is gone": (a_view(BOUND), "the volume v of the claim blue/c does not exist"),
    "a claim that is made for its node": (a_view(of_class(), None, WAITING | made_in("west")), None),
    "a claim whose volume is elsewhere": (a_view(BOUND, reachable_from(term(ZONE, "In", "west"))), None),
}


@pytest.mark.parametrize("case", EVERYWHERE.values(), ids=EVERYWHERE)
def test_another_node_does_not_help_against_a_claim(case: tuple[HeldView, str | None]) -> None:
    """Unless the node alone is refused."""
    view, refusal = case

    assert refusal == refused_on_every_node(a_pod(volumes=MOUNTED), view)


def test_devices_are_refused() -> None:
    """A pod that claims devices is told so."""
    refusal = "the pod claims devices (spec.resourceClaims), which this scheduler does not support"

    assert [None, refusal] == [
        refused_for_devices(a_pod()),
        refused_for_devices(a_pod(resourceClaims=[{"name": "gpu"}])),
    ]
