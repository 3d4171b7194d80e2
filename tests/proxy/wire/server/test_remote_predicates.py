"""Predicates of a resource manager (RM) in another process: asked in batches, with a deadline."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from support.proxy.listening import Listener
from support.proxy.manager_requests import ONE, application_request, ask_request, keys, node_request
from support.proxy.wire_client import WireClient
from support.proxy.wire_streams import WireStreams
from support.waiting import WAIT_SECONDS, happens, wait_until

from licorne import LicorneError, RemoteScheduler
from licorne.proxy.si import licorne_v1_pb2 as v1
from licorne.proxy.si import si_pb2 as si

if TYPE_CHECKING:
    from .conftest import Served


class Picky(Listener):
    """Refuses nodes with an even number."""

    def __init__(self) -> None:
        super().__init__()
        self.placed_on: list[str] = []
        self.asked = 0

    def predicates(self, args: si.PredicatesArgs) -> None:
        self.asked += 1
        if int(args.nodeID.removeprefix("n")) % 2 == 0:
            raise LicorneError(f"{args.nodeID} is even")

    def update_allocation(self, response: si.AllocationResponse) -> None:
        self.placed_on += [allocation.nodeID for allocation in response.new]
        super().update_allocation(response)


def test_refused_nodes_get_nothing(served: Served) -> None:
    """All tasks are placed, on the others."""
    picky = Picky()
    with RemoteScheduler(served.address) as scheduler:
        scheduler.register("rm", picky, configuration=ONE)
        scheduler.update_node(node_request(*(f"n{number}" for number in range(40))))
        scheduler.update_application(application_request("app"))
        scheduler.update_allocation(ask_request(*keys(200)))
        picky.wait_for_count("placed ", 200)
        scheduler.validate()
    assert {int(node.removeprefix("n")) % 2 for node in picky.placed_on} == {1}


def test_the_reason_of_a_refusal_is_explained(served: Served) -> None:
    """As in process."""
    picky = Picky()
    with RemoteScheduler(served.address) as scheduler:
        scheduler.register("rm", picky, configuration=ONE)
        scheduler.update_node(node_request("n2"))
        scheduler.update_application(application_request("app"))
        scheduler.update_allocation(ask_request("task"))
        wait_until(lambda: picky.asked > 0 and "n2 is even" in str(scheduler.explain("app")))


class Silent(Listener):
    """Does not answer until it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.go_on = threading.Event()

    def predicates(self, args: si.PredicatesArgs) -> None:  # noqa: ARG002 - whatever is asked
        self.go_on.wait(WAIT_SECONDS)


def test_an_rm_that_does_not_answer_holds_up_nobody_else(served: Served) -> None:
    """Its asks count as refused after the deadline, and explanations say so; others are placed."""
    silent, other = Silent(), Listener()
    with RemoteScheduler(served.address) as scheduler, RemoteScheduler(served.address) as second:
        scheduler.register("rm", silent, configuration=ONE)
        second.register("other", other, configuration=ONE)
        scheduler.update_node(node_request("n1"))
        scheduler.update_application(application_request("app"))
        scheduler.update_allocation(ask_request("task"))
        second.update_node(node_request("n1", rm_id="other"))
        second.update_application(application_request("app", rm_id="other"))
        asks = ask_request("task")
        asks.rmID = "other"
        second.update_allocation(asks)
        other.wait_for("placed task")

        told = happens(lambda: "gave no answer" in str(scheduler.explain("app", rm_id="rm")))
        silent.go_on.set()
        assert told
        silent.wait_for("placed task")


def test_a_companion_answers_for_the_streams_of_si(served: Served) -> None:
    """An RM in another language opens a session beside its streams, before it registers."""
    channel = served.channel()
    companion = channel.stream_stream(
        "/licorne.v1.Session/Open",
        request_serializer=v1.ManagerMessage.SerializeToString,
        response_deserializer=v1.SchedulerMessage.FromString,
    )
    answered = threading.Semaphore(0)
    batches: list[v1.PredicateQuestions] = []

    def messages() -> Iterator[v1.ManagerMessage]:
        hello = v1.Hello(companion_of="rm", predicates=True)
        yield v1.ManagerMessage(call=1, hello=hello)
        while True:
            answered.acquire()
            questions = batches.pop(0)
            answers = v1.PredicateAnswers(batch=questions.batch, reasons=["not there"])
            for question in questions.questions:
                nodes = list(questions.node_lists[question.node_list].node_ids)
                refused = [position for position, node in enumerate(nodes) if node == "n1"]
                answers.answers.add(refused=refused, reasons=[0] * len(refused))
            yield v1.ManagerMessage(predicate_answers=answers)

    stream = companion(messages())
    assert next(stream).HasField("answer")

    def answer() -> None:
        try:
            for message in stream:
                if message.HasField("predicates"):
                    batches.append(message.predicates)
                    answered.release()
        except Exception:  # noqa: BLE001 - the test ends
            return

    threading.Thread(target=answer, daemon=True).start()
    WireClient(channel).register("rm")
    streams = WireStreams(channel)
    streams.nodes.send(node_request("n1", "n2"))
    assert len(streams.nodes.next().accepted) == 2
    streams.applications.send(application_request("app"))
    assert streams.applications.next().accepted
    streams.allocations.send(ask_request("a", "b"))
    placed = list(streams.allocations.next().new)
    while len(placed) < 2:
        placed += streams.allocations.next().new

    assert {each.nodeID for each in placed} == {"n2"}
    stream.cancel()
