"""Policies under test: clusters name them at every decision, and ask each question twice."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import Any, Final, final

from ...model.configuration.queue_properties import APPLICATION_SORT_POLICY, GANG_PLACING, QUEUE_SORT_POLICY
from ...model.policies.policies import POLICY_PREFIX, GivenPolicies, PolicyPoint
from ..base.files.policy_options import given_policies
from .configurations import Configuration, queues_below
from .manager.cluster_record import RecordError, Task

_SHOWN_MAX: Final = 100
_LISTS: Final = {
    PolicyPoint.ADMISSION: "admission",
    PolicyPoint.FILTER: "filters",
    PolicyPoint.PROTECTION: "protection",
}
"""The lists of a partition that name policies."""
_SETTINGS: Final = {
    PolicyPoint.NODE_ORDER: ("nodesortpolicy", "type"),
    PolicyPoint.VICTIM_ORDER: ("preemption", "victims"),
}
"""The settings of a partition that name a policy."""
_PROPERTIES: Final = {
    PolicyPoint.APPLICATION_ORDER: APPLICATION_SORT_POLICY,
    PolicyPoint.QUEUE_ORDER: QUEUE_SORT_POLICY,
}
"""The properties of queues that name a policy."""


class ImpureAnswerError(Exception):
    """A policy gave two answers to the same question, one after the other."""


@final
class TriedPolicies:
    """The policies of a plan.

    Args:
        options: As `--policy` takes them.

    Raises:
        LicorneError: A policy cannot be used.
    """

    def __init__(self, options: Sequence[str]) -> None:
        self.factories = {
            name: partial(_AskedTwice, factory, partial(self._note, name))
            for name, factory in given_policies(options).items()
        }
        self._points = GivenPolicies(self.factories).points
        self._answers: dict[tuple[str, ...], object] = {}
        """The last answers of filters and admissions: by policy, ask and node, or by application."""

    def _note(self, name: str, point: PolicyPoint, shown: tuple[Any, ...], answer: object) -> None:
        if point is PolicyPoint.FILTER:
            self._answers[name, shown[0].allocation_key, shown[1].node_id] = answer
        elif point is PolicyPoint.ADMISSION:
            self._answers[name, shown[0].application_id] = answer

    def check(self, running: Iterable[Task]) -> None:
        """Check that the policies were obeyed: refused tasks do not run.

        Raises:
            RecordError: A task runs that a policy has refused.
        """
        for task in running:
            for name in self.factories:
                for about in ((task.key, task.node), (task.application,)):
                    answer = self._answers.get((name, *about))
                    if answer is not None:
                        raise RecordError(
                            f"{task.key} of {task.application} runs on {task.node}, "
                            f"and policy {name} has answered {answer!r:.{_SHOWN_MAX}}"
                        )

    def named_in(self, configuration: Configuration) -> Configuration:
        """Return a configuration that names each policy at every decision."""
        if not self._points:
            return configuration
        document: dict[str, Any] = json.loads(configuration.text)
        for partition in document["partitions"]:
            for name, points in self._points.items():
                _name_in(partition, name, points)
        return Configuration(json.dumps(document, indent=1), configuration.leaves)


def _name_in(partition: dict[str, Any], name: str, points: Collection[PolicyPoint]) -> None:
    """Name a policy in a partition at every decision."""
    word = POLICY_PREFIX + name
    for point in PolicyPoint:
        if point not in points:
            continue
        if point in _LISTS:
            partition.setdefault("policies", {}).setdefault(_LISTS[point], []).append(name)
        elif point in _SETTINGS:
            section, key = _SETTINGS[point]
            partition.setdefault(section, {})[key] = word
        else:
            for queue in queues_below(partition):
                queue.setdefault("properties", {})[_PROPERTIES[point]] = word
    if PolicyPoint.APPLICATION_ORDER in points:
        for queue in queues_below(partition):
            queue["properties"][GANG_PLACING] = "whole"


class _AskedTwice:
    """A policy that is asked each question twice; it has only the methods of the policy."""

    def __init__(self, factory: Callable[[], object], note: Callable[..., None]) -> None:
        policy = factory()
        for name in ("depends_on", "every_ns"):
            if hasattr(policy, name):
                setattr(self, name, getattr(policy, name))
        for point in PolicyPoint:
            method = getattr(policy, point.value, None)
            if callable(method):
                setattr(self, point.value, partial(_same_answer, method, partial(note, point)))


def _same_answer(
    method: Callable[..., object], note: Callable[[tuple[object, ...], object], None], *args: object
) -> object:
    first, second = method(*args), method(*args)
    if repr(first) != repr(second):
        shown = f"{first!r:.{_SHOWN_MAX}}, then {second!r:.{_SHOWN_MAX}}"
        raise ImpureAnswerError(f"the same question was answered by {shown}")
    note(args, first)
    return first
