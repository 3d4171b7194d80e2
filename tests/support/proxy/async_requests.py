"""What programs on asyncio send in tests, and a scheduler that notes the calls it gets."""

from __future__ import annotations

import threading
from typing import Any, Final

from support.proxy.manager_requests import application_request, ask_request, node_request

from licorne import AsyncScheduler, Scheduler, si

LEFT: Final[dict[str, int]] = {"asks": 0, "allocations": 0}
"""What `left_in` returns if there is nothing."""


def a_node(node_id: str = "n1", memory: int = 10) -> si.NodeInfo:
    return node_request(node_id, memory=memory).nodes[0]


def an_application(name: str = "app", queue: str = "root.leaf") -> si.AddApplicationRequest:
    return application_request(name, queue=queue).new[0]


def an_ask(key: str, memory: int = 1, application: str = "app") -> si.Allocation:
    return ask_request(key, memory=memory, application=application).allocations[0]


async def begin(front: AsyncScheduler, *node_ids: str, memory: int = 10) -> None:
    """Add nodes and the application of the asks."""
    await front.add_nodes(*(a_node(node_id, memory) for node_id in node_ids))
    await front.add_applications(an_application())


def left_in(scheduler: Any) -> dict[str, int]:
    """Return how many asks and allocations there are in the first partition."""
    applications = scheduler.snapshot()["applications"]["default"]
    return {
        "asks": sum(len(each.get("requests") or ()) for each in applications),
        "allocations": sum(len(each.get("allocations") or ()) for each in applications),
    }


class Noting:
    """Passes on the calls of asks to a scheduler, counts them, and holds them up while a gate is closed."""

    def __init__(self) -> None:
        self.scheduler = Scheduler()
        self.calls = 0
        self.reached = threading.Event()
        self.gate = threading.Event()
        self.gate.set()

    def update_allocation(self, request: si.AllocationRequest) -> None:
        self.calls += 1
        self.reached.set()
        self.gate.wait()
        self.scheduler.update_allocation(request)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.scheduler, name)
