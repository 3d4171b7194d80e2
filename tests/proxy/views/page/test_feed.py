"""The live data of several viewers: one reading for all, nothing while nobody looks, bounded queues."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from support.proxy.listening import Listener
from support.proxy.manager_requests import ONE, node_request
from support.waiting import WAIT_SECONDS, on_a_loop

from licorne import Scheduler
from licorne.proxy.views.page import feed as feed_module
from licorne.proxy.views.page.feed import LiveFeed, TooManyViewersError, Viewer, next_reading


@pytest.fixture
def scheduler() -> Iterator[Scheduler]:
    with Scheduler(engine="actors") as made:
        made.register("rm", Listener(), configuration=ONE)
        yield made


async def next_event(messages: AsyncIterator[str]) -> tuple[str, Any]:
    """Return the kind and the data of the next event that is no comment."""
    while True:
        message = await asyncio.wait_for(anext(messages), WAIT_SECONDS)
        if message.startswith("event: "):
            kind, data = message.split("\n")[:2]
            return kind.removeprefix("event: "), json.loads(data.removeprefix("data: "))


@on_a_loop
async def test_a_viewer_gets_everything_and_then_what_changes(scheduler: Scheduler) -> None:
    """And is told first when to come back after a break."""
    feed = LiveFeed(scheduler)
    messages = feed.messages()
    assert "retry: 1000\n\n" == await anext(messages)
    kind, everything = await next_event(messages)
    assert ("full", "actors") == (kind, everything["engine"])
    assert {} == everything["partitions"]["[rm]default"]["nodes"]
    scheduler.update_node(node_request("n1"))
    kind, change = await next_event(messages)
    assert ("change", everything["number"] + 1) == (kind, change["number"])
    assert ["n1"] == list(change["partitions"]["[rm]default"]["nodes"])
    await feed.close()


@on_a_loop
async def test_nothing_is_read_while_nobody_looks(scheduler: Scheduler) -> None:
    """The readings end with the last viewer, and begin with the next one."""
    feed = LiveFeed(scheduler)
    assert 0 == feed.readings
    messages = feed.messages()
    await next_event(messages)
    task = feed._task
    await messages.aclose()
    assert task is not None
    await asyncio.wait_for(task, WAIT_SECONDS)
    assert feed.readings > 0
    again = feed.messages()
    kind, _ = await next_event(again)
    assert kind == "full"
    await feed.close()


@pytest.mark.parametrize(
    ("due", "began", "ended", "expected"),
    [(7.0, 7.0, 7.02, 7.1), (7.0, 7.03, 7.05, 7.1), (7.0, 7.0, 7.3, 7.6), (7.0, 9.0, 9.01, 9.02)],
    ids=["in time", "late", "long", "after a pause"],
)
def test_the_next_reading_is_due_a_tenth_of_a_second_after_the_last_one_was(
    due: float, began: float, ended: float, expected: float
) -> None:
    """What one is late takes nothing from the pace; after a long one the pause is as long."""
    assert expected == pytest.approx(next_reading(due, began, ended))


@on_a_loop
async def test_all_viewers_share_one_reading(scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten viewers that come at once are shown what one reading found."""
    monkeypatch.setattr(feed_module, "INTERVAL_SECONDS", 3600)

    feed = LiveFeed(scheduler)
    viewers = [feed.messages() for _ in range(10)]
    for viewer in viewers:
        await anext(viewer)
    assert {"full"} == {(await next_event(viewer))[0] for viewer in viewers}
    assert 1 == feed.readings
    await feed.close()


@on_a_loop
async def test_a_viewer_that_is_too_slow_gets_everything_anew() -> None:
    """What waited for it is dropped, so that its queue is bounded."""
    viewer = Viewer()
    viewer.needs_all = False
    for number in range(feed_module._WAITING_MAX + 1):
        viewer.put(f"event {number}")
    assert viewer.needs_all
    viewer.put("everything")
    assert "everything" == await viewer.get()


def test_silence_is_broken_by_a_comment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which finds a connection that is gone."""
    monkeypatch.setattr(feed_module, "_SILENCE_SECONDS", 0)

    assert asyncio.run(Viewer().get()).startswith(": ")


@on_a_loop
async def test_viewers_are_told_when_the_scheduler_has_stopped(scheduler: Scheduler) -> None:
    """Instead of being shown what was."""
    feed = LiveFeed(scheduler)
    messages = feed.messages()
    await next_event(messages)
    await asyncio.to_thread(scheduler.stop)
    kind, data = await next_event(messages)
    assert ("unavailable", "the scheduler has been stopped") == (kind, data["why"])
    await feed.close()


@on_a_loop
async def test_viewers_beyond_the_bound_are_refused(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever looks already stays."""
    monkeypatch.setattr(feed_module, "VIEWERS_MAX", 1)

    feed = LiveFeed(scheduler)
    feed.check_room()
    messages = feed.messages()
    await next_event(messages)
    with pytest.raises(TooManyViewersError, match="1 pages are open"):
        feed.check_room()
    await feed.close()
