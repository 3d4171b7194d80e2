"""What a book takes out of what a resource manager (RM) hears, and what it says itself, case by case."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from support.proxy.booked_link import BookedLink, sizes_of
from support.proxy.knowing_manager import a_node, an_allocation, an_application

from licorne import ResourceManager
from licorne.proxy.si import si_pb2 as si

_QUEUES = "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: leaf}]}]}]"


class Talk:
    """A link whose RM notes what it hears, in short texts."""

    def __init__(self) -> None:
        self.link = BookedLink()
        self.link.register_resource_manager(
            si.RegisterResourceManagerRequest(rmID="rm", config=_QUEUES), ResourceManager()
        )

    def nodes(self, *nodes: si.NodeInfo) -> None:
        self.link.update_node(si.NodeRequest(rmID="rm", nodes=nodes))

    def node(self, name: str, action: si.NodeInfo.ActionFromRM, memory: int | None = None) -> None:
        node = a_node(name, memory or 0)
        node.action = action
        if memory is None:
            node.ClearField("schedulableResource")
        self.nodes(node)

    def applications(self, *new: si.AddApplicationRequest, remove: tuple[str, ...] = ()) -> None:
        removals = [si.RemoveApplicationRequest(applicationID=name) for name in remove]
        self.link.update_application(si.ApplicationRequest(rmID="rm", new=new, remove=removals))

    def allocations(self, *allocations: si.Allocation) -> None:
        self.link.update_allocation(si.AllocationRequest(rmID="rm", allocations=allocations))

    def release(self, key: str, kind: int = si.STOPPED_BY_RM, *, application: str = "app") -> None:
        request = si.AllocationRequest(rmID="rm")
        request.releases.allocationsToRelease.add(
            applicationID=application, allocationKey=key, terminationType=kind
        )
        self.link.update_allocation(request)

    def begin(self) -> None:
        """Have a node, an application, and an ask that is placed; hear of all."""
        self.nodes(a_node("n", 100))
        self.applications(an_application("app"))
        self.allocations(an_allocation("a"))
        self.settle()
        self.link.heard.clear()

    def settle(self) -> None:
        self.link.settle()

    def lose(self) -> None:
        self.link.lose()

    def says(self, response: si.AllocationResponse) -> None:
        """Have the worker say something that it would say only after much else."""
        self.link.said.append(("allocation", response))
        self.link.pump()

    @property
    def heard(self) -> list[str]:
        return [text for response in self.link.heard for text in _texts(response)]

    @property
    def holds(self) -> str:
        held = sizes_of(self.link.book)
        return (
            f"{held.nodes} nodes, {held.applications} applications, {held.allocations} allocations, "
            f"{held.of_others} of others, {held.asks} asks, {held.ending} ending"
        )


def _texts(response: Any) -> list[str]:
    if isinstance(response, si.NodeResponse):
        accepted, rejected = response.accepted, response.rejected
        return [f"+{each.nodeID}" for each in accepted] + [f"-{each.nodeID}" for each in rejected]
    if isinstance(response, si.ApplicationResponse):
        texts = [f"+{each.applicationID}" for each in response.accepted]
        texts += [f"-{each.applicationID}" for each in response.rejected]
        return texts + [f"{each.applicationID} {each.state}" for each in response.updated]
    texts = [f"{each.allocationKey} on {each.nodeID}" for each in response.new]
    texts += [f"-{each.allocationKey}" for each in response.rejectedAllocations]
    kind = si.TerminationType.Name
    return texts + [f"{each.allocationKey} {kind(each.terminationType)}" for each in response.released]


def _to_end(key: str, kind: si.TerminationType) -> si.AllocationResponse:
    response = si.AllocationResponse()
    response.released.add(applicationID="app", allocationKey=key, terminationType=kind)
    return response


@dataclass(frozen=True, kw_only=True)
class Row:
    """What happens after the beginning, what the RM hears of it, and what the book holds at the end."""

    happens: Callable[[Talk], None]
    hears: list[str] = field(default_factory=list)
    holds: str = "1 nodes, 1 applications, 1 allocations, 0 of others, 0 asks, 0 ending"


def _nothing(talk: Talk) -> None:
    talk.lose()


def _release_under_way(talk: Talk) -> None:
    talk.release("a")
    talk.lose()


def _release_of_an_ask(talk: Talk) -> None:
    talk.allocations(an_allocation("b", memory=500))
    talk.settle()
    talk.release("b")
    talk.lose()


def _release_that_crosses_the_placement(talk: Talk) -> None:
    talk.allocations(an_allocation("b"))
    talk.link.deliver()
    talk.link.scheduler.run_until_idle()
    talk.release("b")


def _placement_of_a_withdrawn_ask_and_a_loss(talk: Talk) -> None:
    _release_that_crosses_the_placement(talk)
    talk.link.hear_next()
    talk.lose()


def _node_under_way(talk: Talk) -> None:
    talk.allocations(an_allocation("f", node_id="n", foreign=True))
    talk.node("n", si.NodeInfo.DECOMISSION)
    talk.lose()


def _node_comes_back(talk: Talk) -> None:
    talk.node("n", si.NodeInfo.DECOMISSION)
    talk.nodes(a_node("n", 50))
    talk.lose()


def _application_under_way(talk: Talk) -> None:
    talk.applications(remove=("app",))
    talk.lose()


def _nothing_was_answered(talk: Talk) -> None:
    talk.nodes(a_node("m", 100))
    talk.applications(an_application("other"))
    talk.allocations(an_allocation("b", "other", node_id="m"), an_allocation("c", "other", node_id="gone"))
    talk.lose()


def _created_and_ended_before_an_answer(talk: Talk) -> None:
    talk.nodes(a_node("m", 100))
    talk.node("m", si.NodeInfo.DECOMISSION)
    talk.applications(an_application("other"), remove=("other",))
    talk.lose()


def _duplicates(talk: Talk) -> None:
    talk.nodes(a_node("n", 7))
    talk.applications(an_application("app"))
    talk.settle()


def _duplicates_and_a_loss(talk: Talk) -> None:
    talk.nodes(a_node("n", 7))
    talk.applications(an_application("app"))
    talk.lose()


def _rejected_update_of_a_node(talk: Talk) -> None:
    talk.node("n", si.NodeInfo.UPDATE, -5)
    talk.lose()


def _rejected_updates(talk: Talk) -> None:
    talk.allocations(an_allocation("a", memory=0), an_allocation("a", memory=5, node_id="gone"))
    talk.settle()
    talk.lose()


def _rejected_updates_and_a_loss(talk: Talk) -> None:
    talk.allocations(an_allocation("a", memory=0), an_allocation("b", "gone"))
    talk.lose()


def _foreign_rejections(talk: Talk) -> None:
    talk.allocations(
        an_allocation("f", node_id="n", foreign=True),
        an_allocation("f", node_id="gone", foreign=True),
        an_allocation("g", node_id="gone", foreign=True),
    )
    talk.settle()
    talk.lose()


def _confirmation_in_the_same_session(talk: Talk) -> None:
    talk.says(_to_end("a", si.PREEMPTED_BY_SCHEDULER))
    talk.release("a", si.PREEMPTED_BY_SCHEDULER)


def _confirmation_in_a_later_session(talk: Talk) -> None:
    talk.says(_to_end("a", si.PREEMPTED_BY_SCHEDULER))
    talk.lose()
    talk.settle()
    talk.release("a", si.PREEMPTED_BY_SCHEDULER)


def _announced_again(talk: Talk) -> None:
    talk.says(_to_end("a", si.PREEMPTED_BY_SCHEDULER))
    talk.lose()
    talk.settle()
    talk.says(_to_end("a", si.PREEMPTED_BY_SCHEDULER))
    talk.release("a", si.PREEMPTED_BY_SCHEDULER)


def _announced_again_after_the_confirmation(talk: Talk) -> None:
    _confirmation_in_a_later_session(talk)
    talk.says(_to_end("a", si.TIMEOUT))


def _could_not_be_started(talk: Talk) -> None:
    talk.release("a", si.SCHEDULING_FAILED_ON_RM)
    talk.lose()


def _all_could_not_be_started(talk: Talk) -> None:
    talk.release("", si.SCHEDULING_FAILED_ON_RM)
    talk.lose()


def _all_released(talk: Talk) -> None:
    talk.allocations(an_allocation("b", memory=500))
    talk.release("")
    talk.lose()


def _unknown_reason(talk: Talk) -> None:
    talk.release("a", 77)
    talk.lose()


def _completes_after_the_loss(talk: Talk) -> None:
    talk.release("a")
    talk.lose()
    talk.settle()
    talk.link.advance(31_000)


def _runs_again_after_the_loss(talk: Talk) -> None:
    talk.release("a", si.SCHEDULING_FAILED_ON_RM)
    talk.node("n", si.NodeInfo.DRAIN_NODE)
    talk.lose()
    talk.settle()
    talk.node("n", si.NodeInfo.DRAIN_TO_SCHEDULABLE)


def _lost_twice(talk: Talk) -> None:
    talk.lose()
    talk.link.pump()
    talk.release("a")
    talk.lose()


def _queue_cannot_run_the_gang_any_more(talk: Talk) -> None:
    talk.applications(an_application("gang", placeholders=30))
    talk.allocations(an_allocation("p", "gang", node_id="n", placeholder=True, task_group="group"))
    talk.settle()
    talk.link.heard.clear()
    smaller = _QUEUES.replace("name: leaf", "name: leaf, resources: {max: {memory: 25}}")
    talk.link.update_configuration(si.UpdateConfigurationRequest(rmID="rm", config=smaller))
    talk.lose()
    talk.settle()
    talk.allocations(an_allocation("b", memory=5))


CASES: dict[str, Row] = {
    "an application is rejected by the new worker: what runs of it as well, and its node is used again": Row(
        happens=_queue_cannot_run_the_gang_any_more,
        hears=["-gang", "-p", "b on n"],
        holds="1 nodes, 1 applications, 2 allocations, 0 of others, 0 asks, 0 ending",
    ),
    "nothing is under way: the RM hears nothing": Row(happens=_nothing),
    "a release is under way: the book answers it": Row(
        happens=_release_under_way,
        hears=["a STOPPED_BY_RM", "app Completing"],
        holds="1 nodes, 1 applications, 0 allocations, 0 of others, 0 asks, 0 ending",
    ),
    "an ask is withdrawn: that has no answer": Row(happens=_release_of_an_ask),
    "an ask is withdrawn while it is placed: the worker says both": Row(
        happens=_release_that_crosses_the_placement, hears=["b on n", "b STOPPED_BY_RM"]
    ),
    "a withdrawn ask was placed, and its release is lost: the book says that": Row(
        happens=_placement_of_a_withdrawn_ask_and_a_loss, hears=["b on n", "b STOPPED_BY_RM"]
    ),
    "a node is removed: what is on it has ended, and what others had there is gone": Row(
        happens=_node_under_way,
        hears=["a STOPPED_BY_RM", "app Completing"],
        holds="0 nodes, 1 applications, 0 allocations, 0 of others, 0 asks, 0 ending",
    ),
    "a node is removed and comes back: what was on it has ended": Row(
        happens=_node_comes_back,
        hears=["a STOPPED_BY_RM", "+n", "app Completing"],
        holds="1 nodes, 1 applications, 0 allocations, 0 of others, 0 asks, 0 ending",
    ),
    "an application is removed: all that it had has ended": Row(
        happens=_application_under_way,
        hears=["a STOPPED_BY_RM"],
        holds="1 nodes, 0 applications, 0 allocations, 0 of others, 0 asks, 0 ending",
    ),
    "nothing was answered: the new worker answers, once": Row(
        happens=_nothing_was_answered,
        hears=["+m", "+other", "other Accepted", "other Running", "b on m", "-c"],
        holds="2 nodes, 2 applications, 2 allocations, 0 of others, 0 asks, 0 ending",
    ),
    "something was created and ended before an answer: the book says that it was accepted": Row(
        happens=_created_and_ended_before_an_answer, hears=["+m", "+other"]
    ),
    "ids that are there are rejected, and stay": Row(happens=_duplicates, hears=["-n", "-app"]),
    "ids that are there are rejected by the new worker": Row(
        happens=_duplicates_and_a_loss, hears=["-n", "-app"]
    ),
    "an invalid update of a node is rejected by the new worker": Row(
        happens=_rejected_update_of_a_node, hears=["-n"]
    ),
    "invalid updates leave what was there": Row(happens=_rejected_updates, hears=["-a", "-a"]),
    "invalid updates, and asks of unknown applications, are rejected by the new worker": Row(
        happens=_rejected_updates_and_a_loss, hears=["-b", "-a"]
    ),
    "invalid updates of what others run leave what was there": Row(
        happens=_foreign_rejections,
        hears=["-f", "-g"],
        holds="1 nodes, 1 applications, 1 allocations, 1 of others, 0 asks, 0 ending",
    ),
    "an end is confirmed in the session that asked for it: nothing is answered": Row(
        happens=_confirmation_in_the_same_session,
        hears=["a PREEMPTED_BY_SCHEDULER", "app Completing"],
        holds="1 nodes, 1 applications, 0 allocations, 0 of others, 0 asks, 0 ending",
    ),
    "an end is confirmed in a later session: its answer is not for the RM": Row(
        happens=_confirmation_in_a_later_session,
        hears=["a PREEMPTED_BY_SCHEDULER", "app Completing"],
        holds="1 nodes, 1 applications, 0 allocations, 0 of others, 0 asks, 0 ending",
    ),
    "an end is asked for again: the RM hears it once": Row(
        happens=_announced_again,
        hears=["a PREEMPTED_BY_SCHEDULER", "app Completing"],
        holds="1 nodes, 1 applications, 0 allocations, 0 of others, 0 asks, 0 ending",
    ),
    "an end is asked for again while the confirmation is under way: the RM hears it once": Row(
        happens=_announced_again_after_the_confirmation,
        hears=["a PREEMPTED_BY_SCHEDULER", "app Completing"],
        holds="1 nodes, 1 applications, 0 allocations, 0 of others, 0 asks, 0 ending",
    ),
    "what could not be started waits again": Row(happens=_could_not_be_started, hears=["a on n"]),
    "all that could not be started waits again": Row(happens=_all_could_not_be_started, hears=["a on n"]),
    "all of an application is released": Row(
        happens=_all_released,
        hears=["a STOPPED_BY_RM", "app Completing"],
        holds="1 nodes, 1 applications, 0 allocations, 0 of others, 0 asks, 0 ending",
    ),
    "a release for an unknown reason is rejected by the new worker": Row(
        happens=_unknown_reason, hears=["-a"]
    ),
    "an application that has nothing left completes on the new worker": Row(
        happens=_completes_after_the_loss,
        hears=["a STOPPED_BY_RM", "app Completing", "app Completed"],
        holds="1 nodes, 0 applications, 0 allocations, 0 of others, 0 asks, 0 ending",
    ),
    "an application that has run and waits does not say again that it is accepted and runs": Row(
        happens=_runs_again_after_the_loss, hears=["a on n"]
    ),
    "a worker is lost during its recovery": Row(
        happens=_lost_twice,
        hears=["a STOPPED_BY_RM", "app Completing"],
        holds="1 nodes, 1 applications, 0 allocations, 0 of others, 0 asks, 0 ending",
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_rm_hears_each_thing_once(case: Row) -> None:
    """From the old worker, from the new one, or from the book; and the book holds what is left."""
    talk = Talk()
    talk.begin()
    case.happens(talk)
    talk.settle()

    assert case.hears == talk.heard
    assert case.holds == talk.holds
    talk.link.stop()
