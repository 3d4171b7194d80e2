"""What a simulated resource manager knows of minimum run times: a second reading of its configuration.

It does not know in which queue the scheduler counts something. But whatever the queue is, nothing may be
preempted that has run for less than the smallest minimum run time of all queues.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Final, final

from ...si import si_pb2 as si
from .cluster_record import RecordError
from .preemption_effects import FOR_ASK

_RUNTIME: Final = "preemption.min-runtime"
_SCOPE: Final = "preemption.min-runtime.scope"


@final
class RuntimeFloor:
    """Checks that nothing is preempted before the smallest minimum run time of the configuration.

    Args:
        now_ns: The time of the scheduler, `None` where it goes on while callbacks are under way.
    """

    def __init__(self, now_ns: Callable[[], int | None]) -> None:
        self._now_ns = now_ns
        self._guarantee_ns = self._other_ns = 0
        self._placed_ns: dict[str, int] = {}
        """When what runs was placed, where that is known."""

    def registered(self, text: str) -> None:
        """Take a configuration, as `random_configuration` writes it; what runs is recovered with it."""
        self._placed_ns.clear()  # The scheduler counts from when it hears of them.
        self._guarantee_ns, self._other_ns = _floors(text)

    def configured(self, text: str) -> None:
        """Take another configuration: queues that it has lost, and dynamic ones, are as they were before."""
        guarantee_ns, other_ns = _floors(text)
        self._guarantee_ns = min(self._guarantee_ns, guarantee_ns)
        self._other_ns = min(self._other_ns, other_ns)

    def hear(self, response: si.AllocationResponse) -> None:
        """Note what is placed, and check what is preempted.

        Raises:
            RecordError: Something has not run long enough.
        """
        now_ns = self._now_ns()
        if now_ns is None:
            return
        self._placed_ns |= {allocation.allocationKey: now_ns for allocation in response.new}
        for release in response.released:
            key, message = release.allocationKey, release.message
            floor_ns = self._guarantee_ns if message.startswith(FOR_ASK) else self._other_ns
            ran_ns = now_ns - self._placed_ns.get(key, -floor_ns)
            if release.terminationType == si.PREEMPTED_BY_SCHEDULER and ran_ns < floor_ns:
                raise RecordError(f"{key} is preempted after {ran_ns} ns, and no queue allows it so soon")


def _floors(text: str) -> tuple[int, int]:
    """Return the smallest minimum run time for a guarantee, and for other kinds of preemption."""
    partitions = json.loads(text)["partitions"]
    leaves = [leaf for partition in partitions for leaf in _leaves(partition["queues"][0], {})]
    # A queue that is made where an application asks for it has no property but those of a template.
    leaves += [
        {} for partition in partitions for rule in partition.get("placementrules", ()) if _makes_any(rule)
    ]
    binding = [0 if leaf.get(_SCOPE) == "guarantee" else _runtime_ns(leaf) for leaf in leaves]
    return min(map(_runtime_ns, leaves), default=0), min(binding, default=0)


def _makes_any(rule: dict[str, Any]) -> bool:
    """Return whether a placement rule makes the queue that an application asks for, wherever it is."""
    return rule["name"] == "provided" and bool(rule.get("create"))


def _leaves(queue: dict[str, Any], above: dict[str, str]) -> Iterator[dict[str, str]]:
    """Walk the properties of all leaves, and of those that are made of templates."""
    properties = above | queue.get("properties", {})
    if queue.get("parent") and not queue.get("queues"):
        yield queue.get("childtemplate", {}).get("properties", {})
    elif not queue.get("queues"):
        yield properties
    for child in queue.get("queues", ()):
        yield from _leaves(child, properties)


def _runtime_ns(properties: dict[str, str]) -> int:
    return int(properties.get(_RUNTIME, "0s").removesuffix("s")) * 1_000_000_000
