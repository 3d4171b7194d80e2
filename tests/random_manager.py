"""A resource manager that rolls dice: what it remembers, and the words in which it speaks."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import random

    from transcript_configurations import Configuration, Json

__all__ = ["RM_ID", "RandomManager", "Task", "resource"]

RM_ID: Final = "rm"
_RECENT: Final = 4


@dataclass(slots=True)
class Task:
    """What a resource manager remembers of an application."""

    name: str
    partition: str
    task_groups: dict[str, dict[str, int]] = field(default_factory=dict)
    """The size of the placeholders of each task group."""
    keys: list[str] = field(default_factory=list)
    placeholders: list[str] = field(default_factory=list)


def resource(quantities: dict[str, int]) -> Json:
    """Write a resource as JSON."""
    return {"resources": {name: {"value": str(quantity)} for name, quantity in quantities.items()}}


@dataclass(slots=True)
class RandomManager:
    """Dice, a memory that forgets nothing, and the lines that were said."""

    rng: random.Random
    partitions: tuple[str, ...]
    configuration: Configuration
    nodes: dict[str, str] = field(default_factory=dict)
    """The partition of each node that there has ever been."""
    tasks: dict[str, Task] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    """Nodes and applications that have been removed."""
    foreign: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    serial: int = 0

    # -------------------------------------------------------------------------------------- dice

    def chance(self, probability: float) -> bool:
        """Tell whether something happens this time."""
        return self.rng.random() < probability

    def new_name(self, kind: str) -> str:
        """Return a name that nothing has."""
        self.serial += 1
        return f"{kind}{self.serial}"

    def some_task(self) -> Task:
        """Return an application: mostly a recent one, sometimes one that is long gone."""
        living = [task for task in self.tasks.values() if task.name not in self.gone]
        if living and self.chance(0.95):
            return self.rng.choice(living[-_RECENT:])
        return self.rng.choice([*self.tasks.values()])

    def some_node(self) -> str:
        """Return a node, sometimes one that is gone."""
        living = [node for node in self.nodes if node not in self.gone]
        return self.rng.choice(living if living and self.chance(0.95) else [*self.nodes])

    def some_key(self, task: Task) -> str:
        """Return the key of an ask or placeholder, whatever has become of it."""
        keys = task.keys + task.placeholders
        return self.rng.choice(keys) if keys else "unheard"

    def some_size(self) -> dict[str, int]:
        """Return the size of an ask; a few are nonsense."""
        memory, vcore = self.rng.choice([5, 10, 10, 20, 40]), self.rng.choice([50, 100, 100, 400])
        size = {"memory": memory, "vcore": vcore}
        if self.chance(0.03):
            size["gpu"] = 1
        if self.chance(0.02):
            size["memory"] = self.rng.choice([0, -1, 10**6])
        return size

    def some_capacity(self) -> dict[str, int]:
        """Return the capacity of a node."""
        capacity = {"memory": self.rng.randint(30, 150), "vcore": self.rng.randint(300, 1500)}
        if self.chance(0.2):
            capacity["gpu"] = 2
        return capacity

    # ------------------------------------------------------------------------------------- words

    def say(self, verb: str, body: Json) -> None:
        """Add a line to the transcript."""
        self.lines.append(json.dumps({verb: body}))

    def say_node(self, node: str, action: str, capacity: dict[str, int] | None = None) -> None:
        """Create a node, or change one."""
        partition = self.nodes[node]
        body: dict[str, Json] = {"nodeID": node, "action": action}
        body["attributes"] = {"si/node-partition": partition} if partition != "default" else {}
        if capacity is not None:
            body["schedulableResource"] = resource(capacity)
        self.say("node", {"rmID": RM_ID, "nodes": [body]})

    def say_removal(self, task: Task) -> None:
        """Remove an application."""
        removal: Json = {"applicationID": task.name, "partitionName": task.partition}
        self.say("application", {"rmID": RM_ID, "remove": [removal]})

    def allocation(self, task: Task, key: str, size: dict[str, int]) -> dict[str, Json]:
        """Write an ask or allocation, with priority and preemption policy as the dice say."""
        body: dict[str, Json] = {"allocationKey": key, "applicationID": task.name}
        body["partitionName"] = task.partition
        body["resourcePerAlloc"] = resource(size)
        if self.chance(0.4):
            body["priority"] = self.rng.randint(-2, 9)
        policy: Json = {"allowPreemptSelf": self.chance(0.7), "allowPreemptOther": self.chance(0.7)}
        body["preemptionPolicy"] = policy
        if self.chance(0.1):
            body["originator"] = True
        return body

    def say_allocations(self, bodies: list[dict[str, Json]]) -> None:
        """Send asks and allocations in one message."""
        self.say("allocation", {"rmID": RM_ID, "allocations": [*bodies]})

    def say_releases(self, task: Task, ends: list[tuple[str, str]]) -> None:
        """Release keys of an application, each with a termination type, in one message."""
        bodies: list[Json] = [
            {
                "partitionName": task.partition,
                "applicationID": task.name,
                "allocationKey": key,
                "terminationType": termination,
            }
            for key, termination in ends
        ]
        if bodies:
            self.say("allocation", {"rmID": RM_ID, "releases": {"allocationsToRelease": bodies}})
