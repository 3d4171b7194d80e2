"""Policies for the simulator: some that are right, and some each of which is wrong in another way."""

from __future__ import annotations

from itertools import count
from typing import Any

from licorne import policies

_SECOND = 1_000_000_000


class Packing:
    """The node with the least memory left."""

    def node_key(self, node: policies.NodeView) -> float:
        return node.available.get("memory")


class Least:
    """The application that has least, and of these the one that came last."""

    def application_key(self, application: policies.ApplicationView) -> tuple[int, int]:
        return application.allocated.get("memory"), -application.submitted_at_ns


class Apart:
    """A third of all pairs of an ask and a node do not go together."""

    def refuses(self, ask: policies.AskView, node: policies.NodeView) -> str | None:
        number = sum(map(ord, ask.allocation_key + node.node_id)) % 3
        return None if number else "they do not go together"


class Fewest:
    """The queue that has least, and of these the one with the longest path."""

    def queue_key(self, queue: policies.SiblingView) -> tuple[int, int]:
        return queue.allocated.get("memory"), -len(queue.path)


class Oldest:
    """What runs longest ends first, and nothing in its first five seconds."""

    def victim_cost(self, victim: policies.VictimView, _: int) -> int:
        return victim.bound_at_ns

    def spares(self, victim: policies.VictimView, now_ns: int) -> policies.Wait | None:
        until_ns = victim.bound_at_ns + 5 * _SECOND
        return policies.Wait("it has just begun", until_ns) if now_ns < until_ns else None


class Later:
    """Half a minute after the submission, and it says so."""

    def may_start(self, application: policies.ApplicationView, now_ns: int) -> policies.Wait | None:
        start_ns = application.submitted_at_ns + 30 * _SECOND
        return None if now_ns >= start_ns else policies.Wait("not yet", start_ns)


class Liar(Later):
    """The same, but it does not say when: it is not asked again."""

    def may_start(self, application: policies.ApplicationView, now_ns: int) -> policies.Wait | None:
        held = super().may_start(application, now_ns)
        return None if held is None else policies.Wait(held.reason)


class Broken:
    """It raises for every third application, and has no number for others."""

    def application_key(self, application: policies.ApplicationView) -> Any:
        number = sum(map(ord, application.application_id)) % 3
        if number == 0:
            raise RuntimeError("a bug")
        return float("nan") if number == 1 else 1.0


class Impure:
    """Its answers depend on how often it was asked."""

    def __init__(self) -> None:
        self._numbers = count()

    def node_key(self, _: policies.NodeView) -> float:
        return next(self._numbers)
