"""How many pods must leave a node before another may run there."""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.kubernetes.held_view import HeldView, view_of
from support.kubernetes.placing import HOST, a_node, a_pod, affinity, anti_affinity, beside, spread
from support.kubernetes.random_scenes import random_scene
from support.kubernetes.verdicts import asked_of

from licorne.proxy.kubernetes.objects import Pod
from licorne.proxy.kubernetes.predicates.verdicts import PodFilters

WEB = {"matchLabels": {"app": "web"}}
PORT = [{"name": "main", "ports": [{"hostPort": 80}]}]


def three_pods() -> HeldView:
    """A node with the pods `a`, `b` (which matches, and has the port) and `c` (which keeps others away)."""
    there = [
        a_pod("a", nodeName="n1"),
        a_pod("b", nodeName="n1", labels={"app": "web"}, containers=PORT),
        a_pod("c", nodeName="n1", affinity=anti_affinity(beside({"matchLabels": {"app": "quiet"}}, HOST))),
    ]
    return view_of([a_node("n1"), a_node("n2")], there)


class VictimCase(NamedTuple):
    """What a pod asks for, the victims, the index to begin with, and the first index that fits."""

    spec: dict[str, Any]
    victims: str
    start_index: int
    first: int | None


VICTIM_CASES = {
    "a pod that fits already": VictimCase({}, "abc", 0, 0),
    "no victims are left": VictimCase({}, "abc", 3, None),
    "the port gets free": VictimCase({"containers": PORT}, "abc", 0, 1),
    "the port gets free before the start": VictimCase({"containers": PORT}, "bac", 1, 1),
    "the port does not get free": VictimCase({"containers": PORT}, "ac", 0, None),
    "the skew is reduced": VictimCase(
        {"labels": {"app": "web"}, "topologySpreadConstraints": [spread(WEB, HOST)]}, "abc", 0, 1
    ),
    "the pod that is excluded leaves": VictimCase(
        {"affinity": anti_affinity(beside(WEB, HOST))}, "acb", 0, 2
    ),
    "the pod that keeps others away leaves": VictimCase({"labels": {"app": "quiet"}}, "bac", 0, 2),
    "the pod that is asked for leaves": VictimCase({"affinity": affinity(beside(WEB, HOST))}, "ba", 0, None),
    "the pod that is asked for stays": VictimCase({"affinity": affinity(beside(WEB, HOST))}, "ab", 0, 0),
    "the node is refused whoever leaves": VictimCase({"nodeSelector": {"disk": "ssd"}}, "abc", 0, None),
    "the claim is missing": VictimCase(
        {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}, "abc", 0, None
    ),
    "devices are claimed": VictimCase({"resourceClaims": [{"name": "gpu"}]}, "abc", 0, None),
    "a victim is not on the node": VictimCase({"containers": PORT}, "xb", 0, 1),
}


@pytest.mark.parametrize("case", VICTIM_CASES.values(), ids=VICTIM_CASES)
def test_victims_leave_until_the_pod_fits(case: VictimCase) -> None:
    """Victims leave in their order, and the first index after which all filters accept the node is told."""
    filters = PodFilters(three_pods())
    victims = [a_pod(name) for name in case.victims]

    assert case.first == filters.first_index_that_fits(a_pod(**case.spec), "n1", victims, case.start_index)


def test_nothing_fits_on_a_node_that_is_not_known() -> None:
    """A node that went away accepts no pod."""
    assert None is PodFilters(three_pods()).first_index_that_fits(a_pod(), "n3", [a_pod("a")], 0)


def _first_by_looking(
    pod: Pod, view: HeldView, name: str, victims: list[Pod], start_index: int
) -> int | None:
    """Find the index by asking about clusters from which the victims are really gone."""
    for index in range(start_index, len(victims)):
        gone = {victim.metadata.uid for victim in victims[: index + 1]}
        then = view_of([], namespaces=view.namespaces.values())
        then.claims, then.volumes = view.claims, view.volumes
        for state in view.nodes.values():
            then.put(state.node, [there for there in state.pods if there.metadata.uid not in gone])
        if PodFilters(then).why_refused(pod, name, allocate=True) is None:
            return index
    return None


@given(st.integers(0, 2**32), st.integers(0, 2))
def test_the_index_is_that_of_a_cluster_without_the_victims(seed: int, start_index: int) -> None:
    """The answer is as if the pods had left, and later answers are as if nobody had asked."""
    random = Random(seed)  # noqa: S311 - no secret
    asked = asked_of(random_scene(random))
    filters = PodFilters(asked.view)
    before = {name: filters.why_refused(asked.pod, name, allocate=True) for name in asked.view.nodes}
    for name, state in asked.view.nodes.items():
        victims = random.sample(state.pods, len(state.pods))
        expected = _first_by_looking(asked.pod, asked.view, name, victims, start_index)

        assert expected == filters.first_index_that_fits(asked.pod, name, victims, start_index)

    after = {name: filters.why_refused(asked.pod, name, allocate=True) for name in asked.view.nodes}

    assert before == after
