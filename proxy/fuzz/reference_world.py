"""A run of a plan on the engine `direct` and on the second scheduler: each decision must be the same."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, final

from ..scheduler.scheduler import Scheduler
from ..si import si_pb2 as si
from ..si.api import ResourceManager
from .cluster_record import KnownApplication, KnownNode, RecordError, Task
from .configurations import DYNAMIC_PARENT, random_configuration
from .plans import Plan, PlannedStep
from .reference import ReferenceNode, ReferenceScheduler

__all__ = ["ACTIONS", "ReferenceWorld"]

_RM_ID: Final = "rm"
_UNKNOWN: Final = frozenset({"maxapplications", "childtemplate", "placementrules", "preemption"})
"""What the second scheduler does not know."""
_KNOWN_PROPERTIES: Final = frozenset(
    {
        *("application.sort.policy", "application.sort.priority", "priority.offset", "priority.policy"),
        *("fair.count", "fair.half-life", "fair.weight"),
    }
)
_OF_PREEMPTION: Final = frozenset({"preemption.delay", "preemption.policy", "preemption.within"})
_MILLISECOND_NS: Final = 1_000_000
_ATTEMPT_NS: Final = 31_000 * _MILLISECOND_NS
"""Longer than any delay of preemption, and than an ask waits after an attempt."""
_VISITS_MAX: Final = 4
"""How often a decision to preempt is waited for: a visit of a leaf makes ten attempts, the next goes on."""
_ONE_SIZE: Final = {"memory": 30, "vcore": 300}
_MORE_TASKS: Final = 2
"""How many more tasks come with each where asks preempt, so that they lack room."""


@final
class ReferenceWorld(ResourceManager):
    """The world of one plan.

    Args:
        plan: The plan; only its seed and its steps count.
        note: Writes down what is done and decided.
    """

    def __init__(self, plan: Plan, note: Callable[[str, Any], None]) -> None:
        self._plan = plan
        self._note = note
        rng = random.Random(f"reference {plan.seed}")  # noqa: S311 - it plays, and keeps no secret
        configuration = random_configuration(rng)
        dice = random.Random(f"preemption {plan.seed}")  # noqa: S311 - likewise; all others fall as without it
        self._preempts = dice.random() < 0.5
        """Asks preempt inside of queues: then no queue has a guarantee, and all tasks have one size."""
        properties = _KNOWN_PROPERTIES | (_OF_PREEMPTION if self._preempts else frozenset())
        partition = _known(json.loads(configuration.text)["partitions"][0], properties)
        partition["preemption"] = {"enabled": self._preempts}
        if self._preempts:
            _let_all_preempt(partition["queues"][0], dice)
        self._leaves = configuration.leaves
        self._text = json.dumps({"partitions": [partition]})
        self._reference = ReferenceScheduler(partition)
        self._placed: list[tuple[str, str]] = []
        self._victims: list[str] = []
        self._running: list[str] = []
        self._serial = 0
        with _without_reservations():
            self._scheduler = Scheduler(engine="direct")

    def run(self) -> None:
        """Take all steps.

        Raises:
            RecordError: The schedulers decide differently.
        """
        registration = si.RegisterResourceManagerRequest(rmID=_RM_ID, policyGroup="queues", config=self._text)
        with self._scheduler:
            self._scheduler.register_resource_manager(registration, self)
            for step in self._plan.steps:
                self._take_step(step)
            self._reference.now_ns = self._scheduler.now_ns()
            self._schedule()

    def update_allocation(self, response: si.AllocationResponse) -> None:
        """Note what is placed, and what has to end."""
        self._placed += [(each.allocationKey, each.nodeID) for each in response.new]
        preempted = si.PREEMPTED_BY_SCHEDULER
        self._victims += [
            each.allocationKey for each in response.released if each.terminationType == preempted
        ]

    def update_application(self, response: si.ApplicationResponse) -> None:
        """Forget what has ended: an application that has had nothing for a while."""
        for each in response.updated:
            if each.state == "Completed":
                self._reference.forget(each.applicationID)

    def _take_step(self, step: PlannedStep) -> None:
        self._reference.now_ns = self._scheduler.now_ns()
        ACTIONS[step.action](self, random.Random(step.draw))  # noqa: S311 - likewise
        self._wait(_MILLISECOND_NS)

    def _wait(self, nanoseconds: int) -> None:
        """Let time pass for both."""
        self._scheduler.advance_to(self._scheduler.now_ns() + nanoseconds)
        self._reference.now_ns = self._scheduler.now_ns()

    def _name(self, kind: str) -> str:
        self._serial += 1
        return f"{kind}{self._serial}"

    def _add_node(self, rng: random.Random) -> None:
        size = {"memory": rng.randint(30, 150), "vcore": rng.randint(300, 1500)}
        node = KnownNode(self._name("n"), "default", size)
        self._reference.nodes[node.name] = ReferenceNode(node.name, dict(size))
        self._report(node, si.NodeInfo.CREATE)

    def _report(self, node: KnownNode, action: si.NodeInfo.ActionFromRM) -> None:
        request = si.NodeRequest(rmID=_RM_ID, nodes=[node.message(action)])
        self._note("says", request)
        self._scheduler.update_node(request)

    def _change_node(self, rng: random.Random) -> None:
        nodes = [*self._reference.nodes.values()]
        if not nodes:
            return
        node = nodes[int(rng.random() * len(nodes))]
        if rng.random() < 0.5:
            node.drained = not node.drained
            action = si.NodeInfo.DRAIN_NODE if node.drained else si.NodeInfo.DRAIN_TO_SCHEDULABLE
        else:
            node.size = {name: value + rng.randrange(30) for name, value in node.size.items()}
            action = si.NodeInfo.UPDATE
        self._report(KnownNode(node.name, "default", node.size), action)

    def _submit(self, rng: random.Random) -> None:
        leaf = self._leaves[int(rng.random() * len(self._leaves))]
        name = self._name("a")
        user = ("ada", "bob", "eve")[self._serial % 3]
        application = KnownApplication(name, "default", leaf, user, [])
        self._reference.submit(application.name, leaf, user)
        request = si.ApplicationRequest(rmID=_RM_ID, new=[application.message()])
        self._note("says", request)
        self._scheduler.update_application(request)

    def _ask(self, rng: random.Random) -> None:
        names = [*self._reference.applications]
        if not names:
            return
        size = {"memory": rng.randint(1, 40), "vcore": rng.randint(20, 400)}
        priority = rng.randint(-3, 3) if rng.random() < 0.5 else 0
        task = Task(self._name("k"), names[int(rng.random() * len(names))], "default", size, priority)
        self._ask_for(task)
        for _ in range(_MORE_TASKS if self._preempts else 0):
            self._wait(_MILLISECOND_NS)  # The order of asks that come at one moment is beyond the second one.
            willing, preempts = rng.random() < 0.8, rng.random() < 0.8
            application = names[int(rng.random() * len(names))]
            priority = rng.randint(-3, 3)
            more = Task(self._name("k"), application, "default", {}, priority)
            more.preemptible, more.preempts = willing, preempts
            self._ask_for(more)

    def _ask_for(self, task: Task) -> None:
        if self._preempts:
            task.size = _ONE_SIZE
        self._reference.ask(
            task.application,
            task.key,
            task.size,
            task.priority,
            preempts=task.preempts,
            willing=task.preemptible,
        )
        request = si.AllocationRequest(rmID=_RM_ID, allocations=[task.message()])
        self._note("says", request)
        self._scheduler.update_allocation(request)

    def _end(self, rng: random.Random) -> None:
        if not self._running:
            return
        self._release(self._running[int(rng.random() * len(self._running))], si.STOPPED_BY_RM)

    def _release(self, key: str, why: si.TerminationType) -> None:
        self._running.remove(key)
        request = si.AllocationRequest(rmID=_RM_ID)
        request.releases.allocationsToRelease.add(
            applicationID=self._reference.application_of(key), allocationKey=key, terminationType=why
        )
        self._reference.end(key)
        self._note("says", request)
        self._scheduler.update_allocation(request)

    def _schedule(self, _: random.Random | None = None) -> None:
        """Let both decide until neither places anything, one decision after the other.

        Where asks preempt, so much time passes before each decision that every one may be tried.
        """
        while True:
            if self._preempts:
                self._wait(_ATTEMPT_NS)
            self._decide()
            expected = self._reference.step()
            if expected is None:
                self._compare([], [])
                return
            if not expected.victim:
                self._compare([(expected.key, expected.node)], [])
            else:
                self._go_on_until_decided()
                self._compare([], [expected.victim])
                self._release(expected.victim, si.PREEMPTED_BY_SCHEDULER)
                self._decide()
                self._compare([(expected.key, expected.node)], [])
                self._reference.place(expected.key, expected.node)
            self._running.append(expected.key)

    def _decide(self) -> None:
        """Let the scheduler take one decision."""
        self._placed.clear()
        self._victims.clear()
        self._scheduler.schedule(1)
        self._scheduler.deliver()
        self._note("decides", [self._placed[:], self._victims[:]])

    def _go_on_until_decided(self) -> None:
        """Let the scheduler go on while it has decided nothing: it may have spent the attempts of a visit."""
        for _ in range(_VISITS_MAX):
            if self._placed or self._victims:
                return
            self._decide()

    def _compare(self, placed: list[tuple[str, str]], victims: list[str]) -> None:
        """Compare the last decision with the one that is right.

        Raises:
            RecordError: It is another one.
        """
        if (self._placed, self._victims) != (placed, victims):
            raise RecordError(
                f"the scheduler places {self._placed} and ends {self._victims}, "
                f"and the second one places {placed} and ends {victims}"
            )


ACTIONS: Final[dict[str, Callable[[ReferenceWorld, random.Random], None]]] = {
    "add node": ReferenceWorld._add_node,  # noqa: SLF001 - of this module
    "change node": ReferenceWorld._change_node,  # noqa: SLF001 - likewise
    "submit": ReferenceWorld._submit,  # noqa: SLF001 - likewise
    "ask": ReferenceWorld._ask,  # noqa: SLF001 - likewise
    "finish": ReferenceWorld._end,  # noqa: SLF001 - likewise
    "schedule": ReferenceWorld._schedule,  # noqa: SLF001 - likewise
}
"""What happens in such a world, by name."""


def _known(queue: dict[str, Any], names: frozenset[str]) -> dict[str, Any]:
    """Return the document of a partition or queue without what the second scheduler does not know.

    Args:
        queue: The document.
        names: The properties that it knows.
    """
    known = {name: value for name, value in queue.items() if name not in _UNKNOWN}
    if "properties" in known:
        properties = known["properties"]
        known["properties"] = {name: properties[name] for name in properties if name in names}
    limits = [limit for limit in known.pop("limits", ()) if "users" in limit]
    if limits:
        kept = ("users", "weight", "maxresources")
        known["limits"] = [{key: limit[key] for key in kept if key in limit} for limit in limits]
    if "queues" in known:
        known["queues"] = [
            _known(child, names) for child in known["queues"] if child["name"] != DYNAMIC_PARENT
        ]
    return known


def _let_all_preempt(root: dict[str, Any], rng: random.Random) -> None:
    """Take the guarantees out of a tree of queues, and perhaps let all below its root preempt inside."""
    queues = [root]
    while queues:
        queue = queues.pop()
        for name in ("guaranteed", "lend"):
            queue.get("resources", {}).pop(name, None)
        queues += queue.get("queues", ())
    if rng.random() < 0.7:
        root.setdefault("properties", {})["preemption.within"] = "lower-priority"


@contextmanager
def _without_reservations() -> Iterator[None]:
    """Let a scheduler that is made now reserve no nodes."""
    before = os.environ.get("DISABLE_RESERVATION")
    os.environ["DISABLE_RESERVATION"] = "true"
    try:
        yield
    finally:
        if before is None:
            del os.environ["DISABLE_RESERVATION"]
        else:
            os.environ["DISABLE_RESERVATION"] = before
