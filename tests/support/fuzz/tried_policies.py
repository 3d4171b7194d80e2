"""Policies for the simulator: some are right, and each of the others is wrong in a different way."""

from __future__ import annotations

import os
import time
from itertools import count
from typing import Any

from licorne import policies

_SECOND = 1_000_000_000


class Packing:
    """Chooses the node with the least memory left."""

    def node_key(self, node: policies.NodeView) -> float:
        return node.available.get("memory")


class Zoned(Packing):
    """Asks of each remainder of their memory prefer other nodes."""

    def ask_class(self, ask: policies.AskView) -> str:
        return str(ask.resource.get("memory") % 3 or "")

    def node_key_for(self, ask_class: str, node: policies.NodeView) -> float:
        return (len(node.node_id) + int(ask_class)) % 2 * 10**9 - node.available.get("memory")

    def class_version(self, ask_class: str) -> str:
        return ask_class

    def placed(self, ask: policies.AskView, node_id: str) -> None:
        """Count nothing."""


class Sized:
    """Refuses small nodes to large asks, once for all of them."""

    def filter_class(self, ask: policies.AskView) -> str:
        return "large" if ask.resource.get("memory") > 2 else ""

    def refuses(self, ask: policies.AskView, node: policies.NodeView) -> str | None:
        is_small = node.capacity.get("memory") < 10
        return "the node is small" if is_small and self.filter_class(ask) else None


class Least:
    """Chooses the application with the least memory; among equals the last one submitted."""

    def application_key(self, application: policies.ApplicationView) -> tuple[int, int]:
        return application.allocated.get("memory"), -application.submitted_at_ns


class Apart:
    """Refuses a third of all pairs of an ask and a node."""

    def refuses(self, ask: policies.AskView, node: policies.NodeView) -> str | None:
        number = sum(map(ord, ask.allocation_key + node.node_id)) % 3
        return None if number else "they do not go together"


class Fewest:
    """Chooses the queue with the least memory; among equals the one with the longest path."""

    def queue_key(self, queue: policies.SiblingView) -> tuple[int, int]:
        return queue.allocated.get("memory"), -len(queue.path)


class Guess:
    """Expects half of the walltime, and 20 seconds without one."""

    def expected_run_time_ns(self, ask: policies.AskView, application: policies.ApplicationView) -> int:
        return max(1, (ask.walltime_ns or application.walltime_ns or 40 * _SECOND) // 2)


class Widest:
    """Chooses the job with the most memory behind promises, which applications with even numbers get."""

    def backfill_key(self, job: policies.JobView) -> int:
        return -sum(size.get("memory") for size in job.sizes)

    def promises(self, job: policies.JobView) -> bool:
        return sum(map(ord, job.application.application_id)) % 2 == 0


class Oldest:
    """Ends the oldest tasks first, but spares each for its first five seconds."""

    def victim_cost(self, victim: policies.VictimView, _: int) -> int:
        return victim.bound_at_ns

    def spares(self, victim: policies.VictimView, now_ns: int) -> policies.Wait | None:
        until_ns = victim.bound_at_ns + 5 * _SECOND
        return policies.Wait("it has just begun", until_ns) if now_ns < until_ns else None


class Aged:
    """Moves applications ahead while they wait."""

    depends_on = frozenset({"time"})
    every_ns = _SECOND

    def application_key(self, application: policies.ApplicationView) -> float:
        return application.submitted_at_ns % 7


class First:
    """Chooses the application of the user with the last name; asked once about each."""

    depends_on = frozenset({"submission"})

    def application_key(self, application: policies.ApplicationView) -> tuple[int, int]:
        return -ord(application.user[0]), application.submitted_at_ns


class Later:
    """Starts applications half a minute after the submission, and returns that time."""

    def may_start(self, application: policies.ApplicationView, now_ns: int) -> policies.Wait | None:
        start_ns = application.submitted_at_ns + 30 * _SECOND
        return None if now_ns >= start_ns else policies.Wait("not yet", start_ns)


class Liar(Later):
    """Starts applications at the same time, but does not return it: it is not asked again."""

    def may_start(self, application: policies.ApplicationView, now_ns: int) -> policies.Wait | None:
        held = super().may_start(application, now_ns)
        return None if held is None else policies.Wait(held.reason)


class Broken:
    """Raises for every third application, and returns no number for others."""

    def application_key(self, application: policies.ApplicationView) -> Any:
        number = sum(map(ord, application.application_id)) % 3
        if number == 0:
            raise RuntimeError("a bug")
        return float("nan") if number == 1 else 1.0


class Nowhere:
    """Has no place for a node."""

    def node_key(self, _: policies.NodeView) -> Any:
        return None


class Hidden:
    """Its answers depend on a state that changes with every hundredth question."""

    def __init__(self) -> None:
        self._numbers = count()

    def node_key(self, node: policies.NodeView) -> float:
        sign = 1 if next(self._numbers) // 100 % 2 else -1
        return sign * node.available.get("memory")


class Identity:
    """Its answers depend on the places of objects in memory."""

    def queue_key(self, queue: policies.SiblingView) -> int:
        return id(queue) % 1000


class Timely:
    """Its answers depend on the time, and it does not state that."""

    def application_key(self, application: policies.ApplicationView) -> float:
        is_odd = time.monotonic_ns() // 1_000_000 % 2 == 1
        return float(application.submitted_at_ns) if is_odd else 0.0


class Mutating:
    """Changes what it is shown."""

    def application_key(self, application: policies.ApplicationView) -> float:
        application.tags["seen"] = "yes"  # type: ignore[index]
        return 0


class Forking:
    """Forks the process."""

    def node_key(self, node: policies.NodeView) -> float:
        child = os.fork()
        if not child:
            os._exit(0)
        os.waitpid(child, 0)
        return node.available.get("memory")


class Shapes:
    """Its keys have another shape for every third application."""

    def application_key(self, application: policies.ApplicationView) -> Any:
        return (1, "a") if sum(map(ord, application.application_id)) % 3 else 1


class Unequal(float):
    """A number that equals nothing."""

    __hash__ = float.__hash__

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("compared")


class Comparing:
    """Answers with numbers that cannot be compared, and with texts that are none."""

    def queue_key(self, queue: policies.SiblingView) -> Any:
        return Unequal(1.0), type("Text", (str,), {})(queue.path)


class Unwilling:
    """Promises a start at every second question."""

    def __init__(self) -> None:
        self._numbers = count()

    def promises(self, _: policies.JobView) -> bool:
        return bool(next(self._numbers) // 2 % 2)


class Impure:
    """Its answers depend on the number of questions."""

    def __init__(self) -> None:
        self._numbers = count()

    def node_key(self, _: policies.NodeView) -> float:
        return next(self._numbers)
