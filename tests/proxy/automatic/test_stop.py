"""The end of a scheduler, also in the middle of its work, and views of partitions that end meanwhile."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from support.proxy.listening import Gate, Listener
from support.proxy.manager_requests import (
    ONE,
    TWO,
    application_request,
    ask_request,
    configuration_request,
    keys,
    node_request,
)
from support.proxy.running_scheduler import begin, placed_in
from support.waiting import WAIT_SECONDS

from licorne import LicorneError, RequestError, Scheduler
from licorne.model.explanation.shared_summaries import SharedSummaries
from licorne.model.values.messages import ApplicationSubmission
from licorne.proxy.core.scheduler.answering.answers import explain, quarantined
from licorne.proxy.core.scheduler.answering.state_documents import snapshot
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


# ----------------------------------------------------------------------------------- views of what ends


def looks_at(scheduler: Scheduler) -> dict[str, Callable[[], object]]:
    new = si.AddApplicationRequest(applicationID="new", queueName="root.leaf", partitionName="second")
    new.ugi.user = "bob"
    return {
        "snapshot": scheduler.snapshot,
        "validate": scheduler.validate,
        "quarantined": scheduler.quarantined,
        "explain": partial(scheduler.explain, "app"),
        "dry_run": partial(scheduler.dry_run, application=new),
    }


def test_a_partition_that_ends_meanwhile_is_left_out(scheduler: Scheduler, listener: Listener) -> None:
    """Each view asks one partition after the other."""
    begin(scheduler, listener, configuration=TWO)
    partitions = scheduler._cluster.partitions()
    scheduler.update_configuration(configuration_request(ONE))
    if scheduler._engine.__class__.__name__ != "ActorsEngine":
        return  # Elsewhere one that has ended can still be asked, but is not found any more.
    shown: Any = snapshot(partitions)

    assert ["default"] == [*shown["queues"]]
    assert () == quarantined(partitions)
    assert "[rm]default" == explain(partitions, "app", lambda *_: {}, SharedSummaries()).partition


def test_views_while_a_partition_comes_and_goes_raise_nothing_of_the_runtime(
    scheduler: Scheduler, listener: Listener
) -> None:
    """A dry run may find that the partition is not there; in words."""
    begin(scheduler, listener, configuration=TWO)
    over = threading.Event()
    raised: Counter[str] = Counter()

    def look() -> None:
        while not over.is_set():
            for name, view in looks_at(scheduler).items():
                try:
                    view()
                except RequestError as error:
                    raised[f"{name}: {error}"] += 1

    threads = [threading.Thread(target=look) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(15):
        for text in (ONE, TWO):
            scheduler.update_configuration(configuration_request(text))
    over.set()
    for thread in threads:
        thread.join(WAIT_SECONDS)
        assert not thread.is_alive()

    assert all(text.startswith("dry_run: ") for text in raised), raised


def test_views_while_the_scheduler_stops_raise_errors_of_ours_alone(
    scheduler: Scheduler, listener: Listener
) -> None:
    """They say that it has been stopped."""
    begin(scheduler, listener)
    raised: list[BaseException] = []
    begun = threading.Barrier(4, timeout=WAIT_SECONDS)

    def look() -> None:
        begun.wait()
        while True:
            for view in looks_at(scheduler).values():
                try:
                    view()
                except BaseException as error:  # noqa: BLE001 - it is judged below
                    raised.append(error)
                    if "stopped" in str(error) or not isinstance(error, LicorneError):
                        return

    threads = [threading.Thread(target=look) for _ in range(3)]
    for thread in threads:
        thread.start()
    begun.wait()
    scheduler.stop()
    for thread in threads:
        thread.join(WAIT_SECONDS)

    assert [] == [error for error in raised if not isinstance(error, RequestError)]
    assert 3 == sum("the scheduler has been stopped" in str(error) for error in raised)
