"""Pods share a class if the filters that look at pod and node alone see no difference, and only then."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.kubernetes.placing import a_node, a_pod, anti_affinity, beside, node_affinity, spread, term
from support.kubernetes.random_scenes import random_scene
from support.kubernetes.verdicts import asked_of

from licorne.proxy.kubernetes.predicates.verdicts import PodFilters, predicate_class

CLAIM = {"volumes": [{"name": "disk", "persistentVolumeClaim": {"claimName": "c"}}]}

DIFFERENCES: dict[str, dict[str, Any]] = {
    "the name of a node": {"nodeName": "n1"},
    "the node selector": {"nodeSelector": {"disk": "ssd"}},
    "the affinity to nodes": {"affinity": node_affinity(term("disk", "Exists"))},
    "an affinity to nodes without terms": {"affinity": node_affinity()},
    "the tolerations": {"tolerations": [{"operator": "Exists"}]},
    "the claims": CLAIM,
    "the claims of another namespace": {**CLAIM, "namespace": "red"},
    "the claims that are made for the pod": {"volumes": [{"name": "scratch", "ephemeral": {}}]},
    "the devices": {"resourceClaims": [{"name": "gpu"}]},
}


def test_pods_that_differ_where_filters_look_have_different_classes() -> None:
    """Each field that a filter looks at makes a class of its own."""
    classes = {predicate_class(a_pod(**spec)) for spec in ({}, *DIFFERENCES.values())}

    assert (len(DIFFERENCES) + 1, {24}) == (len(classes), {len(text) for text in classes})


ALIKE: dict[str, dict[str, Any]] = {
    "name and labels": {"name": "other", "labels": {"app": "web"}},
    "namespace": {"namespace": "red"},
    "containers": {"containers": [{"name": "main", "ports": [{"containerPort": 80}]}]},
    "volumes without claims": {"volumes": [{"name": "settings", "configMap": {}}]},
    "priority": {"priority": 5},
    "affinities without requirements": {"affinity": {"nodeAffinity": {}, "podAffinity": {}}},
}


@pytest.mark.parametrize("spec", ALIKE.values(), ids=ALIKE)
def test_pods_that_differ_elsewhere_share_a_class(spec: dict[str, Any]) -> None:
    """What no filter looks at makes no difference."""
    assert predicate_class(a_pod()) == predicate_class(a_pod(**spec))


def test_the_order_of_labels_makes_no_difference() -> None:
    """Two node selectors with the same pairs are one."""
    first, second = {"a": "1", "b": "2"}, {"b": "2", "a": "1"}

    assert predicate_class(a_pod(nodeSelector=first)) == predicate_class(a_pod(nodeSelector=second))


NEIGHBOURS: dict[str, dict[str, Any]] = {
    "a port": {"containers": [{"ports": [{"hostPort": 80}]}]},
    "spreading": {"topologySpreadConstraints": [spread({})]},
    "anti-affinity": {"affinity": anti_affinity(beside({}))},
}


@pytest.mark.parametrize("spec", NEIGHBOURS.values(), ids=NEIGHBOURS)
def test_pods_that_look_at_neighbours_have_no_class(spec: dict[str, Any]) -> None:
    """Their answers depend on more than themselves and the node."""
    assert "" == predicate_class(a_pod(**spec))


@given(st.integers(0, 2**32))
def test_a_pod_of_the_same_class_gets_the_same_answers(seed: int) -> None:
    """A pod with nothing but the fields of the class is answered as the pod is, unless it is kept away."""
    asked = asked_of(random_scene(Random(seed)))  # noqa: S311 - no secret
    pod, filters = asked.pod, PodFilters(asked.view)
    asked.view.put(a_node("plain"))
    spec = pod.spec
    namespace = pod.metadata.namespace if spec.volumes else "unlisted"  # that of its claims
    twin = a_pod("twin", labels={"none": "matches"}, namespace=namespace)
    twin = type(pod)(
        metadata=twin.metadata,
        spec=type(spec)(
            node_name=spec.node_name,
            node_selector=spec.node_selector,
            affinity=spec.affinity,
            tolerations=spec.tolerations,
            volumes=spec.volumes,
            host_network=spec.host_network,
            host_users=spec.host_users,
        ),
    )
    is_comparable = predicate_class(pod) != "" and not any(map(filters.is_kept_away, (pod, twin)))

    assert not is_comparable or [
        predicate_class(twin),
        *(filters.why_refused(twin, name, allocate=True) for name in asked.view.nodes),
    ] == [predicate_class(pod), *(filters.why_refused(pod, name, allocate=True) for name in asked.view.nodes)]
