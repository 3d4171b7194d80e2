"""What stands in the way of an ask, kind by kind."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from support.model.builders import SECOND_NS, START_NS, TEN, FakePredicates, a_resource
from support.model.explained import ask_of, blockers, explained, nodes_of, only_blocker, reasons
from support.model.harness import Asked, Harness, a_partition

from licorne.model.explanation import AskStatus, Lack, NodeObstacle, SubjectKind
from licorne.model.explanation.explain import explain
from licorne.model.resources.resource import Resource
from licorne.model.values.allocation import PlacementHalt, RefusalReason
from licorne.model.values.messages import NodeAction, TerminationType
from licorne.model.values.states import ObjectEvent, ObjectState

FIVE = a_resource(memory=5)


# --------------------------------------------------------------------------------------------- nodes


def test_the_nodes_are_counted_by_their_reason() -> None:
    """Each once: too small, cordoned, full, reserved for another ask."""
    h = Harness()
    h.nodes("small", capacity=FIVE)
    h.nodes("cordoned", action=NodeAction.CREATE_DRAIN)
    h.nodes("full1", "full2")
    h.submit()
    h.ask_and_run("a", "b", resource=a_resource(memory=8))
    h.ask_and_run("ask")

    nodes = nodes_of(h)

    assert [RefusalReason.NO_NODE_FITS] == reasons(h)
    assert (4, 0, "") == (nodes.total, nodes.with_room, nodes.first)
    assert [
        (NodeObstacle.TOO_SMALL, 1, (("memory", 1),), ("small",)),
        (NodeObstacle.UNSCHEDULABLE, 1, (), ("cordoned",)),
        (NodeObstacle.NO_ROOM, 2, (("memory", 2),), ("full1", "full2")),
    ] == [(tally.obstacle, tally.nodes, tally.types, tally.examples) for tally in nodes.tallies]
    assert (0, (("Insufficient memory", 3), ("cordoned", 1))) == (nodes.available, nodes.reasons)


def test_a_node_counts_for_the_first_reason_of_the_resource_manager() -> None:
    """Before its size, which the scheduler compares; the numbers add up to all nodes."""
    h = Harness(predicates=FakePredicates())
    h.nodes("small", "tainted", capacity=FIVE)
    h.nodes("free", "refused")
    h.submit()
    h.ask("ask", resource=a_resource(memory=8))
    refused = {"ask": {"tainted": "taint", "refused": "label"}}

    explanation = h.partition.read(explain, "app", refused=refused)
    assert explanation is not None
    nodes = explanation.asks[0].nodes

    assert nodes is not None
    assert (("Insufficient memory", 1), ("label", 1), ("taint", 1)) == nodes.reasons
    assert (4, 2, 1, "free") == (nodes.total, nodes.with_room, nodes.available, nodes.first)


def test_asks_of_a_class_share_the_refusal_of_the_first() -> None:
    """The walk tries one of them, and the others wait for the same reason."""
    refused = {(key, "n1"): "a taint" for key in ("a", "b")}
    h = Harness(predicates=FakePredicates(refused=refused))
    h.nodes("n1")
    h.submit()
    h.ask_and_run("a", "b", tags={"licorne/predicate-class": "one"})

    found = [nodes_of(h, key) for key in ("a", "b")]

    assert [[RefusalReason.PREDICATES]] * 2 == [reasons(h, key) for key in ("a", "b")]
    assert [(("refused: a taint", 1),)] * 2 == [nodes.reasons for nodes in found]


def test_the_nearest_miss_is_explained_with_what_it_lacks() -> None:
    """Of the nodes that lack nothing but room, the one that lacks the smallest part."""
    h = a_partition("n1", "n2", capacity=a_resource(memory=10, vcore=4000))
    h.ask("a", resource=a_resource(memory=9, vcore=4000))
    h.ask_and_run("b", resource=a_resource(memory=4, vcore=1000))
    h.ask_and_run("ask", resource=a_resource(memory=8, vcore=1000))

    nodes = nodes_of(h)

    assert nodes.nearest is not None
    assert "n2" == nodes.nearest.node_id
    assert (Lack(name="memory", asked=8, available=6, limit=10),) == nodes.nearest.lacks


def used_by_foreign_work(*memory: int) -> Harness:
    """Return nodes of ten, n1 and so on, with so much memory each that another scheduler's work uses."""
    h = Harness()
    for number, used in enumerate(memory, 1):
        h.nodes(f"n{number}")
        if used:
            h.ask(f"f{number}", resource=a_resource(memory=used), node_id=f"n{number}", tags={"foreign": "x"})
    h.submit()
    return h


