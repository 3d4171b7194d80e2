"""A resource manager that rolls dice: what it remembers, and the words in which it speaks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from support.transcripts.transcript_lines import (
    RM_ID,
    allocations_line,
    line,
    node_line,
    releases_line,
    removal_line,
    resource,
)

if TYPE_CHECKING:
    import random

    from support.transcripts.transcript_lines import Json

    from licorne.proxy.fuzz.configurations import Configuration

__all__ = ["RandomManager", "Task"]

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
        """Return whether something happens this time."""
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
        self.lines.append(line(verb, body))

    def say_node(self, node: str, action: str, capacity: dict[str, int] | None = None) -> None:
        """Create a node, or change one."""
        self.lines.append(node_line(node, self.nodes[node], action, capacity))

    def say_removal(self, task: Task) -> None:
        """Remove an application."""
        self.lines.append(removal_line(task.name, task.partition))

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
        self.lines.append(allocations_line(bodies))

    def say_older_asks(self, bodies: list[dict[str, Json]]) -> None:
        """Send asks in one message of the older generation; some may run for a while only."""
        asks: list[Json] = []
        for body in bodies:
            ask = {name: value for name, value in body.items() if name != "resourcePerAlloc"}
            ask["resourceAsk"] = body["resourcePerAlloc"]
            ask["Originator"] = bool(ask.pop("originator", False))
            ask["tags"] = ask.pop("allocationTags", {})
            ask["maxAllocations"] = 1
            ask["executionTimeoutMilliSeconds"] = str(self.rng.choice([0, 500, 1000, 4000, 60_000]))
            asks.append(ask)
        self.say("allocation", {"rmID": RM_ID, "asks": asks})

    def say_releases(self, task: Task, ends: list[tuple[str, str]]) -> None:
        """Release keys of an application, each with a termination type, in one message."""
        if ends:
            self.lines.append(releases_line(task.name, task.partition, ends))
