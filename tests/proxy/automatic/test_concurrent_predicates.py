"""Several scheduling threads judge in one partition of the engine `threads`."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from support.proxy.listening import Gate, Listener, PredicateListener, once
from support.proxy.manager_requests import (
    application_request,
    ask_request,
    keys,
    node_request,
    release_request,
)
from support.proxy.running_scheduler import begin, in_threads, running
from support.proxy.threads_stress import node_end
from support.waiting import WAIT_SECONDS

from licorne import Scheduler
from licorne.proxy.si import si_pb2 as si


class Refusing(PredicateListener):
    """A judge that refuses the first questions about some keys, as many as the test says."""

    def __init__(self, **times: int) -> None:
        super().__init__()
        self._left = {key.replace("_", "-"): count for key, count in times.items()}

    def predicates(self, args: si.PredicatesArgs) -> None:
        super().predicates(args)
        if self._left.get(args.allocationKey):
            self._left[args.allocationKey] -= 1
            raise ValueError("not there")


def log_of(scheduler: Scheduler, key: str) -> dict[str, int]:
    """Return how often each refusal has been counted for an ask that waits."""
    snapshot: Any = scheduler.snapshot()
    asks = [
        ask
        for applications in snapshot["applications"].values()
        for application in applications
        for ask in application.get("requests", [])
        if ask["allocationKey"] == key
    ]
    return {entry["message"]: entry["count"] for entry in asks[0].get("allocationLog", [])}


def placed(predicate_listener: Listener) -> list[str]:
    """Return what has been placed, sorted."""
    return sorted(predicate_listener.all("placed "))


@pytest.mark.parametrize("threads", [2, 4])
def test_all_threads_run_predicates_in_one_partition(threads: int) -> None:
    """The manager answers only when it has been asked by all of them."""
    predicate_listener = PredicateListener()
    asked = threading.Barrier(threads)

    def wait_for_the_others(text: str) -> None:
        if text.startswith("asked"):
            asked.wait(WAIT_SECONDS)

    predicate_listener.react = wait_for_the_others
    with running("threads", threads=threads) as scheduler:
        begin(scheduler, predicate_listener)
        scheduler.update_allocation(ask_request(*keys(threads)))
        predicate_listener.wait_for_count("placed ", threads)

    assert not asked.broken
    assert keys(threads) == placed(predicate_listener) == sorted(predicate_listener.all("asked to place "))


def test_a_predicate_runs_at_once_for_an_ask_that_comes_during_another() -> None:
    """By a thread that is free, also where the other ones find nothing more to do meanwhile."""
    predicate_listener, gate = PredicateListener(), Gate("asked to place slow")
    predicate_listener.react = gate.hold
    with running("threads", threads=3) as scheduler:
        begin(scheduler, predicate_listener)
        scheduler.update_allocation(ask_request("slow"))
        assert gate.reached.wait(WAIT_SECONDS)
        for key in ("first", "second"):
            scheduler.update_allocation(ask_request(key))
            predicate_listener.wait_for(f"placed {key}")
        assert ["first", "second"] == placed(predicate_listener)
        gate.open()
        predicate_listener.wait_for("placed slow")


def test_one_thread_asks_one_question_at_a_time() -> None:
    """As the engine `direct` does, in its order."""
    predicate_listener = PredicateListener()
    with running("threads", threads=1) as scheduler:
        begin(scheduler, predicate_listener)
        scheduler.update_allocation(ask_request(*keys(6)))
        predicate_listener.wait_for_count("placed ", 6)

    assert keys(6) == predicate_listener.all("placed ")
    assert keys(6) == predicate_listener.all("asked to place ")


def test_passing_over_leaves_nothing_behind() -> None:
    """The ask whose answer is pending is neither refused nor backed off, and placed with the answer."""
    predicate_listener, gate = PredicateListener(), Gate("asked to place slow")
    predicate_listener.react = gate.hold
    with running("threads", threads=2) as scheduler:
        begin(scheduler, predicate_listener)
        scheduler.update_allocation(ask_request("slow"))
        assert gate.reached.wait(WAIT_SECONDS)
        scheduler.update_allocation(ask_request(*keys(3)))
        predicate_listener.wait_for_count("placed ", 3)
        log = log_of(scheduler, "slow")
        explained = scheduler.explain_ask("app", "slow")
        gate.open()
        predicate_listener.wait_for("placed slow")

    assert {} == log
    assert [] == [blocker for ask in explained.asks for blocker in ask.blockers]


# ------------------------------------------------------------- what changes while the manager judges


def stepped(predicate_listener: PredicateListener) -> Scheduler:
    """Return a scheduler that is stepped, on locks, so that others may call while the manager judges."""
    scheduler = Scheduler(engine="threads", stepped=True)
    scheduler.register("rm", predicate_listener, configuration=LIMITED)
    scheduler.update_node(node_request("node-1"))
    scheduler.update_application(application_request("app"))
    return scheduler


LIMITED = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues: [{name: leaf, resources: {max: {memory: 50}}}]
"""


