"""A small resource manager: eight tasks on two nodes, and a server that may die.

    licorne serve --config examples/queues.yaml
    python examples/resource_manager.py 127.0.0.1:3333

Kill the server while this runs, start it again, and read the output. Ctrl-C ends the program.
"""

from __future__ import annotations

import sys
import time

from licorne import Recovery, RemoteScheduler, ResourceManager, si

CORE = {"resources": {"vcore": {"value": 1_000}}}
NODE = {"resources": {"vcore": {"value": 4_000}}}
TASKS = [f"task-{number}" for number in range(1, 9)]


class Manager(ResourceManager):
    """A resource manager that keeps its running tasks, and sends them to a scheduler without state."""

    def __init__(self, scheduler: RemoteScheduler) -> None:
        self.scheduler = scheduler
        self.runs_on: dict[str, str] = {}

    def reconnected(self) -> None:
        """Register, and send the whole state; the scheduler's client calls this after each reconnection."""
        registration = si.RegisterResourceManagerRequest(rmID="example")
        nodes = [si.NodeInfo(nodeID=name, action="CREATE", schedulableResource=NODE) for name in ("n1", "n2")]
        application = si.AddApplicationRequest(applicationID="report", queueName="root.research")
        application.ugi.user = "ada"
        tasks = [
            si.Allocation(
                allocationKey=task,
                applicationID="report",
                nodeID=self.runs_on.get(task, ""),
                resourcePerAlloc=CORE,
            )
            for task in TASKS
        ]
        print(f"registering, with {len(self.runs_on)} tasks that run", flush=True)
        Recovery(
            self.scheduler,
            registration,
            self,
            nodes=nodes,
            applications=[application],
            allocations=[task for task in tasks if task.nodeID],
            asks=[task for task in tasks if not task.nodeID],
        ).start()

    def update_application(self, response: si.ApplicationResponse) -> None:
        """Print why the application is rejected; its tasks would wait forever."""
        for application in response.rejected:
            print(application.applicationID, "was rejected:", application.reason, flush=True)

    def update_allocation(self, response: si.AllocationResponse) -> None:
        """Start the tasks that the scheduler has placed."""
        for rejected in response.rejectedAllocations:
            print(rejected.allocationKey, "was rejected:", rejected.reason, flush=True)
        for allocation in response.new:
            self.runs_on[allocation.allocationKey] = allocation.nodeID
            print(allocation.allocationKey, "runs on", allocation.nodeID, flush=True)

    def update_node(self, response: si.NodeResponse) -> None:
        """Print which nodes the scheduler has accepted."""
        for node in response.accepted:
            print(node.nodeID, "is known", flush=True)
        for rejected in response.rejected:
            print(rejected.nodeID, "was rejected:", rejected.reason, flush=True)


def main(address: str) -> None:
    """Run until Ctrl-C."""
    with RemoteScheduler(address) as scheduler:
        Manager(scheduler).reconnected()
        try:
            while True:
                time.sleep(1)  # A wait without a limit may miss Ctrl-C, which may reach a thread of gRPC.
        except KeyboardInterrupt:
            print("shutting down", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
