"""Misuse of the front to asyncio is one clear error; what is lost ends all that waits."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from support.proxy.async_requests import Noting, a_node, an_application, an_ask, begin
from support.proxy.listening import Listener
from support.proxy.manager_requests import BROKEN, ONE, node_request
from support.proxy.processes import serving, start_server
from support.waiting import EXPIRING_SECONDS, on_a_loop

from licorne import (
    AsyncScheduler,
    ConnectionLostError,
    LicorneError,
    RemoteScheduler,
    ReplacedError,
    RequestError,
    Scheduler,
    si,
)


@on_a_loop
async def test_it_is_for_one_block_and_one_loop() -> None:
    """Each error names the resource manager, and what is wrong."""
    front = AsyncScheduler(ONE, rm_id="mine")
    with pytest.raises(LicorneError, match="of RM 'mine' is used outside of `async with`"):
        await front.place(an_ask("task"))
    async with front:
        await begin(front, "n1")
        with pytest.raises(LicorneError, match="of RM 'mine' was entered before"):
            await front.__aenter__()

        def elsewhere() -> str:
            with pytest.raises(LicorneError) as caught:
                asyncio.run(front.add_applications(an_application("other")))
            return str(caught.value)

        assert "of RM 'mine' belongs to <_Unix" in await asyncio.to_thread(elsewhere)
        waiting = asyncio.create_task(front.place(an_ask("large", memory=11)))
        placed = await front.place(an_ask("task"))
    for again in (waiting, placed.released, front.place(an_ask("late")), front.end(placed)):
        with pytest.raises(LicorneError, match="of RM 'mine' is closed"):
            await again


@on_a_loop
async def test_an_ask_that_would_get_no_answer_is_refused() -> None:
    """A key that waits, or runs; no application; a node that is not created; what is of another kind."""
    async with AsyncScheduler(ONE) as front:
        await begin(front, "n1")
        waiting = asyncio.create_task(front.place(an_ask("large", memory=11)))
        await asyncio.wait({waiting}, timeout=EXPIRING_SECONDS)
        await front.place(an_ask("task"))
        node: Any = a_node("n2")
        node.action = si.NodeInfo.DRAIN_NODE
        for refused, why in (
            (front.place(an_ask("large")), "ask 'large' of application 'app' waits already"),
            (front.place(an_ask("task")), "ask 'task' of application 'app' runs on node 'n1' already"),
            (front.place(an_ask("task", application="")), "ask 'task': expected an applicationID"),
            (front.place(node), "place: expected a message si.v1.Allocation, got si.v1.NodeInfo"),
            (front.add_nodes(node), "node 'n2': expected CREATE or CREATE_DRAIN, got DRAIN_NODE: use send"),
            (front.add_nodes(a_node("n3"), a_node("n3")), "node 'n3' waits already"),
            (
                front.send(node_request("n2", rm_id="other")),
                "expected a request of RM 'rm', got one of RM 'other'",
            ),
            (front.send(node), "AllocationRequest, got NodeInfo"),
            (anext(front.events(limit=0)), "expected a limit above 0, got 0"),
        ):
            with pytest.raises(RequestError, match=why):
                await refused
        waiting.cancel()


@on_a_loop
async def test_a_stepped_scheduler_is_refused() -> None:
    """Whichever way it is given; one that was made for it is stopped."""
    text = "which is stepped"
    with Scheduler(engine="direct") as direct:
        with pytest.raises(LicorneError, match=f"got direct, {text}"):
            AsyncScheduler(ONE, scheduler=direct)
        assert not direct.resource_managers()
    made: list[Any] = [AsyncScheduler(ONE, engine="direct"), AsyncScheduler(ONE, stepped=True)]
    with serving("--engine", "direct") as server:
        made.append(AsyncScheduler(ONE, scheduler=lambda: RemoteScheduler(server.address)))
        for front in made:
            with pytest.raises(LicorneError, match=text):
                await front.__aenter__()
            with pytest.raises(RequestError, match="has been stopped"):
                front.scheduler.update_node(node_request("n1"))


@on_a_loop
async def test_what_cannot_begin_leaves_nothing() -> None:
    """A configuration that is refused, settings that do not go together, and a wait that is cancelled."""
    with pytest.raises(RequestError, match=r"queues\.yaml:5"):
        await AsyncScheduler(BROKEN).__aenter__()
    with pytest.raises(LicorneError, match="expected no engine where a scheduler is given"):
        AsyncScheduler(ONE, scheduler=Scheduler, engine="threads")
    with pytest.raises(RequestError, match="predicate_timeout_seconds=0 is not above 0"):
        AsyncScheduler(ONE, predicate_timeout_seconds=0)
    front = AsyncScheduler(ONE)
    entering = asyncio.create_task(front.__aenter__())
    await asyncio.sleep(0)
    entering.cancel()
    await asyncio.wait({entering})
    assert entering.cancelled()
    with pytest.raises(RequestError, match="has been stopped"):
        front.scheduler.update_node(node_request("n1"))


@on_a_loop
async def test_a_call_that_is_refused_as_a_whole_raises_where_it_is_awaited() -> None:
    """Here by a scheduler that others have stopped."""
    async with AsyncScheduler(ONE, scheduler=Scheduler()) as front:
        await begin(front, "n1")
        await asyncio.to_thread(front.scheduler.stop)
        for refused in (front.place(an_ask("task")), front.add_nodes(a_node("n2"))):
            with pytest.raises(RequestError, match="the scheduler has been stopped"):
                await refused


@on_a_loop
async def test_a_lost_connection_ends_all_that_waits() -> None:
    """With an error that names the server; the program makes another front, and starts anew."""
    server = start_server()
    with pytest.raises(ConnectionLostError, match=f"no connection to the scheduler at {server.address}"):  # noqa: PT012
        async with AsyncScheduler(ONE, scheduler=lambda: RemoteScheduler(server.address)) as front:
            await begin(front, "n1")
            placed = await front.place(an_ask("task"))
            waiting = asyncio.create_task(front.place(an_ask("large", memory=11)))
            reading = asyncio.create_task(_read(front))
            await asyncio.wait({waiting, reading}, timeout=EXPIRING_SECONDS)
            server.process.kill()
            await asyncio.to_thread(server.process.communicate)
            await asyncio.wait({waiting, reading})
            assert {ConnectionLostError} == {type(each.exception()) for each in (waiting, reading)}
            with pytest.raises(ConnectionLostError):
                await placed.released
            await front.end(placed)
    with serving("--address", server.address):
        async with AsyncScheduler(ONE, scheduler=lambda: RemoteScheduler(server.address)) as front:
            await begin(front, "n1")
            assert "n1" == (await front.place(an_ask("large", memory=10))).node_id


@on_a_loop
async def test_another_one_that_takes_its_place_ends_all_that_waits() -> None:
    """Its resource manager runs on for the other one."""
    scheduler = Scheduler()
    async with AsyncScheduler(ONE, scheduler=scheduler) as front:
        await begin(front, "n1")
        waiting = asyncio.create_task(front.place(an_ask("large", memory=11)))
        await asyncio.wait({waiting}, timeout=EXPIRING_SECONDS)
        await asyncio.to_thread(scheduler.register, "rm", Listener(), configuration=ONE)
        with pytest.raises(ReplacedError):
            await waiting


@on_a_loop
async def test_the_end_does_not_wait_for_who_has_not_read() -> None:
    """A reader that is behind, and a call that waits, end with the block."""
    noting = Noting()
    async with AsyncScheduler(ONE, scheduler=noting) as front:
        await begin(front, "n1", memory=1000)
        events = front.events(limit=1)
        first = asyncio.create_task(anext(events))
        tasks = await front.place_many(an_ask(f"task-{number}") for number in range(1000))
        await first
        noting.gate.clear()
        tasks.append(asyncio.create_task(front.place(an_ask("held"))))
        await asyncio.wait(tasks, timeout=EXPIRING_SECONDS)
        threading.Timer(EXPIRING_SECONDS, noting.gate.set).start()
    await asyncio.wait(tasks)
    assert {LicorneError} == {type(each.exception()) for each in tasks}
    assert 1 == len([heard async for heard in events])


async def _read(front: AsyncScheduler) -> None:
    async for _ in front.events():
        pass
