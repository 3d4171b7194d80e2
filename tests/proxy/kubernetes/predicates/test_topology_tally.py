"""A tally that follows a cluster node by node counts what a new one counts."""

from __future__ import annotations

from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st
from support.kubernetes.held_view import HeldView
from support.kubernetes.placing import HOST, ZONE, a_node, a_pod, spread
from support.proxy.counted_lines import lines_executed

from licorne.proxy.kubernetes.predicates import cluster_view
from licorne.proxy.kubernetes.predicates.cluster_view import (
    ChangedNodes,
    Contribution,
    NodeState,
    TopologyTally,
)
from licorne.proxy.kubernetes.predicates.verdicts import PodFilters

ZONES = ["east", "west", "south"]


def pods_by_zone(state: NodeState) -> Contribution:
    """Count all pods in the zone of a node; a node without pods and zone does not contribute."""
    zone = state.node.metadata.labels.get(ZONE)
    return () if zone is None else (((ZONE, zone), len(state.pods)),)


def put(view: HeldView, name: str, zone: str | None, pods: int) -> None:
    labels = {} if zone is None else {ZONE: zone}
    view.put(a_node(name, labels=labels), [a_pod(f"{name}-{number}") for number in range(pods)])


def counted(tally: TopologyTally) -> tuple[bool, tuple[int, int], list[int]]:
    return tally.is_empty, tally.least(ZONE), [tally.count((ZONE, zone)) for zone in ZONES]


def test_a_tally_counts_pods_by_domain() -> None:
    """Nodes of one domain are added up, and a domain without pods is one as well."""
    view, tally = HeldView(), TopologyTally(pods_by_zone)
    put(view, "n1", "east", 2)
    put(view, "n2", "east", 1)
    put(view, "n3", "west", 0)
    put(view, "n4", None, 5)
    tally.refresh(view.nodes, view.node_changes)

    assert (False, (0, 2), [3, 0, 0]) == counted(tally)


def test_a_tally_without_nodes_is_empty() -> None:
    """There is no domain, whose least count is 0."""
    assert (True, (0, 0), [0, 0, 0]) == counted(TopologyTally(pods_by_zone))


def test_a_node_is_counted_again_if_its_state_changed() -> None:
    """A tally asks once for each state of a node, and forgets domains whose nodes are gone."""
    asked: list[str] = []

    def noted(state: NodeState) -> Contribution:
        asked.append(state.node.metadata.name)
        return pods_by_zone(state)

    view, tally = HeldView(), TopologyTally(noted)
    put(view, "n1", "east", 2)
    put(view, "n2", "west", 1)
    tally.refresh(view.nodes, view.node_changes)
    put(view, "n2", "south", 3)
    tally.refresh(view.nodes, view.node_changes)
    view.remove("n1")
    tally.refresh(view.nodes, view.node_changes)

    assert (["n1", "n2", "n2"], (False, (3, 1), [0, 0, 3])) == (asked, counted(tally))


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from("abc"), st.sampled_from([None, *ZONES]), st.integers(0, 2)),
        st.tuples(st.just("remove"), st.sampled_from("abc"), st.none(), st.just(0)),
        st.tuples(st.just("refresh"), st.just(""), st.none(), st.just(0)),
    ),
    max_size=20,
)


@given(STEPS, st.sampled_from([2, 10_000]))
def test_a_tally_that_follows_counts_what_a_new_one_counts(
    steps: list[tuple[str, str, str | None, int]], changes_max: int
) -> None:
    """Whatever nodes come, change and go, and whenever the tally is brought up to date.

    A tally that comes too late for the changes counts all nodes again.
    """
    with patch.object(cluster_view, "_CHANGES_MAX", changes_max):
        _compare(steps)


def _compare(steps: list[tuple[str, str, str | None, int]]) -> None:
    view, following, fresh = HeldView(), TopologyTally(pods_by_zone), TopologyTally(pods_by_zone)
    for step, name, zone, pods in steps:
        if step == "put":
            put(view, name, zone, pods)
        elif step == "remove" and name in view.nodes:
            view.remove(name)
        elif step == "refresh":
            following.refresh(view.nodes, view.node_changes)
    following.refresh(view.nodes, view.node_changes)
    fresh.refresh(view.nodes, view.node_changes)

    assert counted(fresh) == counted(following)


def test_changes_are_kept_for_a_while() -> None:
    """Whoever has seen the first ones gets the later ones; after too many, nothing but that they are gone."""
    changes = ChangedNodes()
    with patch.object(cluster_view, "_CHANGES_MAX", 3):
        for name in "abc":
            changes.add(name)

        assert (["b", "c"], []) == (changes.after(1), changes.after(3))

        changes.add("d")

        assert (None, ["c", "d"], 4) == (changes.after(1), changes.after(2), len(changes))


def cost_of_a_placement(node_count: int) -> int:
    """Return how many lines it takes to check a pod that is spread over hosts, after the last placement."""
    view = HeldView()
    for number in range(node_count):
        view.put(a_node(f"n{number}"), [])
    labels = {"app": "web"}
    constraints = [spread({"matchLabels": labels}, HOST)]
    first, second, third = (
        a_pod(name, labels=labels, topologySpreadConstraints=constraints)
        for name in ("first", "second", "third")
    )
    filters = PodFilters(view)

    assert filters.why_refused(first, "n1", allocate=True) is None

    view.put(view.nodes["n1"].node, [first])

    assert filters.why_refused(second, "n1", allocate=True) is not None

    view.put(view.nodes["n2"].node, [second])
    return lines_executed(lambda: filters.why_refused(third, "n3", allocate=True))


def test_a_placement_costs_the_same_in_a_large_cluster() -> None:
    """Only the node of the last placement is counted again, and the least count is known."""
    assert cost_of_a_placement(10) == cost_of_a_placement(300)
