"""A resource manager of jobs with completions: it asks again for every task that was preempted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from licorne import ResourceManager, Scheduler
from licorne.proxy.si import si_pb2 as si

if TYPE_CHECKING:
    from licorne.proxy.core.scheduler.engine_names import EngineName

_SECOND_NS: Final = 1_000_000_000
_ROUNDS_MAX: Final = 1_000


class JobManager(ResourceManager):
    """Jobs of equal tasks, one job a queue, on a scheduler with a virtual clock.

    It confirms every preemption at once, as a kubelet that kills without grace, and asks for the task
    again under a new key. After every step it asks the scheduler for its invariants.
    """

    def __init__(self, configuration: str, node: Mapping[str, int], *, engine: EngineName = "direct") -> None:
        self.scheduler = Scheduler(engine=engine, stepped=True)
        self.tasks: dict[str, str] = {}
        """Of what runs: key -> job."""
        self.preempted: Counter[str] = Counter()
        self._jobs: dict[str, si.Allocation] = {}
        self._serial = 0
        self._to_confirm: list[si.AllocationRelease] = []
        self.scheduler.register("rm", self, configuration=configuration)
        request = si.NodeRequest(rmID="rm")
        info = request.nodes.add(nodeID="n1", action=si.NodeInfo.CREATE)
        _fill(info.schedulableResource, node)
        self.scheduler.update_node(request)

    # --------------------------------------------------------------------------------- what it wants

    def start(self, job: str, queue: str, tasks: int, *, size: Mapping[str, int], priority: int = 0) -> None:
        """Start a job whose tasks may preempt others and be preempted."""
        request = si.ApplicationRequest(rmID="rm")
        request.new.add(applicationID=job, queueName=queue).ugi.user = "somebody"
        self.scheduler.update_application(request)
        template = si.Allocation(applicationID=job, priority=priority)
        template.preemptionPolicy.allowPreemptSelf = True
        template.preemptionPolicy.allowPreemptOther = True
        _fill(template.resourcePerAlloc, size)
        self._jobs[job] = template
        for _ in range(tasks):
            self._ask(job)

    def delete(self, job: str) -> None:
        """Delete a job with all its tasks."""
        del self._jobs[job]
        request = si.ApplicationRequest(rmID="rm")
        request.remove.add(applicationID=job)
        self.scheduler.update_application(request)
        self.tasks = {key: owner for key, owner in self.tasks.items() if owner != job}

    def _ask(self, job: str) -> None:
        self._serial += 1
        request = si.AllocationRequest(rmID="rm")
        ask = request.allocations.add()
        ask.CopyFrom(self._jobs[job])
        ask.allocationKey = f"{job}-{self._serial}"
        self.scheduler.update_allocation(request)

    # -------------------------------------------------------------------------------- what it hears

    def update_allocation(self, response: si.AllocationResponse) -> None:
        """Note what runs, and what has to go."""
        for allocation in response.new:
            self.tasks[allocation.allocationKey] = allocation.applicationID
        for release in response.released:
            if release.terminationType == si.PREEMPTED_BY_SCHEDULER:
                self._to_confirm.append(release)

    def _confirm(self) -> bool:
        """End what has to go and ask for it again; return whether there was anything."""
        going, self._to_confirm = self._to_confirm, []
        for release in going:
            request = si.AllocationRequest(rmID="rm")
            request.releases.allocationsToRelease.append(release)
            job = self.tasks.pop(release.allocationKey)
            self.preempted[job] += 1
            self.scheduler.update_allocation(request)
            self._ask(job)
        return bool(going)

    # -------------------------------------------------------------------------------------- time

    def wait(self, seconds: int) -> None:
        """Let time pass, second by second, and do in each whatever is to be done."""
        for _ in range(seconds):
            self._run_until_idle()
            self.scheduler.advance_to(self.scheduler.now_ns() + _SECOND_NS)
        self._run_until_idle()
        self.scheduler.validate()

    def _run_until_idle(self) -> None:
        for _ in range(_ROUNDS_MAX):
            placed = self.scheduler.run_until_idle()
            if not self._confirm() and not placed:
                return
        raise AssertionError(f"the cluster is not at rest after {_ROUNDS_MAX} rounds: who preempts whom?")

    def running(self) -> dict[str, int]:
        """Return how many tasks of each job run."""
        return dict(sorted(Counter(self.tasks.values()).items()))


def _fill(resource: si.Resource, quantities: Mapping[str, int]) -> None:
    for name, quantity in quantities.items():
        resource.resources[name].value = quantity
