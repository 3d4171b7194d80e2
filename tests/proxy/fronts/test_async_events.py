"""Callbacks as an iteration: bounded, and a slow reader is seen by the scheduler as a slow callback is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from support.proxy.async_requests import an_ask, begin, left_in
from support.proxy.manager_requests import ONE
from support.waiting import on_a_loop

from licorne import AsyncScheduler
from licorne.actors.services import rm_link
from licorne.proxy.fronts import async_parts


@on_a_loop
async def test_an_iteration_gives_all_callbacks_in_order(make: Callable[..., AsyncScheduler]) -> None:
    """From its first step on, for each of several readers; what the front sends for itself is not shown."""
    async with make() as front:
        seen: list[list[str]] = [[], []]

        async def read(names: list[str]) -> None:
            async for callback, message in front.events():
                names += [new.allocationKey for new in getattr(message, "new", ())]
                names += [each.allocationKey for each in getattr(message, "rejectedAllocations", ())]
                names += [each.nodeID for each in message.accepted] if callback == "update_node" else []
                if names and names[-1] == "last":
                    return

        readers = [asyncio.create_task(read(names)) for names in seen]
        await asyncio.sleep(0)
        await begin(front, "n1")
        withdrawn = asyncio.create_task(front.place(an_ask("withdrawn", memory=11)))
        placed = await front.place(an_ask("first"))
        withdrawn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await withdrawn
        await asyncio.gather(*front._withdrawals.values())
        await front.end(placed)
        await front.place(an_ask("last"))
        await asyncio.gather(*readers)
        assert seen == [["n1", "first", "last"], ["n1", "first", "last"]]
        assert not front._readers


@on_a_loop
async def test_a_slow_reader_makes_the_scheduler_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is kept beyond the bounds; when the reader goes on, or ends, so does the scheduler."""
    monkeypatch.setattr(rm_link, "BACKLOG_MAX", 8)
    monkeypatch.setattr(async_parts, "_INBOX_MAX", 4)
    async with AsyncScheduler(ONE) as front:
        await begin(front, "n1", memory=1000)
        events = front.events(limit=2)
        first = asyncio.create_task(anext(events))
        tasks = await front.place_many(an_ask(f"task-{number}") for number in range(600))
        await first
        # Each look lets the partition have another turn, and twenty turns would be enough for all asks.
        for _ in range(20):
            left = await asyncio.to_thread(left_in, front.scheduler)
        assert 0 < left["allocations"] < 600
        (unread,) = front._readers
        assert unread.qsize() <= 2
        assert len(front._inbox._heard) <= 4
        for _ in range(100):
            await anext(events)
        await events.aclose()
        await asyncio.gather(*tasks)
        assert {"asks": 0, "allocations": 600} == await asyncio.to_thread(left_in, front.scheduler)
