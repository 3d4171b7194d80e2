"""The events that say why a promised start has moved back."""

from __future__ import annotations

from support.proxy.manager_requests import application_request, ask_request, node_request
from support.proxy.promised_starts import PROMISING, SECOND_NS, send_job

from licorne import ResourceManager, Scheduler
from licorne.model.values.events import EventType


def waiting(scheduler: Scheduler) -> None:
    """Register a manager with a node of 10: `now` has 6 for an hour, and `big` waits for 8."""
    scheduler.register("rm", ResourceManager(), configuration=PROMISING.replace('"1"', "all"))
    scheduler.update_node(node_request("n1", memory=10))
    send_job(scheduler, "now", 6, "1h")
    send_job(scheduler, "big", 8, "1h")


def moved_back(scheduler: Scheduler) -> list[tuple[str, str]]:
    """Return the events of promises that have moved back: the ask, and what follows its name."""
    start = "The promised start of "
    return [
        (event.object_id, event.message.partition("' ")[2])
        for event in scheduler.events.batch().records
        if event.type is EventType.REQUEST and event.message.startswith(start)
    ]


def test_an_event_names_who_goes_first() -> None:
    """A job with a higher priority comes, and does not leave the promise where it was."""
    with Scheduler(engine="direct", stepped=True) as scheduler:
        waiting(scheduler)
        scheduler.update_application(application_request("urgent"))
        request = ask_request("urgent", application="urgent", memory=9)
        request.allocations[0].priority = 7
        request.allocations[0].allocationTags["walltime"] = "30m"
        scheduler.update_allocation(request)
        scheduler.run_until_idle()
        found = moved_back(scheduler)
    later = "has moved back: application urgent goes first; it is to start 30m later"
    assert [("big", later)] == found


def test_an_event_says_that_work_has_not_ended() -> None:
    """What was to end runs on: its end is expected a minute later."""
    with Scheduler(engine="direct", stepped=True) as scheduler:
        waiting(scheduler)
        scheduler.advance_to(scheduler.now_ns() + 3600 * SECOND_NS)
        scheduler.run_until_idle()
        found = moved_back(scheduler)
    later = "has moved back: work runs longer than it was to, or there is less room; it is to start 1m later"
    assert [("big", later)] == found