def test_a_node_that_is_full_of_foreign_work_says_so() -> None:
    """It is named where the ask would have room without it, and so is what it uses of what lacks."""
    h = used_by_foreign_work(8, 0, 3)
    h.ask("b", resource=a_resource(memory=6), node_id="n2")
    h.ask("c", resource=a_resource(memory=5), node_id="n3")
    h.ask_and_run("ask", resource=a_resource(memory=6))

    nodes = nodes_of(h)

    assert [("n1",)] == [tally.foreign for tally in nodes.tallies]
    assert nodes.nearest is not None
    assert ("n2", a_resource()) == (nodes.nearest.node_id, nodes.nearest.foreign)


def test_a_required_node_says_what_foreign_work_uses() -> None:
    h = used_by_foreign_work(8)
    h.ask_and_run("ask", resource=a_resource(memory=6), required_node="n1")

    assert "other schedulers use memory 8" == only_blocker(h).detail


def test_a_node_that_is_reserved_is_explained_with_the_ask_that_holds_it() -> None:
    """It has room, but not for this one."""
    h = a_partition("n1", "n2")
    h.ask_and_run("a", "b", resource=a_resource(memory=6))
    h.ask("holder", resource=a_resource(memory=7))
    h.wait(3)
    h.ask_and_run("c", resource=a_resource(memory=4))
    h.ask_and_run("ask", resource=a_resource(memory=4))

    nodes = nodes_of(h)

    (reserved,) = [tally for tally in nodes.tallies if tally.obstacle is NodeObstacle.RESERVED]
    holder = ask_of(h, "holder")
    assert (1, (holder.reserved_node,), ("holder",)) == (
        reserved.nodes,
        reserved.examples,
        reserved.reserved_for,
    )
    assert [RefusalReason.NO_NODE_FITS] == reasons(h)


def test_without_nodes_nothing_is_scheduled_at_all() -> None:
    """That is about the partition, not about the ask."""
    h = a_partition()
    h.ask_and_run("ask")

    assert [RefusalReason.NO_CAPACITY, RefusalReason.NO_NODE_FITS] == reasons(h)
    assert SubjectKind.PARTITION is explained(h).blockers[0].kind


def test_what_the_predicates_refused_is_explained_in_the_words_of_the_manager() -> None:
    """The node has room all the same, and is tried again in a second."""
    predicates = FakePredicates(refused={("ask", "n1"): "n1 has a taint"})
    h = a_partition("n1", predicates=predicates)
    h.ask_and_run("ask")
    asked = len(predicates.asked)

    blocker = only_blocker(h)

    assert (RefusalReason.PREDICATES, "n1 has a taint") == (blocker.reason, blocker.detail)
    assert START_NS + SECOND_NS == blocker.until_ns
    assert (1, "n1") == (nodes_of(h).with_room, nodes_of(h).first)
    assert ["n1 has a taint"] == [noted.text for noted in ask_of(h).noted]
    assert asked == len(predicates.asked), "an explanation asks the manager nothing"


# ------------------------------------------------------------------------------------ required nodes


TAINT = "n1 has a taint"


@dataclass(frozen=True)
class Barred:
    """An ask that requires a node, and what bars it; `before` is tried first, on nodes of the capacity."""

    required_node: str
    reason: RefusalReason
    lacks: tuple[Lack, ...] = ()
    detail: str = ""
    reserved_node: str = ""
    before: tuple[Asked, ...] = ()
    capacity: Resource = TEN
    refused: frozenset[tuple[str, str]] = frozenset()


BARRED = {
    "that is unknown is named": Barred("n9", RefusalReason.REQUIRED_NODE_UNKNOWN),
    # The other node has room, and is of no use.
    "without room is explained with what it lacks": Barred(
        "n1",
        RefusalReason.REQUIRED_NODE_FULL,
        (Lack(name="memory", asked=10, available=2, limit=10),),
        reserved_node="n1",
        before=(Asked("a", resource=a_resource(memory=8)),),
    ),
    "that is too small is explained with its capacity, and not reserved": Barred(
        "n1",
        RefusalReason.REQUIRED_NODE_FULL,
        (Lack(name="memory", asked=10, available=5, limit=5),),
        capacity=FIVE,
    ),
    # The node has room, so the words say all.
    "that the manager refuses is explained in its words": Barred(
        "n1",
        RefusalReason.PREDICATES,
        detail=TAINT,
        reserved_node="n1",
        refused=frozenset({("ask", "n1")}),
    ),
}


