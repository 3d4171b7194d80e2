"""The orders of sibling queues: each with its word, its key, and its sentence.

A further order of ours is a class here and its word in `licorne.model.configuration.policies`; one that a
program gives is asked by `_QueuesByPolicy`. Keys are compared among the children of one parent, and end with
the name: orders are total.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, final

from ..configuration.durations import short_duration_text
from ..configuration.policies import QUEUE_ORDER_WORDS
from ..policies.interface import SiblingView
from ..policies.policies import GuardedPolicy, Policies, by_word
from ..resources.comparisons import fair_share
from ..resources.resource import EMPTY, Resource
from .order import ChildKey

if TYPE_CHECKING:
    from .queue import Queue


class QueueOrderRule(ABC):
    """How the children of a queue are ordered.

    Args:
        word: What the configuration says.
        policy: The policy of the program that decides.
    """

    def __init__(self, word: str, policy: GuardedPolicy | None = None) -> None:
        self.word = word
        self.policy = policy

    @abstractmethod
    def key(
        self, child: Queue, fair_max: Resource | None, *, by_priority: bool, use: float = 0.0
    ) -> ChildKey:
        """Return the place of a child among its siblings, the smallest first."""

    @abstractmethod
    def sentence(self, parent: Queue) -> str:
        """Return the rule in words, for explanations."""


@final
class _Fair(QueueOrderRule):
    """With priorities the higher priority first, then the smaller fair share; without them the other way.

    Where the past or the weights of queues count, their use (`use_rank`) comes before the share. Then the
    queue with more waiting: of two pending resources where one is larger in every type its sum is larger as
    well, so the sum keeps that rule and orders all others too.
    """

    def key(
        self, child: Queue, fair_max: Resource | None, *, by_priority: bool, use: float = 0.0
    ) -> ChildKey:
        share = fair_share(child.allocated, child.guaranteed, fair_max)
        waiting = -sum(child.pending.values())
        priority = -child.exposed_priority
        if by_priority:
            return (priority, use, share, waiting, child.name)
        return (use, share, priority, waiting, child.name)

    def sentence(self, parent: Queue) -> str:
        rule = "the smaller share of the guarantee"
        half_life_ns = parent.settings.fair_half_life_ns
        beyond = "" if parent.settings.fair_count.counts_all else " above it"
        if half_life_ns is not None:
            half_life = f", half-life {short_duration_text(half_life_ns)}"
            rule = f"below the guarantee, then the smaller mean use{beyond} by weight{half_life}"
        elif parent.weighs_use:
            rule = f"below the guarantee, then the smaller use{beyond} by weight"
        if parent.settings.priority_sorting:
            return f"the higher priority first, then {rule}"
        return f"{rule} first, then the higher priority"


@final
class _QueuesByPolicy(QueueOrderRule):
    """The smaller key of a policy first, then the name."""

    def __init__(self, word: str, policy: GuardedPolicy) -> None:
        super().__init__(word, policy)
        self._policy = policy

    def key(self, child: Queue, _: Resource | None, *, by_priority: bool, use: float = 0.0) -> ChildKey:  # noqa: ARG002 - the policy decides alone
        shown = SiblingView(
            child.path,
            MappingProxyType(child.properties),
            child.allocated,
            child.pending,
            child.guaranteed or EMPTY,
            child.maximum,
            child.exposed_priority,
        )
        return (self._policy.queue_key(shown), child.name)

    def sentence(self, _: Queue) -> str:
        return f"the smaller key of policy {self._policy.name}, then the name"


QUEUE_ORDERS: Final[Mapping[str, QueueOrderRule]] = by_word(QUEUE_ORDER_WORDS, _Fair("fair"))
"""The built-in orders, by their words."""


def queue_order(word: str, policies: Policies) -> QueueOrderRule:
    """Return the order that the settings of a parent name.

    Args:
        word: One of ours, or a policy with its prefix; that there is one was checked with the configuration.
        policies: Those of the partition.
    """
    return policies.rule(word, QUEUE_ORDERS, _QueuesByPolicy)
