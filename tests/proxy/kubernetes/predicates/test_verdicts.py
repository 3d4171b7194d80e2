"""A pod gets one answer for a node: the first refusal, from counts that are up to date."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from support.kubernetes.held_view import HeldView, view_of
from support.kubernetes.placing import (
    ZONE,
    a_namespace,
    a_node,
    a_pod,
    affinity,
    anti_affinity,
    beside,
    spread,
)

from licorne.proxy.kubernetes.objects import PersistentVolume, PersistentVolumeClaim, Pod
from licorne.proxy.kubernetes.placement_objects import LabelSelector
from licorne.proxy.kubernetes.predicates import neighbour_filters
from licorne.proxy.kubernetes.predicates.selectors import labels_match
from licorne.proxy.kubernetes.predicates.verdicts import PodFilters

WEB = {"matchLabels": {"app": "web"}}
PORT = [{"name": "main", "ports": [{"hostPort": 80}]}]
CLAIM = [{"name": "disk", "persistentVolumeClaim": {"claimName": "c"}}]
TAINTS = [{"key": "gpu", "effect": "NoSchedule"}]

# Each row refuses by one plugin more, in front of those of the rows before.
ORDER: dict[str, dict[str, Any]] = {
    "DynamicResources": {"resourceClaims": [{"name": "gpu"}]},
    "InterPodAffinity": {"affinity": affinity(beside({"matchLabels": {"app": "none"}}))},
    "PodTopologySpread": {"topologySpreadConstraints": [spread(WEB, "missing")]},
    "VolumeBinding": {"volumes": CLAIM},
    "NodePorts": {"containers": PORT},
    "NodeAffinity": {"nodeSelector": {"disk": "ssd"}},
    "TaintToleration": {},
    "NodeUnschedulable": {},
    "NodeName": {"nodeName": "other"},
}


def refusing(plugins: list[str], *, allocate: bool) -> str:
    """Name the plugin that answers for a pod which all of these refuse."""
    spec: dict[str, Any] = {}
    for plugin in plugins:
        spec.update(ORDER[plugin])
    if "TaintToleration" not in plugins:
        spec["tolerations"] = [{"key": "gpu", "operator": "Exists"}]
    node = a_node(taints=TAINTS, unschedulable="NodeUnschedulable" in plugins)
    view = view_of([node], [a_pod("there", nodeName="n1", containers=PORT)])
    return str(PodFilters(view).why_refused(a_pod(**spec), "n1", allocate=allocate)).split("'")[1]


@pytest.mark.parametrize("count", range(1, 10))
def test_the_first_plugin_of_kube_scheduler_answers(count: int) -> None:
    """Of several plugins that refuse, the one that kube-scheduler asks first is named."""
    plugins = list(ORDER)[:count]

    assert plugins[-1] == refusing(plugins, allocate=True)


@pytest.mark.parametrize("count", range(2, 10))
def test_devices_are_left_out_of_a_reservation(count: int) -> None:
    """Without `allocate`, they refuse nothing; all other plugins answer as for a placement."""
    plugins = list(ORDER)[1:count]

    assert plugins[-1] == refusing([*plugins, "DynamicResources"], allocate=False)


def test_the_answer_names_plugin_and_reason() -> None:
    """The text has the form that operators know from other schedulers of pods."""
    filters = PodFilters(view_of([a_node(unschedulable=True)]))

    assert [
        "failed plugin: 'NodeUnschedulable': the node is marked as unschedulable",
        "failed plugin: 'NodeName': the node is not known",
    ] == [filters.why_refused(a_pod(), name, allocate=True) for name in ("n1", "n2")]


def test_other_volume_filters_answer_by_name() -> None:
    """A claim for one pod that another uses, and a volume of another zone, are refused by their plugins."""
    view = HeldView()
    view.put(a_node(labels={ZONE: "east"}), [a_pod("user", volumes=CLAIM)])
    view.claims["blue/c"] = _bound_claim("ReadWriteOncePod")
    view.volumes["v"] = _volume_in("west")
    filters, pod = PodFilters(view), a_pod(volumes=CLAIM)
    first = filters.why_refused(pod, "n1", allocate=True)
    view.claims["blue/c"] = _bound_claim("ReadWriteOnce")
    view.version += 1
    second = filters.why_refused(pod, "n1", allocate=True)
    view.volumes["v"] = _volume_in("east")

    assert ["VolumeRestrictions", "VolumeZone", None] == [
        str(first).split("'")[1],
        str(second).split("'")[1],
        filters.why_refused(pod, "n1", allocate=True),
    ]


def test_a_claim_for_one_pod_is_free_when_its_user_ends() -> None:
    """The user may be a victim, on the node of the pod alone."""
    view = HeldView()
    view.claims["blue/c"] = _bound_claim("ReadWriteOncePod")
    view.volumes["v"] = msgspec.convert({"metadata": {"name": "v"}}, PersistentVolume)
    user, idle, pod = a_pod("user", volumes=CLAIM), a_pod("idle"), a_pod(volumes=CLAIM)
    view.put(a_node("n1"), [idle, user])
    view.put(a_node("n2"), [idle])
    filters = PodFilters(view)

    assert filters.is_kept_away(pod)
    assert [1, None] == [filters.first_index_that_fits(pod, name, [idle, user], 0) for name in ("n1", "n2")]

    view.put(a_node("n1"), [idle])

    assert filters.why_refused(pod, "n1", allocate=True) is None


def _bound_claim(mode: str) -> PersistentVolumeClaim:
    spec = {"volumeName": "v", "accessModes": [mode]}
    return msgspec.convert(
        {"metadata": {"name": "c"}, "spec": spec, "status": {"phase": "Bound"}}, PersistentVolumeClaim
    )


def _volume_in(zone: str) -> PersistentVolume:
    return msgspec.convert({"metadata": {"name": "v", "labels": {ZONE: zone}}}, PersistentVolume)


def zoned(name: str, *pods: Pod) -> tuple[Any, list[Pod]]:
    return a_node(name, labels={ZONE: f"zone of {name}"}), list(pods)


def fitting(filters: PodFilters, view: HeldView, pod: Pod) -> list[str]:
    return [name for name in view.nodes if filters.why_refused(pod, name, allocate=True) is None]


def web(name: str) -> Pod:
    return a_pod(name, labels={"app": "web"})


def test_answers_follow_the_cluster() -> None:
    """Pods and nodes that come and go are counted from the next version of the view on."""
    view = HeldView()
    filters, pod = PodFilters(view), a_pod(labels={"app": "web"}, topologySpreadConstraints=[spread(WEB)])
    answers = []
    for name, pods in (("n1", []), ("n2", [web("a")]), ("n1", [web("b"), web("c")]), ("n3", [])):
        view.put(*zoned(name, *pods))
        answers.append(fitting(filters, view, pod))
    view.remove("n3")
    answers.append(fitting(filters, view, pod))

    assert [["n1"], ["n1"], ["n2"], ["n3"], ["n2"]] == answers


def test_answers_follow_the_labels_of_namespaces() -> None:
    """A namespace that is relabelled is selected from the next version on."""
    term = beside(WEB, namespaceSelector={"matchLabels": {"team": "one"}})
    view = view_of([], namespaces=[a_namespace("red")])
    view.put(*zoned("n1", a_pod("a", namespace="red", labels={"app": "web"})))
    filters, pod = PodFilters(view), a_pod(affinity=affinity(term))
    before = fitting(filters, view, pod)
    view.namespaces["red"] = a_namespace("red", team="one")
    view.version += 1

    assert ([], ["n1"]) == (before, fitting(filters, view, pod))


@pytest.fixture(name="matched")
def _matched(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Note each time that labels are matched with a selector."""
    matched: list[object] = []

    def noting(selector: LabelSelector | None, labels: dict[str, str]) -> bool:
        matched.append(selector)
        return labels_match(selector, labels)

    monkeypatch.setattr(neighbour_filters, "labels_match", noting)
    return matched