def elsewhere(*calls: Callable[[], object]) -> Callable[[], object]:
    """Make an action that makes calls on another thread, as an RM may that judges on one of its own."""
    return lambda: in_threads(lambda: [call() for call in calls])


NEWS = {
    "the ask has come anew": (release_request("ask"), ask_request("ask", memory=2)),
    "the ask was changed": (ask_request("ask", memory=7),),
    "the node has come anew": (node_end("node-1", ""), node_request("node-1", memory=90)),
}


@pytest.mark.parametrize("news", NEWS.values(), ids=NEWS)
def test_what_has_come_anew_is_asked_about_anew(
    news: tuple[si.AllocationRequest | si.NodeRequest, ...],
) -> None:
    """What was said of the one before does not hold for the one that has its name now."""
    predicate_listener = PredicateListener()
    with stepped(predicate_listener) as scheduler:
        predicate_listener.react = once(
            "asked to place ask", elsewhere(*[partial(tell, scheduler, each) for each in news])
        )
        scheduler.update_allocation(ask_request("ask"))
        scheduler.run_until_idle()

    assert ["ask", "ask"] == predicate_listener.all("asked to place ")
    assert ["ask"] == placed(predicate_listener)


def tell(scheduler: Scheduler, request: si.AllocationRequest | si.NodeRequest) -> None:
    if isinstance(request, si.NodeRequest):
        scheduler.update_node(request)
    else:
        scheduler.update_allocation(request)


def test_an_ask_that_was_withdrawn_is_not_placed() -> None:
    """The answer comes too late."""
    predicate_listener = PredicateListener()
    with stepped(predicate_listener) as scheduler:
        withdrawn = partial(scheduler.update_allocation, release_request("ask"))
        predicate_listener.react = once("asked to place ask", elsewhere(withdrawn))
        scheduler.update_allocation(ask_request("ask"))
        scheduler.run_until_idle()
        scheduler.validate()

    assert [] == placed(predicate_listener)


def test_other_news_leave_an_answer_as_it_is() -> None:
    """So that a manager that talks all the time gets its answers used all the same."""
    predicate_listener = PredicateListener()
    with stepped(predicate_listener) as scheduler:
        changed = node_request("node-1", memory=90)
        changed.nodes[0].action = si.NodeInfo.UPDATE
        news = [partial(tell, scheduler, each) for each in (ask_request("other"), changed)]
        predicate_listener.react = once("asked to place ask", elsewhere(*news))
        scheduler.update_allocation(ask_request("ask"))
        scheduler.run_until_idle()

    assert ["ask", "other"] == predicate_listener.all("asked to place ")


def test_a_cycle_that_is_broken_off_counts_no_refusal() -> None:
    """The log says what the cycle says that comes to an end, also of quotas."""
    predicate_listener = Refusing(ask=1)
    with stepped(predicate_listener) as scheduler:
        change = partial(scheduler.update_application, application_request("another"))
        predicate_listener.react = once("asked to place ask", elsewhere(change))
        scheduler.update_allocation(ask_request("large", memory=60))
        scheduler.update_allocation(ask_request("ask"))
        assert 0 == scheduler.schedule(1)

        assert {"Not enough queue quota": 1} == log_of(scheduler, "large")
        assert {"ValueError: not there": 1} == log_of(scheduler, "ask")
