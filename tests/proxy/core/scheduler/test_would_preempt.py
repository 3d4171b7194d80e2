"""Who would be preempted for what an application waits for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.proxy.listening import Listener
from support.proxy.manager_requests import application_request, ask_request, node_request

from licorne import Scheduler
from licorne.model.preemption.guarantee.attempt_budget import NoPreemption
from licorne.proxy.core.scheduler.engine_names import EngineName

QUEUES = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: owed
            resources: {guaranteed: {memory: 60}, max: {memory: 70}}
            properties: {preemption.delay: 10s}
          - {name: greedy, resources: {guaranteed: {memory: 20}}}
          - {name: plain}
"""
SECOND_NS = 1_000_000_000


@pytest.fixture(params=["direct", "actors", "threads"])
def scheduler(request: pytest.FixtureRequest) -> Iterator[Scheduler]:
    """A node of 100 that `greedy` fills with tasks of 20; `owed` waits for 40."""
    engine: EngineName = request.param
    with Scheduler(engine=engine, stepped=True) as made:
        made.register("rm", Listener(), configuration=QUEUES)
        made.update_node(node_request("n1", memory=100))
        made.update_application(application_request("study", queue="root.greedy"))
        made.update_application(application_request("shop", queue="root.owed"))
        for key in ("s1", "s2", "s3", "s4", "s5"):
            asked = ask_request(key, application="study", memory=20)
            asked.allocations[0].preemptionPolicy.allowPreemptSelf = True
            made.update_allocation(asked)
        made.run_until_idle()
        wait(made, "shop", "p1", 40)
        yield made


def wait(scheduler: Scheduler, application: str, key: str, memory: int, *, allowed: bool = True) -> None:
    asked = ask_request(key, application=application, memory=memory)
    asked.allocations[0].preemptionPolicy.allowPreemptOther = allowed
    scheduler.update_allocation(asked)
    scheduler.run_until_idle()


def test_the_victims_are_those_that_a_cycle_chooses(scheduler: Scheduler) -> None:
    """Known ten seconds before, when the ask is not yet old enough."""
    (prospect,) = scheduler.would_preempt("shop")
    due_ns = scheduler.now_ns() + 10 * SECOND_NS
    assert prospect.record is not None
    before = {victim.allocation_key for victim in prospect.record.victims}

    scheduler.advance_to(due_ns)
    scheduler.run_until_idle()
    (done,) = scheduler.explain("shop").preemptions

    assert {victim.allocation_key for victim in done.victims} == before
    assert 2 == len(before)
    assert (done.node_id, due_ns) == (prospect.record.node_id, prospect.due_ns)


def test_an_ask_whose_victims_are_ending_preempts_nothing_more(scheduler: Scheduler) -> None:
    """As in a cycle: until the resource manager has confirmed their end."""
    scheduler.advance_to(scheduler.now_ns() + 10 * SECOND_NS)
    scheduler.run_until_idle()

    (prospect,) = scheduler.would_preempt("shop")

    assert prospect.record is None
    assert "it has preempted already, and what it chose is still ending" == prospect.why_not


REFUSED = NoPreemption.GUARANTEE.text


def test_a_look_changes_nothing(scheduler: Scheduler) -> None:
    """Not even what is noted on the ask."""
    before = scheduler.snapshot()
    scheduler.would_preempt("shop")
    scheduler.validate()

    assert before == scheduler.snapshot()


@pytest.mark.parametrize(
    ("queue", "memory", "allowed", "why"),
    [
        ("root.plain", 10, True, "no queue of its path has a guarantee"),
        ("root.owed", 10, False, "the ask does not allow others to be preempted for it"),
        (
            *("root.greedy", 10, True),
            f"{REFUSED}: it asks for memory 10, and root.greedy has memory 0 left of its guarantee",
        ),
    ],
)
def test_what_would_not_preempt_says_why(
    scheduler: Scheduler, queue: str, memory: int, why: str, *, allowed: bool
) -> None:
    """One of the reasons that there are."""
    scheduler.update_application(application_request("other", queue=queue))
    wait(scheduler, "other", "o1", memory, allowed=allowed)

    (prospect,) = scheduler.would_preempt("other")

    assert (None, why) == (prospect.record, prospect.why_not)


def test_nothing_waits_in_an_application_that_runs_or_is_unknown(scheduler: Scheduler) -> None:
    """So there is nothing to decide."""
    assert () == scheduler.would_preempt("study")
    assert () == scheduler.would_preempt("nothing")
