"""Why an application waits: all reasons at the same time, each with its line of the configuration."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from support.model.builders import TEN
from support.model.explained import explained as explained_in
from support.model.preemption_scenes import Scene
from support.proxy.listening import Listener
from support.proxy.page_cluster import GIB, ask, node, submit
from support.waiting import wait_until

from licorne import Scheduler
from licorne.model.explanation import Explanation
from licorne.proxy.si import si_pb2 as si
from licorne.proxy.views.page.answers import ConfigurationLines, explanation_document

TEXT = """\
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: team
            maxapplications: 3
            resources:
              max: {vcore: 6}
            limits:
              - {limit: eve, users: [eve], maxresources: {memory: 16Gi}}
              - {limit: staff, groups: [staff], maxresources: {vcore: 5}}
          - name: other
            resources: {guaranteed: {memory: 40Gi}}
"""
EVE = "- {limit: eve, users: [eve], maxresources: {memory: 16Gi}}"
STAFF = "- {limit: staff, groups: [staff], maxresources: {vcore: 5}}"


class Choosy(Listener):
    """Refuses what asks for an SSD, on the node that has room."""

    def predicates(self, args: si.PredicatesArgs) -> None:
        if args.allocationKey.startswith("ssd"):
            raise ValueError(f"{args.nodeID} has no SSD")


@pytest.fixture
def scheduler() -> Iterator[Scheduler]:
    """Give two nodes, one of them cordoned; eve, the group staff and the queue team have little left."""
    with Scheduler() as made:
        made.register("rm", Choosy(), configuration=TEXT)
        infos = [node("open", memory=32 * GIB, vcore=8000), node("closed", memory=32 * GIB, drained=True)]
        made.update_node(si.NodeRequest(rmID="rm", nodes=infos))
        submit(made, "old", "root.team", user="eve")
        ask(made, "old", "old-1", "old-2", memory=8 * GIB, vcore=2000)
        wait_until(lambda: not made.explain("old").waiting, "the old ones are placed")
        yield made


def reasons(scheduler: Scheduler, application: str) -> Any:
    """Return the answer once an ask of the application was tried."""

    def explained() -> Explanation:
        return scheduler.explain(application)

    wait_until(lambda: any(each.noted or each.blockers for each in explained().waiting), "it was tried")
    prospects = scheduler.would_preempt(application)
    return explanation_document(explained(), prospects, ConfigurationLines(TEXT))


def lacks_of(blockers: Any) -> dict[str, list[tuple[str, str | None]]]:
    """Return for each reason what lacks, with the line of the configuration."""
    return {
        each["text"]: [
            (lack["text"], None if lack["setting"] is None else lack["setting"]["text"])
            for lack in each["lacks"]
        ]
        for each in blockers
    }


def test_the_limits_of_user_and_group_the_queue_and_the_nodes_are_named_at_once(scheduler: Scheduler) -> None:
    """The scheduler stops at the first; a person wants to know what stands in the way after that."""
    submit(scheduler, "much", "root.team", user="eve")
    ask(scheduler, "much", "much-1", memory=20 * GIB, vcore=4000, preempts=True)
    answer = reasons(scheduler, "much")
    (waiting,) = answer["waiting"]

    assert {
        "user eve has no room left in root.team": [("memory: asked 20Gi, left 0 of 16Gi", EVE)],
        "group staff has no room left in root.team": [("vcore: asked 4, left 1 of 5", STAFF)],
        "queue root.team has no room": [("vcore: asked 4, left 2 of 6", "max: {vcore: 6}")],
        "no node has room": [],
    } == lacks_of(waiting["blockers"])
    assert "nodes: 1 of 2 cordoned (closed)" in waiting["nodes"]
    assert "nearest: open lacks memory 4Gi" in waiting["nodes"]
    assert all(each["changes"] for each in waiting["blockers"])
    assert ["no queue of its path has a guarantee"] == [each["why"] for each in answer["victims"]]


def test_a_queue_that_is_full_of_applications_and_a_gang_without_room_are_named_at_once(
    scheduler: Scheduler,
) -> None:
    """The member of the gang says how many placeholders it waits for."""
    for name in ("second", "third"):
        submit(scheduler, name, "root.team", user="bob", groups=())
        ask(scheduler, name, f"{name}-1", memory=GIB, vcore=100)
    wait_until(lambda: not scheduler.explain("third").waiting, "the queue is full of applications")
    submit(scheduler, "gang", "root.team", user="bob", groups=())
    request = si.AllocationRequest(rmID="rm")
    for key, is_placeholder in (("gang-0", True), ("gang-1", True), ("member", False)):
        each = request.allocations.add(allocationKey=key, applicationID="gang", taskGroupName="g")
        each.placeholder = is_placeholder
        each.resourcePerAlloc.resources["memory"].value = 15 * GIB
    scheduler.update_allocation(request)
    answer = reasons(scheduler, "gang")

    assert {
        "queue root.team runs its maximum of applications": [
            ("applications: asked 1, left 0 of 3", "maxapplications: 3")
        ]
    } == lacks_of(answer["blockers"])
    assert ["no node has room"] == [each["text"] for each in answer["waiting"][0]["blockers"]]
    (member,) = answer["waiting"][1]["blockers"]
    assert member["text"].startswith("it waits to replace a placeholder of task group g: 2 of 2 placeholders")


def test_a_predicate_that_refuses_and_a_cordoned_node_are_named_at_once(scheduler: Scheduler) -> None:
    """In the words of the resource manager."""
    submit(scheduler, "picky", "root.other", user="joe", groups=())
    ask(scheduler, "picky", "ssd-1", memory=8 * GIB, vcore=100, preempts=True)
    (waiting,) = reasons(scheduler, "picky")["waiting"]

    (blocker,) = waiting["blockers"]
    assert blocker["text"].startswith("every node with room is refused: ")
    assert "open has no SSD" in blocker["text"]
    assert "nodes: 1 of 2 cordoned (closed)" in waiting["nodes"]


def test_the_page_says_for_whose_end_an_ask_waits_that_has_preempted() -> None:
    """Then it is not free to be placed when its turn comes."""
    scene = Scene("- {name: a, resources: {guaranteed: {memory: 50}}}\n- {name: b}")
    scene.nodes("n1", capacity=TEN)
    scene.runs("v1")
    scene.asks("p")
    scene.wait(31)

    (waiting,) = explanation_document(explained_in(scene, "root.a"), (), ConfigurationLines(""))["waiting"]

    text = "it preempted 0s ago, and waits until the resource manager confirms the end of v1 of root.b on n1"
    assert (False, text) == (waiting["free"], waiting["ending"])
