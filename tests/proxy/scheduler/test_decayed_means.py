"""What queues and users have used on average is shown where it counts, and nowhere else."""

from __future__ import annotations

from typing import Any

from licorne import ResourceManager, Scheduler
from licorne.proxy.si import si_pb2 as si

CONFIGURATION = """
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    properties: {fair.half-life: 10s}
    queues:
    - name: first
      properties: {application.sort.policy: users}
    - name: second
"""


def documents(configuration: str) -> tuple[list[Any], list[Any]]:
    """Return the documents of the queues and of the users, ten seconds after ada has begun to use 8."""
    with Scheduler(engine="direct") as scheduler:
        scheduler.register("rm", ResourceManager(), configuration=configuration)
        node = si.NodeInfo(nodeID="n1", action=si.NodeInfo.CREATE)
        node.schedulableResource.resources["memory"].value = 10
        scheduler.update_node(si.NodeRequest(rmID="rm", nodes=[node]))
        application = si.AddApplicationRequest(
            applicationID="app", queueName="root.first", partitionName="default"
        )
        application.ugi.user = "ada"
        scheduler.update_application(si.ApplicationRequest(rmID="rm", new=[application]))
        ask = si.Allocation(allocationKey="ask", applicationID="app", partitionName="default")
        ask.resourcePerAlloc.resources["memory"].value = 8
        scheduler.update_allocation(si.AllocationRequest(rmID="rm", allocations=[ask]))
        scheduler.schedule()
        scheduler.advance_to(scheduler.now_ns() + 10 * 10**9)
        snapshot: Any = scheduler.snapshot()
    (root,) = snapshot["queues"] if isinstance(snapshot["queues"], list) else [snapshot["queues"]["default"]]
    (user,) = snapshot["users"]["default"]
    return [root, *root["children"]], [user["queues"], *user["queues"]["children"]]


def test_means_are_shown_of_queues_and_of_users() -> None:
    """Each below a half-life; what nothing was used of is left out."""
    queues, levels = documents(CONFIGURATION)

    assert [None, {"memory": 4}, None] == [queue.get("decayedMean") for queue in queues]
    assert ["fair", "users", "fifo"] == [queue["sortingPolicy"] for queue in queues]
    assert [None, {"memory": 4}] == [level.get("decayedMean") for level in levels]


def test_no_mean_is_shown_without_a_half_life() -> None:
    """Although the leaf orders its users by what they use now."""
    queues, levels = documents(CONFIGURATION.replace("    properties: {fair.half-life: 10s}\n", ""))

    assert not any("decayedMean" in shown for shown in [*queues, *levels])
    assert "users" == queues[1]["sortingPolicy"]
