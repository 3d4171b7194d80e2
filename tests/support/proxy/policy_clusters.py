"""A scheduler that is stepped and has policies, with a resource manager that remembers what it heard."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from support.proxy.listening import Listener

from licorne import CallbackFailure, Scheduler, si
from licorne.proxy.core.explanation.text import changes_of, what_blocks
from licorne.proxy.core.scheduler.engine_names import EngineName

HOUR: Final = 3_600_000_000_000
MIDNIGHT: Final = 946_684_800_000_000_000
"""When a stepped scheduler begins."""
GPU: Final = "nvidia.com/gpu"


def text(queues: str = "[{name: a}, {name: b}]", partition: str = "", root: str = "") -> str:
    """Return a configuration with the settings that a test is about."""
    return f"""
partitions:
  - name: default
    {partition}
    queues:
      - name: root
        submitacl: "*"
        properties: {{{root}}}
        queues: {queues}
"""


class Cluster:
    """A scheduler that is stepped, and what its RM has heard."""

    def __init__(
        self,
        given: Mapping[str, Callable[[], object]],
        configuration: str,
        *,
        engine: EngineName = "direct",
        listener: Listener | None = None,
        record: Path | None = None,
    ) -> None:
        self.failures: list[CallbackFailure] = []
        self.scheduler = Scheduler(
            engine=engine, stepped=True, policies=given, on_error=self.failures.append, record=record
        )
        self.listener = listener or Listener()
        self.scheduler.register("rm", self.listener, configuration=configuration)

    def nodes(self, **sizes: Mapping[str, int]) -> None:
        for name, size in sizes.items():
            node = {"nodeID": name, "action": "CREATE", "schedulableResource": quantities(size)}
            self.scheduler.update_node(si.NodeRequest(rmID="rm", nodes=[node]))

    def application(self, name: str, queue: str = "root.a", **tags: str) -> None:
        new = {"applicationID": name, "queueName": queue, "ugi": {"user": "ada"}, "tags": tags}
        self.scheduler.update_application(si.ApplicationRequest(rmID="rm", new=[new]))

    def ask(self, key: str, application: str, count: int = 1, **size: int) -> None:
        asks = [
            {
                "allocationKey": f"{key}{number or ''}",
                "applicationID": application,
                "resourcePerAlloc": quantities(size),
            }
            for number in range(count)
        ]
        self.scheduler.update_allocation(si.AllocationRequest(rmID="rm", allocations=asks))

    def run(self) -> list[str]:
        """Return the keys that are placed now, in order."""
        before = len(self.listener.all("placed "))
        self.scheduler.run_until_idle()
        self.scheduler.deliver()
        return self.listener.all("placed ")[before:]

    def blocked(self, application: str) -> list[str]:
        found = self.scheduler.explain(application)
        assert found is not None
        now_ns = found.time_ns
        return [
            f"{what_blocks(each, now_ns)}; {', '.join(changes_of(each, now_ns))}" for each in found.blockers
        ]


def quantities(size: Mapping[str, int]) -> dict[str, Any]:
    return {"resources": {name.replace("gpu", GPU): {"value": value} for name, value in size.items()}}
