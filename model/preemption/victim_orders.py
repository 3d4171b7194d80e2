"""The orders of victims: each with its word in the configuration, and its measure.

They decide between possible victims with equal priority, willingness and gangs. A further built-in order is a
class here and its word in `licorne.model.configuration.policies`; `_VictimsByPolicy` asks the policy of a
program.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Final, final

from ..configuration.policies import VICTIM_ORDER_WORDS
from ..policies.policies import GuardedPolicy, by_word
from ..resources.resource import EMPTY
from ..state.partition_state import PartitionState
from .losses import VictimMeasure, WorkLost
from .victims import Victim, view_of_victim


class VictimOrderRule(ABC):
    """A rule for which of equal possible victims end first.

    Args:
        word: The word in the configuration.
    """

    def __init__(self, word: str) -> None:
        self.word = word

    @abstractmethod
    def measure(self, state: PartitionState) -> VictimMeasure | None:
        """Return the measure of victims now, `None` if the youngest end first."""


@final
class _Youngest(VictimOrderRule):
    """The youngest ask ends first."""

    def measure(self, _: PartitionState) -> VictimMeasure | None:
        return None


@final
class _LeastWork(VictimOrderRule):
    """The victim with the least lost work ends first."""

    def measure(self, state: PartitionState) -> VictimMeasure | None:
        return WorkLost(state.tree.root.maximum or EMPTY, state.now_ns())


@final
class _CostByPolicy(VictimMeasure):
    """The victim with the lowest cost by a policy ends first."""

    def __init__(self, policy: GuardedPolicy, now_ns: int) -> None:
        self._policy = policy
        self._now_ns = now_ns

    def measured(self, victim: Victim) -> Victim:
        cost = self._policy.victim_cost(view_of_victim(victim), self._now_ns)
        return victim._replace(lost=cost, policy=self._policy.name)


@final
class _VictimsByPolicy(VictimOrderRule):
    """The smaller cost by a policy first."""

    def __init__(self, word: str, policy: GuardedPolicy) -> None:
        super().__init__(word)
        self._policy = policy

    def measure(self, state: PartitionState) -> VictimMeasure:
        return _CostByPolicy(self._policy, state.now_ns())


VICTIM_ORDERS: Final[Mapping[str, VictimOrderRule]] = by_word(
    VICTIM_ORDER_WORDS, _Youngest("youngest"), _LeastWork("least-work")
)
"""The built-in orders, by their words."""


def measure_in(state: PartitionState) -> VictimMeasure | None:
    """Return the measure of victims now by the order of a partition, `None` if the youngest end first."""
    word = state.config.preemption.victims_word
    return state.host.policies.rule(word, VICTIM_ORDERS, _VictimsByPolicy).measure(state)
