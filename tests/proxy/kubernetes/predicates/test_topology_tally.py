"""A tally that follows a cluster node by node counts what a new one counts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from support.kubernetes.held_view import HeldView
from support.kubernetes.placing import ZONE, a_node, a_pod

from licorne.proxy.kubernetes.predicates.cluster_view import Contribution, NodeState, TopologyTally

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
    tally.refresh(view.nodes)

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
    tally.refresh(view.nodes)
    put(view, "n2", "south", 3)
    tally.refresh(view.nodes)
    view.remove("n1")
    tally.refresh(view.nodes)

    assert (["n1", "n2", "n2"], (False, (3, 1), [0, 0, 3])) == (asked, counted(tally))


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from("abc"), st.sampled_from([None, *ZONES]), st.integers(0, 2)),
        st.tuples(st.just("remove"), st.sampled_from("abc"), st.none(), st.just(0)),
        st.tuples(st.just("refresh"), st.just(""), st.none(), st.just(0)),
    ),
    max_size=20,
)


@given(STEPS)
def test_a_tally_that_follows_counts_what_a_new_one_counts(
    steps: list[tuple[str, str, str | None, int]],
) -> None:
    """Whatever nodes come, change and go, and whenever the tally is brought up to date."""
    view, following, fresh = HeldView(), TopologyTally(pods_by_zone), TopologyTally(pods_by_zone)
    for step, name, zone, pods in steps:
        if step == "put":
            put(view, name, zone, pods)
        elif step == "remove" and name in view.nodes:
            view.remove(name)
        elif step == "refresh":
            following.refresh(view.nodes)
    following.refresh(view.nodes)
    fresh.refresh(view.nodes)

    assert counted(fresh) == counted(following)
