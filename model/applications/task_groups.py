"""The placeholders of a gang, counted by task group."""

from __future__ import annotations

from typing import final

from ..resources.resource import Resource
from ..values.allocation import Ask
from .pending_asks import AskShape


@final
class TaskGroup:
    """How many placeholders a task group has had, and how many of them were replaced or ended."""

    __slots__ = ("count", "minimum", "name", "replaced", "timed_out")

    def __init__(self, name: str, minimum: Resource) -> None:
        self.name = name
        self.minimum = minimum
        self.count = 0
        self.replaced = 0
        self.timed_out = 0


@final
class TaskGroups:
    """The task groups of one application. Owned by the application."""

    def __init__(self) -> None:
        self.by_name: dict[str, TaskGroup] = {}

    def count_placeholder(self, ask: Ask) -> None:
        """Count one more placeholder; the first one of a group gives its size."""
        group = self.by_name.get(ask.task_group_name)
        if group is None:
            group = self.by_name[ask.task_group_name] = TaskGroup(ask.task_group_name, ask.resource)
        group.count += 1

    def count_end(self, task_group_name: str, *, replaced: bool) -> None:
        """Count a placeholder that was replaced, or that ended unused."""
        group = self.by_name.get(task_group_name)
        if group is None:
            return
        if replaced:
            group.replaced += 1
        else:
            group.timed_out += 1

    def makes_wait(self, shape: AskShape) -> bool:
        """Return whether asks of this shape are to replace placeholders."""
        return (
            bool(self.by_name) and not shape.placeholder and self.waits_for_placeholder(shape.task_group_name)
        )

    def waits_for_placeholder(self, task_group_name: str) -> bool:
        """Return whether a member of the group is to replace a placeholder."""
        group = self.by_name.get(task_group_name)
        return group is not None and group.count > group.replaced + group.timed_out
