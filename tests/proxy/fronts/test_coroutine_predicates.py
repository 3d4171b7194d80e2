"""Predicates that are coroutines on the loop of the program, in this process and over gRPC."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from support.proxy.async_requests import an_ask, begin
from support.waiting import EXPIRING_SECONDS, on_a_loop, wait_until

from licorne import AsyncScheduler, LicorneError
from licorne.model.values.messages import PredicateQuestion

Make = Callable[..., AsyncScheduler]


def reasons(front: AsyncScheduler) -> list[str]:
    """Return why asks wait, as their logs say."""
    applications: Any = front.scheduler.snapshot()["applications"]["default"]
    asks = [ask for each in applications for ask in each.get("requests") or ()]
    return [entry["message"] for ask in asks for entry in ask.get("allocationLog") or ()]


@on_a_loop
async def test_a_coroutine_refuses_nodes(make: Make) -> None:
    """It may await, and each question has its own."""
    asked: set[str] = set()

    async def predicates(question: PredicateQuestion) -> Mapping[str, str]:
        asked.add(question.allocation_key)
        await asyncio.sleep(0)
        return {node_id: "tainted" for node_id in question.node_ids if node_id != "n2"}

    async with make(predicates=predicates) as front:
        await begin(front, "n1", "n2", "n3")
        tasks = await front.place_many(an_ask(f"task-{number}") for number in range(5))
        assert ["n2"] * 5 == [placed.node_id for placed in await asyncio.gather(*tasks)]
    assert {f"task-{number}" for number in range(5)} == asked


@on_a_loop
async def test_what_a_coroutine_raises_is_the_reason(make: Make) -> None:
    """Of all nodes; a fault of the program is also reported to the loop."""
    reported: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))

    async def predicates(question: PredicateQuestion) -> None:
        if question.allocation_key == "refused":
            raise LicorneError("no room in the freezer")
        raise KeyError(question.allocation_key)

    async with make(predicates=predicates) as front:
        await begin(front, "n1")
        tasks = await front.place_many([an_ask("refused"), an_ask("broken")])
        wanted = {"no room in the freezer", "KeyError: 'broken'"}
        await asyncio.to_thread(wait_until, lambda: wanted <= {*reasons(front)})
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    assert {"the predicate of ask 'broken'"} == {context["message"] for context in reported}


@on_a_loop
async def test_an_answer_of_another_kind_refuses(make: Make) -> None:
    """And is a fault, which the loop hears of, if it is no mapping; a reason is a text."""
    reported: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))

    async def predicates(question: PredicateQuestion) -> Any:
        return 5 if question.allocation_key == "task" else {"n1": 5}

    async with make(predicates=predicates) as front:
        await begin(front, "n1")
        tasks = await front.place_many([an_ask("task"), an_ask("other")])
        for text in (
            "TypeError: 'int' object is not iterable",
            "the reason against node 'n1': expected str, got int 5",
        ):
            await asyncio.to_thread(wait_until, lambda text=text: text in reasons(front))
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    assert reported


@on_a_loop
async def test_a_coroutine_that_takes_too_long_is_cancelled(make: Make) -> None:
    """Its question has no answer, and the ask is asked about again; none is left at the end."""
    begun, ended = 0, 0

    async def predicates(_: PredicateQuestion) -> None:
        nonlocal begun, ended
        begun += 1
        try:
            if begun == 1:
                await asyncio.Event().wait()
        finally:
            ended += 1

    async with make(predicates=predicates, predicate_timeout_seconds=EXPIRING_SECONDS) as front:
        await begin(front, "n1")
        assert "n1" == (await front.place(an_ask("task"))).node_id
        assert begun > 1
    await asyncio.sleep(0)
    assert begun == ended
