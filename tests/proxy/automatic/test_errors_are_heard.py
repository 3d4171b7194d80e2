"""A callback or predicate that fails is not silence: the program hears of it, once or always as it likes."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from support.proxy.listening import Listener, PredicateListener
from support.proxy.manager_requests import ONE, ask_request, node_request
from support.proxy.running_scheduler import begin, running

from licorne import CallbackFailure, RequestError, ResourceManager, Scheduler
from licorne.proxy.si import si_pb2 as si


def test_the_first_failure_of_each_kind_is_logged(
    scheduler: Scheduler, listener: Listener, complaints: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    """By `logging`, whose last resort is standard error; the record has the error."""

    def fail(text: str) -> None:
        raise ValueError(text) if "ask" in text else KeyError(text)

    begin(scheduler, listener)
    listener.react = fail
    scheduler.update_allocation(ask_request("ask-1", "ask-2"))
    listener.wait_for("placed ask-2")
    scheduler.stop()

    texts = [record.getMessage() for record in caplog.records]
    goes_on = "the scheduler continues, and reports no other {} there"
    assert [
        "update_application of resource manager 'rm' raised KeyError: 'app is Accepted'",
        goes_on.format("KeyError"),
        "update_allocation of resource manager 'rm' raised ValueError: placed ask-1",
        goes_on.format("ValueError"),
    ] == [part for text in sorted(texts, reverse=True) for part in text.split("; ")]
    assert all(record.exc_info and record.levelno == logging.ERROR for record in caplog.records)
    complaints.clear()


def test_a_program_may_hear_all_errors(complaints: list[str], caplog: pytest.LogCaptureFixture) -> None:
    """Then nothing is logged for it; a hook that fails itself is."""
    heard: list[CallbackFailure] = []

    def hear(failure: CallbackFailure) -> None:
        heard.append(failure)
        raise ZeroDivisionError

    def fail(text: str) -> None:
        raise ValueError(text)

    listener = Listener()
    with Scheduler(on_error=hear) as scheduler:
        begin(scheduler, listener)
        listener.react = fail
        scheduler.update_allocation(ask_request("ask-1", "ask-2"))
        listener.wait_for("placed ask-2")

    assert {"rm"} == {failure.rm_id for failure in heard}
    assert ["placed ask-1", "placed ask-2"] == [
        str(failure.error) for failure in heard if failure.callback == "update_allocation"
    ]
    assert ["on_error of resource manager 'rm' raised ZeroDivisionError"] == [
        record.getMessage().partition(";")[0] for record in caplog.records
    ]
    complaints.clear()


class Mistaken(PredicateListener):
    """Has a misspelled attribute in a predicate."""

    def predicates(self, args: si.PredicatesArgs) -> None:
        misspelled: Any = args
        print(misspelled.nodeId)  # noqa: T201 - it raises before


class Refusing(PredicateListener):
    """Refuses every node."""

    def predicates(self, args: si.PredicatesArgs) -> None:
        raise RuntimeError(f"not on {args.nodeID}")


def test_a_fault_in_a_predicate_is_shown_and_named_in_the_refusal(caplog: pytest.LogCaptureFixture) -> None:
    """A refusal that is meant is not shown; its text is in the explanation, with the type of the error."""
    for predicate_listener, shown, reason in (
        (Mistaken(), 1, "AttributeError: "),  # What follows depends on the implementation of protobuf.
        (Refusing(), 0, "RuntimeError: not on node-default"),
    ):
        caplog.clear()
        with running() as scheduler:
            begin(scheduler, predicate_listener)
            scheduler.update_allocation(ask_request("ask"))
            while reason not in str(scheduler.explain_ask("app", "ask")):
                assert not predicate_listener.all("placed ")

        assert shown == len(caplog.records)


class Half:
    """Has not all callbacks."""

    def update_allocation(self, response: si.AllocationResponse) -> None:
        """Let it pass."""


@pytest.mark.parametrize("callback", [None, Half(), ResourceManager])
def test_a_callback_that_cannot_be_called_is_refused(scheduler: Scheduler, callback: Any) -> None:
    """At the registration, not in silence when there is something to tell."""
    if callback is ResourceManager:
        scheduler.register("rm", ResourceManager(), configuration=ONE)
        scheduler.update_node(node_request("node"))
        return
    with pytest.raises(RequestError, match=r"the callback .* of a resource manager has no method update_"):
        scheduler.register("rm", callback, configuration=ONE)
