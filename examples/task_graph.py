"""A task graph in the form of Dask: each task runs when its arguments are computed and a node has room.

    python examples/task_graph.py

A graph is a mapping of names to tasks: a function and its arguments, where the name of a task stands for its
result. `Graph.submit` returns a task of asyncio: it can be awaited, waited for with others, and cancelled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from licorne import AsyncScheduler, Placed, si

QUEUES = "partitions: [{name: default, queues: [{name: root, submitacl: '*', queues: [{name: graphs}]}]}]"
Task = tuple[Callable[..., Any], *tuple[Any, ...]]


def slots(count: int) -> si.Resource:
    """Return the resources of a number of tasks."""
    return si.Resource(resources={"slot": si.Quantity(value=count)})


class Graph:
    """Runs each task of a graph once, in the places that a scheduler allocates."""

    def __init__(self, scheduler: AsyncScheduler, tasks: Mapping[str, Task], application: str) -> None:
        self.scheduler, self.tasks, self.application = scheduler, tasks, application
        self.futures: dict[str, asyncio.Task[Any]] = {}
        self.ran_on: dict[str, str] = {}

    def submit(self, name: str) -> asyncio.Task[Any]:
        """Return the task of asyncio for a name; it starts with the first call."""
        if name not in self.futures:
            self.futures[name] = asyncio.create_task(self._run(name), name=name)
        return self.futures[name]

    async def _run(self, name: str) -> Any:
        function, *given = self.tasks[name]
        arguments = await asyncio.gather(*(self._value(each) for each in given))
        ask = si.Allocation(allocationKey=name, applicationID=self.application, resourcePerAlloc=slots(1))
        while True:
            placed = await self.scheduler.place(ask)
            self.ran_on[name] = placed.node_id
            try:
                return await self._work(placed, function, arguments)
            except InterruptedError:  # The scheduler needs the place for other work: the task waits again.
                continue
            finally:
                await self.scheduler.end(placed)

    async def _value(self, given: Any) -> Any:
        """Return the value of an argument: the result of a task, or the argument itself."""
        return await self.submit(given) if isinstance(given, str) and given in self.tasks else given

    async def _work(self, placed: Placed, function: Callable[..., Any], arguments: list[Any]) -> Any:
        """Run a function on a thread, like a worker on the node, until the scheduler asks for the place."""
        work = asyncio.ensure_future(asyncio.to_thread(function, *arguments))
        await asyncio.wait({work, placed.released}, return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            raise InterruptedError(placed.key)
        return work.result()


def count_words(text: str) -> int:
    """Return the number of words in a text."""
    return len(text.split())


async def main() -> None:
    """Count the words of eight texts in four places, and add the counts in pairs."""
    tasks: dict[str, Task] = {f"count-{n}": (count_words, "one more word " * n) for n in range(8)}
    for level, width in enumerate((4, 2, 1)):
        below = "count" if level == 0 else f"sum{level - 1}"
        for n in range(width):
            tasks[f"sum{level}-{n}"] = (int.__add__, f"{below}-{2 * n}", f"{below}-{2 * n + 1}")
    application = si.AddApplicationRequest(applicationID="words", queueName="root.graphs")
    application.ugi.user = "ada"
    async with AsyncScheduler(QUEUES) as scheduler:
        for node_id in ("n1", "n2"):
            node = si.NodeInfo(nodeID=node_id, action=si.NodeInfo.CREATE, schedulableResource=slots(2))
            await scheduler.add_nodes(node)
        await scheduler.add_applications(application)
        graph = Graph(scheduler, tasks, "words")
        print(
            await graph.submit("sum2-0"),
            "words in",
            len(graph.ran_on),
            "tasks on",
            *sorted({*graph.ran_on.values()}),
        )


if __name__ == "__main__":
    asyncio.run(main())
