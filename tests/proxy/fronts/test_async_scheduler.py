"""Programs on asyncio place, end and withdraw, in this process and over gRPC; nothing is left behind."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable
from typing import Any

import pytest
from support.proxy.async_requests import LEFT, Noting, a_node, an_application, an_ask, begin, left_in
from support.proxy.manager_requests import ONE, ask_request
from support.waiting import EXPIRING_SECONDS, on_a_loop, wait_until

from licorne import AsyncScheduler, Placed, Refused, si

Make = Callable[..., AsyncScheduler]


@on_a_loop
async def test_many_tasks_share_a_few_places(make: Make) -> None:
    """300 tasks through 20 places: never more at once, each gets one, and nothing is left."""
    running, most = set[str](), 0
    async with make() as front:
        await begin(front, "n1", "n2")

        async def work(key: str) -> None:
            nonlocal most
            placed = await front.place(an_ask(key))
            running.add(key)
            most = max(most, len(running))
            await asyncio.sleep(0)
            running.discard(key)
            await front.end(placed)
            assert (await placed.released).terminationType == si.STOPPED_BY_RM

        await asyncio.gather(*(work(f"task-{number}") for number in range(300)))
        assert LEFT == await asyncio.to_thread(left_in, front.scheduler)
    assert 1 < most <= 20


@on_a_loop
async def test_a_wave_goes_in_few_calls_and_each_ask_has_its_task() -> None:
    """Neighbours are sent together; the tasks come in the order of the asks, and to cancel one withdraws."""
    noting = Noting()
    async with AsyncScheduler(ONE, scheduler=noting) as front:
        await begin(front, "n1", memory=600)
        tasks = await front.place_many(an_ask(f"task-{number}") for number in range(600))
        placed = await asyncio.gather(*tasks)
        assert [f"task-{number}" for number in range(600)] == [each.key for each in placed]
        assert {"n1"} == {each.node_id for each in placed}
        assert noting.calls < 10
        waiting, another = await front.place_many([an_ask("waiting"), an_ask("another")])
        await asyncio.wait({waiting}, timeout=EXPIRING_SECONDS)
        waiting.cancel()
        await front.end(placed[0])
        assert "another" == (await another).key
        assert waiting.cancelled()


@on_a_loop
async def test_what_is_rejected_raises_with_the_reason_and_the_code(make: Make) -> None:
    """A node, an application and an ask; the others are there."""
    async with make() as front:
        await begin(front, "n1")
        with pytest.raises(Refused, match="node 'n1' was rejected") as node:
            await front.add_nodes(a_node("n2"), a_node("n1"))
        with pytest.raises(Refused, match=r"application 'bad' was rejected: .*root\.nowhere") as application:
            await front.add_applications(an_application("bad", "root.nowhere"))
        with pytest.raises(Refused, match="ask 'task' of 'none' was rejected: failed to find") as ask:
            await front.place(an_ask("task", application="none"))
        assert ["NODE_EXISTS", "NO_QUEUE", "APPLICATION_UNKNOWN"] == [
            error.value.code for error in (node, application, ask)
        ]
        assert "failed to find application none" == ask.value.reason


@pytest.mark.parametrize("is_full", [True, False])
@on_a_loop
async def test_a_wait_cancelled_at_any_await_leaves_nothing(make: Make, is_full: bool) -> None:  # noqa: FBT001
    """1,000 times with one key, at each step of the loop, where there is room and where there is none."""
    async with make() as front:
        await begin(front, "n1", memory=1)
        if is_full:
            await front.place(an_ask("full"))
        for number in range(1000):
            task = asyncio.create_task(front.place(an_ask("task")))
            for _ in range(number % 12):
                await asyncio.sleep(0)
            if number % 3 == 0:
                await asyncio.wait({task}, timeout=EXPIRING_SECONDS / 10)
            task.cancel()
            await asyncio.wait({task})
            if not task.cancelled():
                await front.end(task.result())
                await task.result().released
        await asyncio.gather(*front._withdrawals.values())
        left = await asyncio.to_thread(left_in, front.scheduler)
        assert left == {"asks": 0, "allocations": int(is_full)}
        assert ({}, int(is_full), []) == (
            dict(front._waits),
            len(front._placed),
            front._requests.unfinished(),
        )


@on_a_loop
async def test_a_key_that_was_withdrawn_gets_its_own_placement_alone(make: Make) -> None:
    """Also where the ask before it had been placed already, and nobody knew."""
    async with make() as front:
        await begin(front, "n1", memory=1)
        for number in range(200):
            task = asyncio.create_task(front.place(an_ask("task")))
            for _ in range(number % 9):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait({task})
            placed = await front.place(an_ask("task")) if task.cancelled() else task.result()
            assert {"asks": 0, "allocations": 1} == await asyncio.to_thread(left_in, front.scheduler)
            assert placed.release is None
            await front.end(placed)
            await placed.released


@on_a_loop
async def test_cancelled_asks_do_not_pile_up_behind_a_call_that_waits() -> None:
    """What was not sent is taken back; what was is withdrawn when the scheduler takes calls again."""
    noting = Noting()
    async with AsyncScheduler(ONE, scheduler=noting) as front:
        await begin(front, "n1")
        noting.gate.clear()
        first = asyncio.create_task(front.place(an_ask("first")))
        await asyncio.to_thread(noting.reached.wait)
        most = 0
        for number in range(1000):
            task = asyncio.create_task(front.place(an_ask(f"task-{number}")))
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait({task})
            most = max(most, len(front._requests.unfinished()) + len(front._withdrawals) + len(front._placed))
        noting.gate.set()
        assert most < 4
        assert "n1" == (await first).node_id
        assert {"asks": 0, "allocations": 1} == await asyncio.to_thread(left_in, front.scheduler)


@on_a_loop
async def test_an_end_that_the_scheduler_asks_for_is_confirmed_by_end(make: Make) -> None:
    """A member of a gang comes when its placeholder has ended, which waits may miss without harm."""
    async with make() as front:
        await front.add_nodes(a_node(memory=1))
        gang = an_application()
        gang.placeholderAsk.resources["memory"].value = 1
        await front.add_applications(gang)
        room, member = an_ask("room"), an_ask("member")
        room.placeholder, room.taskGroupName, member.taskGroupName = True, "workers", "workers"
        placeholder = await front.place(room)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(placeholder.released, EXPIRING_SECONDS)
        placing = asyncio.create_task(front.place(member))
        release = await placeholder.released
        assert (si.PLACEHOLDER_REPLACED, release) == (release.terminationType, placeholder.release)
        with pytest.raises(Exception, match="ask 'room' of application 'app' runs on node 'n1' already"):
            await front.place(room)
        await front.end(placeholder)
        await front.end(placeholder)
        assert "member" == (await placing).key


@pytest.mark.parametrize("how", ["removed", "failed"])
@on_a_loop
async def test_asks_of_an_application_that_ends_do_not_wait_for_ever(make: Make, how: str) -> None:
    """They are refused; the key is free for another application of that id."""
    async with make() as front:
        await begin(front, "n1", memory=1)
        await front.place(an_ask("full"))
        waiting = asyncio.create_task(front.place(an_ask("task")))
        await asyncio.wait({waiting}, timeout=EXPIRING_SECONDS)
        if how == "removed":
            removal = {"applicationID": "app"}
            await front.send(si.ApplicationRequest(remove=[removal]))
            with pytest.raises(Refused, match="ask 'task' of 'app' was rejected: it is removed"):
                await waiting
            await front.add_applications(an_application())
            assert "n1" == (await front.place(an_ask("task"))).node_id
        else:
            partition = ONE.replace("name: default", "name: other")
            await asyncio.to_thread(front.scheduler.reconfigure, "rm", partition)
            with pytest.raises(Refused, match="ask 'task' of 'app' was rejected: the application is Fail"):
                await waiting


@on_a_loop
async def test_no_step_of_the_loop_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """5,000 placements and their ends: each step takes less than 5 ms of the processor."""
    longest = 0.0
    run = asyncio.Handle._run

    def timed(handle: asyncio.Handle) -> None:
        nonlocal longest
        began = time.thread_time()
        run(handle)
        longest = max(longest, time.thread_time() - began)

    gc.disable()
    async with AsyncScheduler(ONE) as front:
        await begin(front, "n1", memory=5000)
        monkeypatch.setattr(asyncio.Handle, "_run", timed)
        tasks = await front.place_many(an_ask(f"task-{number}") for number in range(5000))
        placed: list[Placed] = [await task for task in tasks]
        await front.send(si.AllocationRequest(releases={"allocationsToRelease": [{"applicationID": "app"}]}))
        for each in placed:
            await each.released
        monkeypatch.undo()
    gc.enable()
    assert 0 < longest < 0.005


@on_a_loop
async def test_other_requests_are_sent_as_they_are(make: Make) -> None:
    """In order with the rest; what is not awaited by the front is seen in its callbacks."""
    async with make() as front:
        await begin(front, "n1")
        seen: list[Any] = []

        async def read() -> None:
            async for callback, message in front.events():
                seen.append((callback, message))

        reading = asyncio.create_task(read())
        await asyncio.sleep(0)
        await front.send(ask_request("by-hand"))
        await asyncio.to_thread(wait_until, lambda: any(name == "update_allocation" for name, _ in seen))
        (new,) = [new for name, message in seen if name == "update_allocation" for new in message.new]
        assert ("by-hand", "n1") == (new.allocationKey, new.nodeID)
        reading.cancel()
