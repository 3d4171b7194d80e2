"""Policies under test: clusters name them at every decision, and ask each question again.

It is asked at once with equal views that are other objects, and after the next step of the cluster.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import deepcopy
from functools import partial
from types import MappingProxyType
from typing import Any, Final, final

from ...model.configuration.queue_properties import (
    APPLICATION_SORT_POLICY,
    BACKFILL_ORDER,
    BACKFILL_PROMISES,
    GANG_PLACING,
    QUEUE_SORT_POLICY,
    RUNTIME_EXPECTED,
)
from ...model.errors import LicorneError
from ...model.policies.policies import POLICY_PREFIX, GivenPolicies, PolicyPoint
from ...model.resources.resource import Resource
from ..base.files.plugins import given_policies
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
    PolicyPoint.CLASS_NODE_ORDER: ("nodesortpolicy", "type"),
    PolicyPoint.ASK_CLASS: ("nodesortpolicy", "type"),
    PolicyPoint.VICTIM_ORDER: ("preemption", "victims"),
}
"""The settings of a partition that name a policy."""
_PROPERTIES: Final = {
    PolicyPoint.APPLICATION_ORDER: APPLICATION_SORT_POLICY,
    PolicyPoint.QUEUE_ORDER: QUEUE_SORT_POLICY,
    PolicyPoint.RUN_TIME: RUNTIME_EXPECTED,
    PolicyPoint.BACKFILL_ORDER: BACKFILL_ORDER,
    PolicyPoint.PROMISES: BACKFILL_PROMISES,
}
"""The properties of queues that name a policy."""


_COMPARED: Final = frozenset(
    {
        PolicyPoint.NODE_ORDER,
        PolicyPoint.APPLICATION_ORDER,
        PolicyPoint.QUEUE_ORDER,
        PolicyPoint.ADMISSION,
        PolicyPoint.FILTER,
        PolicyPoint.FILTER_CLASS,
    }
)
"""The points at which the second scheduler asks too; it asks filters without their classes."""
_UNNAMED: Final = frozenset({PolicyPoint.FILTER_CLASS, PolicyPoint.CLASS_VERSION, PolicyPoint.PLACED})
"""The points that no setting names."""
_OF_VIEWS: Final = frozenset({"object", "submission"})
"""What policies depend on whose answers follow from the views."""
_SLOW_SECONDS: Final = 5.0
"""A policy that takes longer for an answer waits for something."""
_FORKS: Final[list[int]] = []
"""The processes that were forked, in the parent."""
os.register_at_fork(after_in_parent=lambda: _FORKS.append(0), after_in_child=_FORKS.clear)


class ImpureAnswerError(Exception):
    """A policy gave two answers to the same question, or its method did something else than answer."""


@final
class TriedPolicies:
    """The policies of a plan.

    Args:
        options: As `--policy` takes them.
        compared: Whether policies make only the decisions in which the second scheduler asks them too.

    Raises:
        LicorneError: A policy cannot be used, or none of several can be compared.
    """

    def __init__(self, options: Sequence[str], *, compared: bool = False) -> None:
        given = given_policies(options)
        self._facts = GivenPolicies(given).facts
        self._points = {name: facts.points for name, facts in self._facts.items()}
        if compared:
            self._points = {
                name: facts.points & _COMPARED
                for name, facts in self._facts.items()
                if facts.points & _COMPARED and facts.depends_on <= _OF_VIEWS
            }
        if given and not self._points:
            methods = ", ".join(sorted(point.value for point in _COMPARED))
            raise LicorneError(
                f"--engine reference: expected a policy with one of the methods {methods} "
                f"that depends on neither time nor outside, got {', '.join(given)}"
            )
        self.given = {name: given[name] for name in self._points}
        """The policies as they were given, by name."""
        self.factories = {
            name: partial(_AskedTwice, factory, self._points[name], partial(self._note, name))
            for name, factory in self.given.items()
        }
        self._answers: dict[tuple[str, ...], object] = {}
        """The last answers of filters and admissions: by policy, ask and node, or by application."""
        self._last: dict[tuple[str, PolicyPoint], Callable[[], None]] = {}
        """For each policy and method: asks the last question again, and compares the answers."""

    def _note(
        self, name: str, point: PolicyPoint, method: Callable[..., object], shown: Any, answer: object
    ) -> None:
        if self._facts[name].depends_on <= _OF_VIEWS:
            self._last[name, point] = partial(_compare, method, shown, answer)
        by_class = PolicyPoint.FILTER_CLASS in self._points[name]
        if point is PolicyPoint.FILTER and not by_class:  # Otherwise an answer about another ask may count.
            self._answers[name, shown[0].allocation_key, shown[1].node_id] = answer
        elif point is PolicyPoint.ADMISSION:
            self._answers[name, shown[0].application_id] = answer

    def check(self, running: Iterable[Task]) -> None:
        """Check that the policies were obeyed: refused tasks do not run; and that their last answers hold.

        Raises:
            RecordError: A task runs that a policy has refused.
            ImpureAnswerError: A policy answers the same question otherwise than before the last step.
        """
        for ask_again in [*self._last.values()]:  # Other threads may ask as well.
            ask_again()
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
        document["partitions"] = [*map(self.named_below, document["partitions"])]
        return Configuration(json.dumps(document, indent=1), configuration.leaves)

    def named_below(self, partition: dict[str, Any]) -> dict[str, Any]:
        """Return the document of a partition that names each policy at every decision."""
        named = deepcopy(partition)
        for name, points in self._points.items():
            _name_in(named, name, points)
        return named


def _name_in(partition: dict[str, Any], name: str, points: Collection[PolicyPoint]) -> None:
    """Name a policy in a partition at every decision."""
    word = POLICY_PREFIX + name
    for point in PolicyPoint:
        if point not in points or point in _UNNAMED:
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
    """A policy that is asked each question twice; it has only the methods of the policy at some points."""

    def __init__(
        self, factory: Callable[[], object], points: Collection[PolicyPoint], note: Callable[..., None]
    ) -> None:
        policy = factory()
        for name in ("depends_on", "every_ns"):
            if hasattr(policy, name):
                setattr(self, name, getattr(policy, name))
        for point in points:
            method = getattr(policy, point.value)
            setattr(self, point.value, partial(_same_answer, method, partial(note, point, method)))


def _same_answer(
    method: Callable[..., object], note: Callable[[tuple[object, ...], object], None], *args: object
) -> object:
    forks, began = len(_FORKS), time.monotonic()
    first = method(*args)
    if len(_FORKS) != forks:
        raise ImpureAnswerError("it has forked the process")
    seconds = time.monotonic() - began
    if seconds > _SLOW_SECONDS:
        raise ImpureAnswerError(f"it took {seconds:.0f} s for an answer: it waits for something")
    _compare(method, args, first)
    note(args, first)
    return first


def _compare(method: Callable[..., object], args: tuple[object, ...], first: object) -> None:
    """Ask a question again with copies of the views.

    Raises:
        ImpureAnswerError: The answer is another one.
    """
    second = method(*map(_copied, args))
    if repr(first) != repr(second):
        shown = f"{first!r:.{_SHOWN_MAX}}, then {second!r:.{_SHOWN_MAX}}"
        raise ImpureAnswerError(f"the same question was answered by {shown}")


def _copied(value: Any) -> Any:
    """Return an equal value that is another object, also in the fields of a view."""
    if isinstance(value, Resource):
        return Resource(dict(value.items()))
    if isinstance(value, tuple):
        fields = [_copied(field) for field in value]
        return value._make(fields) if hasattr(value, "_make") else tuple(fields)
    return MappingProxyType(dict(value)) if isinstance(value, Mapping) else value
