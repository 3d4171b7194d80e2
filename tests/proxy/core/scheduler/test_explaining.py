"""`Scheduler.explain`, on every engine: the question goes down, and the answer is a value."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from support.proxy.manager_requests import application_request, ask_request, node_request
from support.waiting import WAIT_SECONDS

from licorne import RequestError, ResourceManager, Scheduler
from licorne.model.state.partition_state import BrokenKind
from licorne.model.values.allocation import RefusalReason
from licorne.proxy.si import si_pb2 as si

if TYPE_CHECKING:
    from licorne.proxy.core.scheduler.engine_names import EngineName

QUEUES = """\
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: small
            resources:
              max: {memory: 5}
"""
ENGINES = pytest.mark.parametrize(
    ("engine", "stepped"), [("direct", True), ("actors", True), ("actors", False)]
)


def submit(scheduler: Scheduler, rm_id: str = "rm") -> None:
    """Bring a node and an application whose ask is larger than its queue."""
    scheduler.update_node(node_request("n1", rm_id=rm_id))
    scheduler.update_application(application_request("app", rm_id=rm_id, queue="root.small"))
    scheduler.update_allocation(ask_request("ask", rm_id=rm_id, memory=8))


@ENGINES
def test_a_scheduler_says_what_stands_in_the_way(engine: EngineName, *, stepped: bool) -> None:
    """Also one that runs by itself, where applications and nodes are actors."""
    with Scheduler(engine=engine, stepped=stepped, check_direction=True) as scheduler:
        scheduler.register("rm", ResourceManager(), configuration=QUEUES)
        submit(scheduler)

        explanation = scheduler.explain("app")

    (ask,) = explanation.asks
    (blocker,) = ask.blockers
    assert (RefusalReason.QUEUE_QUOTA, "root.small") == (blocker.reason, blocker.subject)
    (lack,) = blocker.lacks
    assert (8, 5, 5, 3) == (lack.asked, lack.available, lack.limit, lack.missing)
    assert lack.position is not None
    lines = QUEUES.split("\n")
    assert lines[lack.position.line - 1][lack.position.column - 1 :].startswith("5}")


@ENGINES
def test_engines_give_equal_explanations(engine: EngineName, *, stepped: bool) -> None:
    """All but the time, which a scheduler that runs by itself takes from the wall."""
    with Scheduler(engine="direct") as reference, Scheduler(engine=engine, stepped=stepped) as scheduler:
        for one in (reference, scheduler):
            one.register("rm", ResourceManager(), configuration=QUEUES)
            submit(one)
        expected, explanation = reference.explain("app"), scheduler.explain("app")

    assert [ask.blockers for ask in expected.asks] == [ask.blockers for ask in explanation.asks]
    assert [ask.nodes for ask in expected.asks] == [ask.nodes for ask in explanation.asks]
    assert expected.places == explanation.places


class Judge(ResourceManager):
    """Refuses a node, and explains that."""

    def predicates(self, args: si.PredicatesArgs) -> None:
        """Refuse."""
        raise ValueError(f"{args.nodeID} has a taint")

    def refused_nodes(self, allocation_key: str) -> dict[str, str]:
        """Return the node."""
        return {"n1": f"untolerated taint of {allocation_key}"}


class FailingJudge(Judge):
    """Cannot explain what it refuses."""

    def refused_nodes(self, allocation_key: str) -> dict[str, str]:
        """Raise."""
        raise KeyError(allocation_key)


def nodes_judged_by(manager: ResourceManager, **options: Any) -> tuple[tuple[tuple[str, int], ...], ...]:
    """Return the reasons of nodes for one ask, by both questions."""
    with Scheduler(**options) as scheduler:
        scheduler.register("rm", manager, configuration=QUEUES)
        scheduler.update_node(node_request("n1"))
        scheduler.update_application(application_request("app", queue="root.small"))
        scheduler.update_allocation(ask_request("ask", memory=1))
        asks = [*scheduler.explain("app").asks, *scheduler.explain_ask("app", "ask").asks]
    return tuple(ask.nodes.reasons for ask in asks if ask.nodes is not None)


@ENGINES
def test_a_resource_manager_explains_what_it_refuses(engine: EngineName, *, stepped: bool) -> None:
    """In a few words, which are counted; it is asked on no thread of the scheduler."""
    found = nodes_judged_by(Judge(), engine=engine, stepped=stepped)

    assert ((("untolerated taint of ask", 1),),) * 2 == found


def test_an_explanation_is_made_without_reasons_that_fail() -> None:
    """The failure is reported, once for each question."""
    failures: list[Any] = []

    found = nodes_judged_by(FailingJudge(), engine="direct", on_error=failures.append)

    assert ((), ()) == found
    assert ["refused_nodes"] * 2 == [failure.callback for failure in failures]


@pytest.fixture
def busy() -> Iterator[Scheduler]:
    """Give a stepped scheduler with an application that waits."""
    with Scheduler(engine="direct") as scheduler:
        scheduler.register("rm", ResourceManager(), configuration=QUEUES)
        submit(scheduler)
        yield scheduler


def test_one_ask_is_explained_alone(busy: Scheduler) -> None:
    """By its key."""
    assert ["ask"] == [ask.allocation_key for ask in busy.explain_ask("app", "ask").asks]


def test_what_is_not_known_is_an_error_that_names_it(busy: Scheduler) -> None:
    """An application, an ask, a partition."""
    with pytest.raises(RequestError, match=r"application 'ap' is not known: .*; did you mean 'app'\?"):
        busy.explain("ap")
    with pytest.raises(RequestError, match=r"application app has no ask .*'asks'; did you mean 'ask'\?"):
        busy.explain_ask("app", "asks")
    with pytest.raises(RequestError, match=r"no partition \[any\]gpu; the partitions are: \[rm\]default"):
        busy.explain("app", partition="gpu")


def break_application(scheduler: Scheduler) -> None:
    (partition,) = scheduler._cluster.partitions()
    partition.quarantine(BrokenKind.APPLICATION, "app", "a sum is wrong")


def test_an_application_that_broke_is_reported_in_quarantine(busy: Scheduler) -> None:
    """What it says of itself is not asked for."""
    break_application(busy)

    with pytest.raises(RequestError, match="application 'app' is quarantined: a sum is wrong"):
        busy.explain("app")


def test_an_application_that_broke_is_not_taken_for_an_earlier_one_of_its_id() -> None:
    """The one that was rejected is still known."""
    with Scheduler(engine="direct") as scheduler:
        scheduler.register("rm", ResourceManager(), configuration=QUEUES)
        scheduler.update_application(application_request("app", queue="root.no"))
        rejected = scheduler.explain("app").rejection
        submit(scheduler)
        break_application(scheduler)

        assert rejected
        with pytest.raises(RequestError, match="is quarantined: a sum is wrong; it broke by a bug"):
            scheduler.explain("app")


def test_an_application_of_two_managers_needs_the_name_of_one() -> None:
    """Each has a partition of its own."""
    with Scheduler(engine="direct") as scheduler:
        for rm_id in ("one", "two"):
            scheduler.register(rm_id, ResourceManager(), configuration=QUEUES)
            submit(scheduler, rm_id)

        with pytest.raises(RequestError, match=r"several partitions, name one: \[one\]default, \[two\]def"):
            scheduler.explain("app")
        assert "[two]default" == scheduler.explain("app", rm_id="two").partition


@ENGINES
def test_a_predicate_cannot_ask_for_an_explanation(engine: EngineName, *, stepped: bool) -> None:
    """Its partition is in the middle of a decision, and waits for it."""
    refused: list[str] = []

    class Curious(ResourceManager):
        def predicates(self, args: si.PredicatesArgs) -> None:  # noqa: ARG002 - what si says
            try:
                scheduler.explain("app")
            except RequestError as error:
                refused.append(str(error))
                done.set()

    done = threading.Event()
    with Scheduler(engine=engine, stepped=stepped) as scheduler:
        scheduler.register("rm", Curious(), configuration=QUEUES.replace("5}", "50}"))
        submit(scheduler)
        if stepped:
            scheduler.run_until_idle()
        assert done.wait(WAIT_SECONDS)

    assert "an explanation inside a predicate is refused" in refused[0]


@pytest.mark.parametrize(("engine", "stepped"), [("direct", True), ("actors", False), ("threads", False)])
def test_a_scheduler_says_where_an_application_is_and_whose(engine: EngineName, *, stepped: bool) -> None:
    """The queue that the rules found, and nothing where no partition has the application."""
    rules = "placementrules: [{name: user, create: true}]"
    queues = f"partitions: [{{name: default, {rules}, queues: [{{name: root, submitacl: '*'}}]}}]"
    with Scheduler(engine=engine, stepped=stepped) as scheduler:
        scheduler.register("rm", ResourceManager(), configuration=queues)
        new = si.AddApplicationRequest(applicationID="app", queueName="root.other")
        new.ugi.CopyFrom(si.UserGroupInformation(user="ada", groups=["a", "b"]))
        scheduler.update_application(si.ApplicationRequest(rmID="rm", new=[new]))
        found = scheduler.queue_and_user("app", rm_id="rm", partition="default")

        assert ("root.ada", "ada", ("a", "b")) == found
        assert None is scheduler.queue_and_user("unknown")
        with pytest.raises(RequestError, match="there is no partition"):
            scheduler.queue_and_user("app", partition="second")


@ENGINES
def test_the_asks_that_are_tried_next_come_in_their_order(engine: EngineName, *, stepped: bool) -> None:
    """For each partition that is meant."""
    with Scheduler(engine=engine, stepped=stepped, check_direction=True) as scheduler:
        scheduler.register("rm", ResourceManager(), configuration=QUEUES)
        submit(scheduler)
        (found,) = scheduler.next_asks()

        assert (["ask"], "[rm]default") == ([one.ask.allocation_key for one in found.asks], found.partition)
        assert 1 == len(scheduler.next_asks(1, rm_id="rm", partition="[rm]default"))
        with pytest.raises(RequestError, match="count=251 is not from 1 to 250"):
            scheduler.next_asks(251)
        with pytest.raises(RequestError, match=r"no partition \[rm\]gpu"):
            scheduler.next_asks(rm_id="rm", partition="gpu")
