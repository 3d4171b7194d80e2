"""Events are read from the id where the last batch ended, whatever happens to the server in between."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import final

from support.proxy.document_server import DocumentServer

from licorne.proxy.views.top.client import RestClient
from licorne.proxy.views.top.reading import EVENTS_MAX, EventFollower

PATH = "/ws/v1/events/batch"


@final
class Ring:
    """Events of a server, of which it still has those from the lowest id on."""

    def __init__(self, count: int) -> None:
        self.instance = "one"
        self.lowest = 0
        self.count = count

    def answer(self, query: dict[str, str]) -> object:
        """Answer as the recorded core does: nothing for an id that is not there."""
        start, count = int(query.get("start", 0)), int(query.get("count", 10_000))
        there = self.lowest <= start < self.count
        ids = range(start, min(start + count, self.count)) if there else ()
        return {
            "InstanceUUID": self.instance,
            "LowestID": self.lowest,
            "HighestID": max(0, self.count - 1),
            "EventRecords": [{"type": 3, "objectID": f"{self.instance}-{each}"} for each in ids] or None,
        }


def followed(ring: Ring, *changes: Callable[[], None]) -> tuple[list[list[tuple[int, str]]], Sequence[str]]:
    """Read, change something, read again; return the events after each reading, and what was asked."""

    async def follow() -> list[list[tuple[int, str]]]:
        client, follower, found = RestClient(server.address), EventFollower(), []
        for change in (lambda: None, *changes):
            change()
            found.append([(at, event["objectID"]) for at, event in await follower.read(client)])
        await client.close()
        return found

    with DocumentServer({PATH: ring.answer}) as server:
        return asyncio.run(follow()), server.asked


def test_what_is_new_is_read_from_where_the_last_batch_ended() -> None:
    ring = Ring(2)

    def more() -> None:
        ring.count = 3

    found, asked = followed(ring, more, lambda: None)

    assert [[0, 1], [0, 1, 2], [0, 1, 2]] == [[at for at, _ in events] for events in found]
    starts = [query.rpartition("?")[2] for query in asked]
    assert ["count=1", "start=0&count=1000", "start=2&count=1000", "start=3&count=1000"] == starts


def test_a_server_without_events_is_followed_from_the_first() -> None:
    ring = Ring(0)

    def more() -> None:
        ring.count = 2

    found, _ = followed(ring, more)

    assert [[], [(0, "one-0"), (1, "one-1")]] == found


def test_of_many_events_the_newest_are_kept() -> None:
    """Those in between, which the server has overwritten, are passed over."""
    ring = Ring(5_000)

    def overwritten() -> None:
        ring.count, ring.lowest = 100_000, 90_000

    found, _ = followed(ring, overwritten)

    assert [EVENTS_MAX, EVENTS_MAX] == [len(events) for events in found]
    assert [(4_999, "one-4999"), (99_999, "one-99999")] == [events[-1] for events in found]
    assert (99_000, "one-99000") == found[1][0]


def test_a_server_that_was_started_again_has_other_events() -> None:
    """Its ids begin at 0, also where they are higher than before."""
    ring = Ring(3)

    def restarted() -> None:
        ring.instance, ring.count = "two", 2

    found, _ = followed(ring, restarted)

    assert [(0, "two-0"), (1, "two-1")] == found[1]
