"""Policies for the simulator: some are right, and each of the others is wrong in a different way."""

from __future__ import annotations

from itertools import count
from typing import Any

from licorne import policies

_SECOND = 1_000_000_000


class Packing:
    """Chooses the node with the least memory left."""

    def node_key(self, node: policies.NodeView) -> float:
        return node.available.get("memory")


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


class Oldest:
    """Ends the oldest tasks first, but spares each for its first five seconds."""

    def victim_cost(self, victim: policies.VictimView, _: int) -> int:
        return victim.bound_at_ns

    def spares(self, victim: policies.VictimView, now_ns: int) -> policies.Wait | None:
        until_ns = victim.bound_at_ns + 5 * _SECOND
        return policies.Wait("it has just begun", until_ns) if now_ns < until_ns else None


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


class Impure:
    """Its answers depend on the number of questions."""

    def __init__(self) -> None:
        self._numbers = count()

    def node_key(self, _: policies.NodeView) -> float:
        return next(self._numbers)
