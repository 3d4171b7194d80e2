"""The end of a scheduler, also in the middle of its work."""

from __future__ import annotations

import threading
from collections import Counter
from functools import partial

import pytest
from support.proxy.listening import WAIT_SECONDS, Gate, Listener
from support.proxy.manager_requests import (
    TWO,
    application_request,
    ask_request,
    configuration_request,
    keys,
    node_request,
)
from support.proxy.running_scheduler import begin, placed_in

from licorne import LicorneError, RequestError, Scheduler
from licorne.model.values.messages import ApplicationSubmission
from licorne.proxy.si import si_pb2 as si


def test_a_stop_while_busy_returns(scheduler: Scheduler, listener: Listener) -> None:
    """With thousands of asks unplaced; the fixtures find no thread left, and no error in the log."""
    begin(scheduler, listener, memory=100_000)
    for number in range(20):
        scheduler.update_allocation(ask_request(*keys(200, f"wave-{number}")))
    listener.wait_for_count("placed ", 1)
    scheduler.stop()

    assert {1} == set(Counter(listener.all("placed ")).values())


def test_applications_may_come_until_the_stop(scheduler: Scheduler, listener: Listener) -> None:
    """What is still in the mail is taken in, quietly, by a partition on its way out."""
    begin(scheduler, listener)
    for number in range(100):
        scheduler.update_application(application_request(*keys(5, f"late-{number}")))
    scheduler.stop()

    assert 501 == len(listener.all("accepted ")) - len(listener.all("accepted node"))


def test_what_was_decided_before_the_stop_is_delivered_before_it_returns(
    scheduler: Scheduler, listener: Listener
) -> None:
    """A placement without a callback would be lost for ever."""
    gate = Gate("placed")
    begin(scheduler, listener)
    listener.react = gate.hold
    scheduler.update_allocation(ask_request(*keys(40)))
    assert gate.reached.wait(WAIT_SECONDS)
    assert any(placed_in(scheduler) == 40 for _ in range(100)), "each look is one more turn"
    opener = threading.Thread(target=gate.open)
    opener.start()
    scheduler.stop()
    opener.join()

    assert keys(40) == listener.all("placed ")


def test_to_stop_twice_is_to_stop_once(scheduler: Scheduler, listener: Listener) -> None:
    """And after it every call is refused, in words."""
    begin(scheduler, listener)
    scheduler.stop()
    scheduler.stop()

    for call in (
        partial(scheduler.update_node, node_request("late")),
        partial(scheduler.update_configuration, configuration_request(TWO)),
        partial(scheduler.register, "late", listener),
        scheduler.snapshot,
        scheduler.validate,
    ):
        with pytest.raises(RequestError, match="the scheduler has been stopped"):
            call()


def test_a_request_that_meets_the_stop_is_refused_in_words(
    scheduler: Scheduler, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if the scheduler still ran when the request came in."""
    begin(scheduler, listener)
    monkeypatch.setattr(scheduler, "_reader", StoppingReader(scheduler))

    with pytest.raises(LicorneError):
        scheduler.update_application(application_request("late"))


class StoppingReader:
    """Stops the scheduler while a request is read."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._reader = scheduler._reader

    def application_submissions(self, request: si.ApplicationRequest) -> tuple[ApplicationSubmission, ...]:
        self._scheduler.stop()
        return self._reader.application_submissions(request)
