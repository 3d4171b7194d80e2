"""The log of events: batches, settings, and what becomes of events of what does not happen."""

from __future__ import annotations

import pytest
from support.proxy.event_rows import records_of
from support.proxy.manager_requests import (
    BROKEN,
    ONE,
    application_request,
    configuration_request,
    node_request,
)

from licorne import ResourceManager, Scheduler
from licorne.model.errors import RequestError
from licorne.model.values.events import ChangeDetail
from licorne.proxy.core.events.log import EventLog, TooManyStreamsError

OFF = {"event.trackingEnabled": "false"}


def registered(**extra: str) -> Scheduler:
    """Return a stepped scheduler with one RM and one queue tree."""
    scheduler = Scheduler(engine="direct")
    scheduler.register(
        "rm",
        ResourceManager(),
        configuration=ONE,
        extra_configuration={name.replace("_", "."): text for name, text in extra.items()},
    )
    return scheduler


def reload(scheduler: Scheduler, extra: dict[str, str]) -> None:
    """Send the configuration again, with another extra configuration."""
    request = configuration_request(ONE)
    request.extraConfig.update(extra)
    scheduler.update_configuration(request)


def test_a_batch_says_which_ids_there_are() -> None:
    """Also where it has no records."""
    with registered() as scheduler:
        log = scheduler.events
        batch = log.batch(1, 1)
        beyond = log.batch(batch.highest_id + 1, 10)

        assert (0, 1) == (batch.lowest_id, len(batch.records))
        assert () == beyond.records
        assert batch.highest_id == beyond.highest_id == len(records_of(scheduler)) - 1
        assert log.instance_uuid == batch.instance_uuid == beyond.instance_uuid


def test_a_scheduler_without_a_resource_manager_has_no_events() -> None:
    """The ids are 0, as in the recorded core."""
    with Scheduler(engine="direct") as scheduler:
        batch = scheduler.events.batch()

        assert (0, 0, ()) == (batch.lowest_id, batch.highest_id, batch.records)
        assert scheduler.events.enabled


def test_no_event_is_kept_while_they_are_switched_off() -> None:
    """From the first queue on."""
    with registered(event_trackingEnabled="false") as scheduler:
        assert not scheduler.events.enabled
        assert () == records_of(scheduler)


def test_events_can_be_switched_off_and_on_again() -> None:
    """Those from before stay, and new ones come: the recorded core never gave one again."""
    with registered() as scheduler:
        before = len(records_of(scheduler))
        reload(scheduler, OFF)
        scheduler.update_node(node_request("silent"))
        off = (scheduler.events.enabled, len(records_of(scheduler)))
        reload(scheduler, {})
        scheduler.update_node(node_request("heard"))
        nodes = [record.object_id for record in records_of(scheduler)[before:] if record.type == 3]

        assert (False, before) == off
        assert scheduler.events.enabled
        assert ["heard", "heard"] == nodes


def test_the_capacity_is_the_one_that_is_configured() -> None:
    """A reload changes it at once."""
    with registered() as scheduler:
        for number in range(10):
            scheduler.update_node(node_request(f"n{number}"))
        highest = scheduler.events.batch().highest_id
        reload(scheduler, {"event.ringBufferCapacity": "4"})
        batch = scheduler.events.batch(highest - 3)

        assert (highest - 3, highest, 4) == (batch.lowest_id, batch.highest_id, len(batch.records))


def test_a_registration_that_is_refused_leaves_no_events() -> None:
    """Although its queues were made."""
    with Scheduler(engine="direct") as scheduler:
        with pytest.raises(RequestError):
            scheduler.register("rm", ResourceManager(), configuration=BROKEN)

        assert () == records_of(scheduler)


def test_what_is_held_for_a_registration_that_fails_is_dropped() -> None:
    """And what its partition reports later as well."""
    log = EventLog()
    sink = log.new_sink("rm")
    held = sink.report
    assert held is not None

    log.forget_held("rm")

    assert sink.report is None
    assert 0 == log.counters().created


def test_the_number_of_streams_from_elsewhere_is_bounded() -> None:
    """In all, and of one host; readers in the process are not counted."""
    with registered(event_maxStreams="3", event_maxStreamsPerHost="2") as scheduler:
        log = scheduler.events
        streams = [log.stream(host="a"), log.stream(host="a"), log.stream()]
        with pytest.raises(TooManyStreamsError, match="maxStreamsPerHost"):
            log.stream(host="a")
        streams.append(log.stream(host="b"))
        with pytest.raises(TooManyStreamsError, match=r"3 event streams are open: event\.maxStreams$"):
            log.stream(host="c")
        streams[0].close()
        streams.append(log.stream(host="a"))

        assert 4 == log.counters().streams


def test_what_is_counted_adds_up() -> None:
    """Each event was created and processed; nothing was dropped."""
    with registered() as scheduler:
        scheduler.update_node(node_request("n1"))
        counters = scheduler.events.counters()

        assert len(records_of(scheduler)) == counters.created == counters.channeled == counters.processed
        assert (0, 0, 0) == (counters.not_channeled, counters.not_stored, counters.lost_to_streams)


def test_an_application_that_is_refused_is_new_and_then_rejected() -> None:
    """With the reason, which the RM gets as well."""
    with registered() as scheduler:
        scheduler.update_application(application_request("app", queue="root.nowhere"))
        new, rejected = records_of(scheduler)[-2:]

        assert (ChangeDetail.APP_NEW, "") == (new.detail, new.message)
        assert ChangeDetail.APP_REJECT == rejected.detail
        assert rejected.message.startswith("failed to place application app: ")


def test_an_application_that_is_forgotten_has_expired() -> None:
    """Three days after it was rejected."""
    with registered() as scheduler:
        scheduler.update_application(application_request("app", queue="root.nowhere"))
        scheduler.advance_to(scheduler.now_ns() + 4 * 24 * 3600 * 10**9)
        expired = records_of(scheduler)[-1]

        assert ("app", ChangeDetail.APP_EXPIRED) == (expired.object_id, expired.detail)


def test_what_others_use_of_a_node_is_reported_when_the_rm_says_it() -> None:
    """The older generation does, with the node."""
    request = node_request("n1")
    request.nodes[0].occupiedResource.resources["memory"].value = 30
    with registered() as scheduler:
        scheduler.update_node(request)
        (occupied,) = [each for each in records_of(scheduler) if each.detail is ChangeDetail.NODE_OCCUPIED]

        assert ("n1", {"memory": 30}) == (occupied.object_id, dict(occupied.resource.items()))