@pytest.mark.parametrize("case", BARRED.values(), ids=BARRED)
def test_a_required_node(case: Barred) -> None:
    """Other nodes do not matter."""
    predicates = FakePredicates(refused=dict.fromkeys(case.refused, TAINT))
    h = a_partition("n1", "n2", capacity=case.capacity, predicates=predicates)
    h.have(case.before)
    h.run_until_idle()
    h.ask_and_run("ask", required_node=case.required_node)

    blocker = only_blocker(h)

    assert (case.reason, SubjectKind.NODE, case.required_node) == (
        blocker.reason,
        blocker.kind,
        blocker.subject,
    )
    assert (case.lacks, case.detail) == (blocker.lacks, blocker.detail)
    assert (case.reserved_node, None) == (ask_of(h).reserved_node, ask_of(h).nodes)


def test_an_ask_whose_node_has_room_waits_for_room_in_the_cluster() -> None:
    """Where another node has more than it can hold, the root is full, although the required node is not."""
    h = a_partition("n1", "n2")
    h.ask("a", node_id="n2")
    h.update_node("n2", NodeAction.UPDATE, capacity=FIVE)
    h.ask_and_run("ask", required_node="n1")

    blocker = only_blocker(h)

    assert (RefusalReason.QUEUE_QUOTA, "root") == (blocker.reason, blocker.subject)
    assert (Lack(name="memory", asked=10, available=5, limit=15),) == blocker.lacks


def test_a_reserved_node_that_the_manager_refuses_is_explained_in_its_words() -> None:
    """The ask has reserved the node while it was full; no walk over the asks tries it since."""
    h = a_partition("n1", predicates=FakePredicates(refused={("ask", "n1"): "n1 has a taint"}))
    h.ask_and_run("first")
    h.ask_and_run("ask", required_node="n1")
    h.release("first")
    h.run_until_idle()

    assert (RefusalReason.PREDICATES, "n1", "n1 has a taint") == (
        only_blocker(h).reason,
        only_blocker(h).subject,
        only_blocker(h).detail,
    )


# ----------------------------------------------------------------------------------- the application


def a_back_off() -> Harness:
    """Two nodes with four left each, and two asks for seven: the first one is one too many."""
    h = a_partition("n1", "n2", queues="- {name: leaf, properties: {application.unschedasks.backoff: '1'}}")
    h.ask_and_run("a", "b", resource=a_resource(memory=6))
    h.ask_and_run("first", "second", resource=a_resource(memory=7))
    return h


def test_a_back_off_is_explained_with_its_end_and_its_setting() -> None:
    """It is about all asks, also those that have not been tried."""
    (backoff,) = explained(a_back_off()).blockers

    assert (RefusalReason.BACKOFF, "app") == (backoff.reason, backoff.subject)
    assert START_NS + 30 * SECOND_NS == backoff.until_ns
    assert backoff.position is not None
    assert backoff.position.path.endswith("properties.application.unschedasks.backoff")


def test_a_back_off_that_is_over_is_none() -> None:
    """Time alone takes it away."""
    h = a_back_off()
    h.advance(30)

    assert () == explained(h).blockers


def test_an_ask_has_its_place_behind_the_others_of_its_application() -> None:
    """The higher priority goes first, then the older one."""
    h = a_partition("n1", capacity=FIVE)
    h.ask("old", "young")
    h.ask_and_run("urgent", priority=5)

    place = ask_of(h, "young").place

    assert place is not None
    assert (3, 3, ("urgent", "old")) == (place.number, place.of, place.ahead)


def test_a_queue_that_is_stopped_is_named() -> None:
    """Nothing below it is visited."""
    h = a_partition("n1", queues="- {name: team, queues: [{name: leaf}]}", queue_name="root.team.leaf")
    h.queue("root.team").handle(ObjectEvent.STOP)
    h.ask_and_run("ask")

    assert [RefusalReason.QUEUE_STOPPED] == reasons(h)
    assert "root.team" == explained(h).blockers[0].subject


def test_what_stops_the_partition_is_named() -> None:
    """A manager that is far behind: nothing is placed until it has heard what there is; or a stop."""
    h = a_partition("n1")
    h.ask("ask")
    h.halt = PlacementHalt(reason=RefusalReason.CONGESTED)
    assert [RefusalReason.CONGESTED] == reasons(h)
    h.halt = None
    h.state.state = ObjectState.STOPPED

    assert [RefusalReason.PARTITION_STOPPED] == reasons(h)


