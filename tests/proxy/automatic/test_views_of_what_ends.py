"""Views of partitions that end meanwhile: they are left out, and no error of the runtime comes out."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

from support.proxy.listening import WAIT_SECONDS, Listener
from support.proxy.manager_requests import ONE, TWO, configuration_request
from support.proxy.running_scheduler import begin

from licorne import LicorneError, RequestError, Scheduler
from licorne.proxy.scheduler.answering.answers import explain, quarantined
from licorne.proxy.scheduler.answering.snapshots import snapshot
from licorne.proxy.si import si_pb2 as si


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
    assert "[rm]default" == explain(partitions, "app").partition


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