SPREAD_OR_BESIDE: dict[str, dict[str, Any]] = {
    "spreading": {"topologySpreadConstraints": [spread(WEB)]},
    "affinity": {"affinity": affinity(beside(WEB))},
    "anti-affinity": {"affinity": anti_affinity(beside(WEB))},
}


@pytest.mark.parametrize("spec", SPREAD_OR_BESIDE.values(), ids=SPREAD_OR_BESIDE)
def test_the_pods_of_a_cluster_are_matched_once_for_all_nodes(
    spec: dict[str, Any], matched: list[object]
) -> None:
    """To ask each of fifty nodes for two pods that are alike matches each pod that is there once."""
    view = HeldView()
    for number in range(50):
        view.put(*zoned(f"n{number}", a_pod(f"p{number}")))
    filters = PodFilters(view)
    for name in ("a", "b"):
        fitting(filters, view, a_pod(name, **spec))
    before = len(matched)
    view.put(*zoned("n7", web("new"), web("newer")))
    fitting(filters, view, a_pod("c", **spec))

    assert (True, True) == (50 <= before <= 54, len(matched) - before <= 4)


def test_a_cluster_without_anti_affinity_matches_nothing_for_other_pods(matched: list[object]) -> None:
    """A pod that asks for nothing costs no look at the pods that are there."""
    view = view_of([a_node()], [a_pod("there", nodeName="n1", affinity=affinity(beside(WEB)))])

    assert (None, []) == (PodFilters(view).why_refused(a_pod(), "n1", allocate=True), matched)


def test_counts_of_many_kinds_of_pods_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """At most a fixed number of tallies is kept, and those used last stay."""
    monkeypatch.setattr("licorne.proxy.kubernetes.predicates.verdicts._TALLIES_MAX", 2)
    view = view_of([a_node("n1", labels={ZONE: "east"})], [])
    filters = PodFilters(view)
    pods = [a_pod(topologySpreadConstraints=[spread({"matchLabels": {"app": name}})]) for name in "abc"]
    for index in (0, 1, 0, 2):
        fitting(filters, view, pods[index])

    assert (2, [True, False, True]) == (
        len(filters._tallies),
        [any(f'"{name}"'.encode() in key for key in filters._tallies) for name in "abc"],
    )


KEPT_AWAY = {
    "no pod keeps others away": ([], False),
    "the pod is kept away": ([a_pod("a", nodeName="n1", affinity=anti_affinity(beside(WEB)))], True),
    "another pod is kept away": (
        [a_pod("a", nodeName="n1", affinity=anti_affinity(beside({"matchLabels": {"app": "db"}})))],
        False,
    ),
}


@pytest.mark.parametrize(("there", "kept_away"), KEPT_AWAY.values(), ids=KEPT_AWAY)
def test_a_pod_knows_whether_others_keep_it_away(there: list[Pod], kept_away: bool) -> None:  # noqa: FBT001 - a column
    """Anti-affinity of any pod in the cluster that matches the pod counts."""
    view = view_of([a_node("n1", labels={ZONE: "east"}), a_node("n2", labels={ZONE: "west"})], there)

    assert kept_away == PodFilters(view).is_kept_away(web("asked"))