def test_a_queue_that_drains_goes_on_with_what_it_has() -> None:
    """It is no blocker, and reported all the same."""
    h = a_partition("n1", queues="- name: leaf\n- name: other")
    h.ask_and_run("a", "ask")
    h.reload("- name: other")
    h.run_until_idle()

    assert explained(h).is_draining
    assert [RefusalReason.QUEUE_QUOTA, RefusalReason.NO_NODE_FITS] == reasons(h)


PARENT, LEAF = "it is a parent of queues", "it is a leaf, and no queue below it is visited"


@pytest.mark.parametrize(
    ("before", "leaf", "after", "words", "setting"),
    [
        ("- name: up", "root.up", "- {name: up, parent: true}", PARENT, "parent"),
        ("- name: up", "root.up", "- {name: up, queues: [{name: below}]}", PARENT, "queues"),
        ("- {name: up, queues: [{name: leaf}]}", "root.up.leaf", "- {name: up}", LEAF, "name"),
    ],
    ids=[
        "a leaf that has become a parent",
        "a leaf that has a queue below it",
        "a parent that is a leaf now",
    ],
)
def test_a_queue_of_another_kind_is_named(
    before: str, leaf: str, after: str, words: str, setting: str
) -> None:
    """Its applications, or those below it, are not visited any more: an odd effect of a reload."""
    h = a_partition("n1", queues=before, queue_name=leaf)
    h.reload(after)
    h.ask_and_run("ask")

    (blocker,) = explained(h).blockers

    assert (RefusalReason.QUEUE_KIND, "root.up", words) == (blocker.reason, blocker.subject, blocker.detail)
    assert blocker.position is not None
    assert blocker.position.path.endswith(f".{setting}")
    assert () == blockers(h)


def test_nothing_is_in_the_way_of_an_ask_that_no_cycle_has_seen() -> None:
    """Its node is known already."""
    h = a_partition("n1")
    h.ask("ask")

    assert [] == reasons(h)
    assert "n1" == nodes_of(h).first


# --------------------------------------------------------------------------------------------- gangs


def a_gang() -> Harness:
    """Two placeholders of which one is placed, and two members."""
    h = a_partition("n1", placeholder_ask=a_resource(memory=20))
    h.ask("ph1", "ph2", task_group_name="g", placeholder=True)
    h.ask_and_run("member", "other", task_group_name="g")
    return h


def test_a_member_waits_for_its_placeholders() -> None:
    """Quotas and nodes are the business of the placeholders."""
    blocker = only_blocker(a_gang(), "other")

    assert (RefusalReason.WAITS_FOR_PLACEHOLDER, "g") == (blocker.reason, blocker.subject)
    assert "1 of 2 placeholders waiting, 1 placed, 0 replaced, 0 ended" == blocker.detail


def test_a_gang_is_explained_with_what_it_announced() -> None:
    """And with what of it is placed."""
    gang = explained(a_gang()).gang

    assert gang is not None
    assert (a_resource(memory=20), TEN, False) == (gang.announced, gang.placed, gang.hard)
    assert [("g", 2, 1, 1)] == [
        (group.name, group.placeholders, group.waiting, group.placed) for group in gang.task_groups
    ]


def test_a_member_that_is_to_take_its_place_is_explained_with_its_node() -> None:
    """It waits for nothing but the confirmation that its placeholder has ended."""
    h = a_gang()

    member, placeholder = ask_of(h, "member"), ask_of(h, "ph1")

    assert (AskStatus.REPLACING, "n1") == (member.status, member.node_id)
    assert AskStatus.LEAVING is placeholder.status


def test_an_ask_that_runs_is_explained_with_its_node() -> None:
    """Until it has ended; then it is unknown."""
    h = a_partition("n1")
    h.ask_and_run("ask", resource=TEN)

    ask = ask_of(h)

    assert (AskStatus.PLACED, "n1", ()) == (ask.status, ask.node_id, ask.blockers)
    h.release("ask", termination=TerminationType.STOPPED_BY_RM)
    assert explained(h).ask("ask") is None


def test_one_ask_can_be_explained_alone() -> None:
    """The others are left out; what stands in the way of all is not."""
    h = a_partition()
    h.ask("a", "b")

    explanation = h.partition.read(explain, "app", only_key="b")

    assert explanation is not None
    assert ["b"] == [ask.allocation_key for ask in explanation.asks]
    assert [RefusalReason.NO_CAPACITY] == [blocker.reason for blocker in explanation.blockers]
