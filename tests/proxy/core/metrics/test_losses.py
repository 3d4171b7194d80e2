"""The metrics of what waits and of what is lost."""

from __future__ import annotations

from typing import Final

import pytest
from support.proxy.manager_requests import (
    application_request,
    ask_request,
    configuration_request,
    node_request,
)
from support.proxy.metric_texts import Series, scraped
from support.proxy.preempted_work import GUARANTEED, SECOND_NS, preempt, start_victim
from support.proxy.promised_starts import PROMISING, send_job

from licorne import RequestError, ResourceManager, Scheduler

BACKING_OFF: Final = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        properties: {application.unschedasks.backoff: "1", application.unschedasks.backoff.delay: 1h}
        queues: [{name: leaf}]
"""


def series(name: str, **labels: str) -> Series:
    return name, frozenset(labels.items())


def test_preemptions_are_counted_by_both_sides_with_the_work_that_is_lost() -> None:
    """And the waits of their queues."""
    with Scheduler(engine="direct") as scheduler:
        start_victim(scheduler)
        preempt(scheduler, after_seconds=100)
        values = scraped(scheduler)

    sides = {"queue": "root.entitled", "victim_queue": "root.leaf", "cause": "GUARANTEE"}
    assert 1 == values[series("licorne_preempted_total", **sides)]
    assert 100 <= values[series("licorne_preempted_seconds_total", **sides)] < 200
    assert 1 == values[series("licorne_queue_wait_seconds_count", queue="root.leaf")]


def test_waits_are_counted_by_queue_and_the_oldest_is_shown() -> None:
    """Of the first waiting ask of an application."""
    with Scheduler(engine="direct") as scheduler:
        scheduler.register("rm", ResourceManager(), configuration=GUARANTEED)
        scheduler.update_application(application_request("app"))
        scheduler.update_allocation(ask_request("one", memory=60))
        scheduler.update_allocation(ask_request("two", memory=60))
        scheduler.advance_to(scheduler.now_ns() + 100 * SECOND_NS)
        scheduler.update_node(node_request("n1"))
        scheduler.run_until_idle()
        values = scraped(scheduler)

    buckets = {
        bound: values[series("licorne_queue_wait_seconds_bucket", queue="root.leaf", le=bound)]
        for bound in ("60", "600", "604800", "+Inf")
    }
    assert {"60": 0, "600": 1, "604800": 1, "+Inf": 1} == buckets
    assert 100 == values[series("licorne_oldest_wait_seconds", queue="root.leaf")]


def test_back_offs_are_counted() -> None:
    """By the leaf of the application."""
    with Scheduler(engine="direct") as scheduler:
        scheduler.register("rm", ResourceManager(), configuration=BACKING_OFF)
        scheduler.update_node(node_request("n1", "n2", memory=60))
        scheduler.update_application(application_request("app"))
        scheduler.update_allocation(ask_request("one", "two", memory=100))
        scheduler.run_until_idle()
        values = scraped(scheduler)

    assert 1 == values[series("licorne_backoffs_total", queue="root.leaf")]


def test_promises_that_move_are_counted() -> None:
    """Once for each event that reports it."""
    with Scheduler(engine="direct") as scheduler:
        scheduler.register("rm", ResourceManager(), configuration=PROMISING.replace('"1"', "all"))
        scheduler.update_node(node_request("n1", memory=10))
        send_job(scheduler, "now", 6, "1h")
        send_job(scheduler, "big", 8, "1h")
        scheduler.advance_to(scheduler.now_ns() + 3600 * SECOND_NS)
        scheduler.run_until_idle()
        values = scraped(scheduler)
        events = [each for each in scheduler.events.batch().records if "has moved back" in each.message]

    moved = [value for (name, _), value in values.items() if name == "licorne_promises_moved_total"]
    assert [len(events)] == moved == [1]


def test_configurations_are_counted_as_accepted_or_refused() -> None:
    """A registration counts as well."""
    with Scheduler(engine="direct") as scheduler:
        before = scraped(scheduler)
        scheduler.register("rm", ResourceManager(), configuration=GUARANTEED)
        for text in ("partitions: 7", "partitions: ["):
            with pytest.raises(RequestError):
                scheduler.update_configuration(configuration_request(text))
        after = scraped(scheduler)

    counts = [
        [values[series("licorne_configurations_total", result=result)] for result in ("accepted", "refused")]
        for values in (before, after)
    ]
    assert [[0, 0], [1, 2]] == counts
