"""Events that resource managers get by their callback."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest
from support.proxy.event_rows import records_of
from support.proxy.manager_requests import ONE, node_request

from licorne import ResourceManager, Scheduler
from licorne.proxy.core.events import log as delivery_module
from licorne.proxy.core.events.log import takes_events
from licorne.proxy.si import si_pb2 as si


class Hearing(ResourceManager):
    """A resource manager that keeps its events."""

    def __init__(self) -> None:
        self.batches: list[list[si.EventRecord]] = []
        self.heard = threading.Event()

    def send_event(self, events: Sequence[si.EventRecord]) -> None:
        """Keep a batch."""
        self.batches.append(list(events))
        self.heard.set()


def delivered(scheduler: Scheduler) -> None:
    """Deliver events as the thread does, which a stepped scheduler has not."""
    scheduler.deliver_events()
    scheduler.deliver()


def test_a_resource_manager_gets_its_events_once() -> None:
    """All of a time in one batch, in order."""
    with Scheduler(engine="direct") as scheduler:
        rm = Hearing()
        scheduler.register("rm", rm, configuration=ONE)
        delivered(scheduler)
        scheduler.update_node(node_request("n1"))
        delivered(scheduler)
        delivered(scheduler)
        records = records_of(scheduler)
        sent = [event for batch in rm.batches for event in batch]

        assert 2 == len(rm.batches)
        assert [(each.object_id, each.time_ns) for each in records] == [
            (event.objectID, event.timestampNano) for event in sent
        ]
        assert [int(each.detail) for each in records] == [event.eventChangeDetail for event in sent]
        added = next(event for event in sent if event.message == "Node added to the scheduler")
        assert (si.EventRecord.NODE, si.EventRecord.ADD) == (added.type, added.eventChangeType)
        assert 100 == added.resource.resources["memory"].value
        assert all(event.HasField("resource") for event in sent)


def test_another_resource_manager_gets_its_own_alone() -> None:
    """Although both are in one log."""
    with Scheduler(engine="direct") as scheduler:
        one, two = Hearing(), Hearing()
        scheduler.register("one", one, configuration=ONE)
        scheduler.register("two", two, configuration=ONE)
        scheduler.update_node(node_request("n1", rm_id="two"))
        delivered(scheduler)

        assert not [event for batch in one.batches for event in batch if event.objectID == "n1"]
        assert [event for batch in two.batches for event in batch if event.objectID == "n1"]


def test_what_there_is_no_room_for_is_counted_and_not_sent() -> None:
    """The oldest are sent."""
    with Scheduler(engine="direct") as scheduler:
        rm = Hearing()
        extra = {"event.requestCapacity": "3"}
        scheduler.register("rm", rm, configuration=ONE, extra_configuration=extra)
        scheduler.update_node(node_request("n1"))
        delivered(scheduler)
        records = records_of(scheduler)
        counters = scheduler.events.counters()

        assert [each.object_id for each in records[:3]] == [event.objectID for event in rm.batches[0]]
        assert (3, 3, len(records) - 3) == (counters.stored, counters.collected, counters.not_stored)


def test_a_large_delivery_comes_in_several_callbacks() -> None:
    """In order."""
    with Scheduler(engine="direct") as scheduler:
        rm = Hearing()
        extra = {"event.requestCapacity": "5000"}
        scheduler.register("rm", rm, configuration=ONE, extra_configuration=extra)
        scheduler.update_node(node_request(*[f"n{number}" for number in range(500)]))
        delivered(scheduler)
        names = [record.object_id for record in records_of(scheduler)]

        assert [1000, len(names) - 1000] == [len(batch) for batch in rm.batches]
        assert names == [event.objectID for batch in rm.batches for event in batch]


def test_a_callback_that_ignores_events_gets_none() -> None:
    """Nothing is made of them for it."""
    with Scheduler(engine="direct") as scheduler:
        scheduler.register("rm", ResourceManager(), configuration=ONE)
        delivered(scheduler)

        assert not takes_events(ResourceManager())
        assert takes_events(Hearing())
        assert 0 == scheduler.events.counters().stored


def test_a_running_scheduler_delivers_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the thread of the callbacks; what is left comes when it stops."""
    monkeypatch.setattr(delivery_module, "DELIVERY_SECONDS", 0.001)
    with Scheduler() as scheduler:
        rm = Hearing()
        scheduler.register("rm", rm, configuration=ONE)
        heard = rm.heard.wait(60)
        scheduler.update_node(node_request("last"))

    assert heard
    assert "last" in {event.objectID for batch in rm.batches for event in batch}
