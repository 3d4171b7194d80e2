"""A lowered maximum is enforced by itself, on the virtual clock."""

from __future__ import annotations

import pytest

from licorne import ResourceManager, Scheduler
from licorne.proxy.si import si_pb2 as si

SECOND_NS = 1_000_000_000
CONFIGURATION = """
partitions:
  - name: default
    preemption: {{quotapreemptionenabled: true}}
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: a
            properties: {{quota.preemption.delay: 10s}}
            resources: {{max: {{memory: {maximum}}}}}
"""


class Manager(ResourceManager):
    """Keeps what it is asked to end."""

    def __init__(self) -> None:
        self.ended: list[str] = []

    def update_allocation(self, response: si.AllocationResponse) -> None:
        self.ended += [
            release.allocationKey
            for release in response.released
            if release.terminationType == si.PREEMPTED_BY_SCHEDULER
        ]


def size(memory: int) -> si.Resource:
    return si.Resource(resources={"memory": si.Quantity(value=memory)})


@pytest.mark.parametrize("engine", ["direct", "actors"])
def test_a_lowered_maximum_takes_what_is_above_it_after_its_delay(engine: str) -> None:
    """The youngest goes first; nothing before the delay."""
    manager = Manager()
    with Scheduler(engine="direct" if engine == "direct" else "actors", stepped=True) as scheduler:
        scheduler.register("rm", manager, configuration=CONFIGURATION.format(maximum=30))
        node = si.NodeInfo(nodeID="n", action=si.NodeInfo.CREATE, schedulableResource=size(100))
        scheduler.update_node(si.NodeRequest(rmID="rm", nodes=[node]))
        application = si.AddApplicationRequest(applicationID="app", queueName="root.a")
        application.ugi.user = "ada"
        scheduler.update_application(si.ApplicationRequest(rmID="rm", new=[application]))
        for number in range(3):
            policy = si.PreemptionPolicy(allowPreemptSelf=True)
            ask = si.Allocation(allocationKey=f"x{number}", applicationID="app", preemptionPolicy=policy)
            ask.resourcePerAlloc.CopyFrom(size(10))
            scheduler.update_allocation(si.AllocationRequest(rmID="rm", allocations=[ask]))
            scheduler.run_until_idle()
            scheduler.advance_to(scheduler.now_ns() + SECOND_NS)
        lowered = CONFIGURATION.format(maximum=20)
        scheduler.update_configuration(si.UpdateConfigurationRequest(rmID="rm", config=lowered))
        start_ns = scheduler.now_ns()
        scheduler.run_until_idle()

        scheduler.advance_to(start_ns + 9 * SECOND_NS)
        before = list(manager.ended)
        scheduler.advance_to(start_ns + 12 * SECOND_NS)

        assert [] == before
        assert ["x2"] == manager.ended
        scheduler.validate()
