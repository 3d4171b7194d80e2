"""The orders of the children of a queue, queues or applications: each with its word, key and sentence.

A further built-in order is a class here and its word in `licorne.model.configuration.policies`; an order of a
program is a `_ApplicationsByPolicy` or a `_QueuesByPolicy`. Keys are compared among the children of one queue
alone, and end with the id or the name: orders are total.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, final

from ..applications.life import walltime_of
from ..configuration.durations import short_duration_text
from ..configuration.policies import APPLICATION_ORDER_WORDS, QUEUE_ORDER_WORDS
from ..policies.interface import ApplicationView, SiblingView
from ..policies.policies import GuardedPolicy, Policies, by_word
from ..resources.comparisons import fair_share, shares
from ..resources.resource import EMPTY, Resource
from .application_entry import ApplicationEntry, EntryKey
from .order import ChildKey
from .users import user_place_of

if TYPE_CHECKING:
    from .queue import Queue


class ApplicationOrderRule(ABC):
    """How the applications of a leaf are ordered.

    Args:
        word: The word in the configuration.
        takes_turns: Users take turns by what they have used.
        takes_placeholders: A gang may announce placeholders: its members stay together.
        is_steady: A key seldom changes: to compare it costs less than to find its place again.
        policy: The policy of the program that decides.
    """

    def __init__(
        self,
        word: str,
        *,
        takes_turns: bool = False,
        takes_placeholders: bool = False,
        is_steady: bool = True,
        policy: GuardedPolicy | None = None,
    ) -> None:
        self.word = word
        self.takes_turns = takes_turns
        self.takes_placeholders = takes_placeholders
        self.is_steady = is_steady
        self.policy = policy

    @abstractmethod
    def key(self, entry: ApplicationEntry, leaf: Queue) -> EntryKey:
        """Return the place of an application, the smallest first."""

    @abstractmethod
    def sentence(self, leaf: Queue) -> str:
        """Return the rule in words, for explanations."""


@final
class _FirstCome(ApplicationOrderRule):
    """The earlier submission first."""

    def key(self, entry: ApplicationEntry, leaf: Queue) -> EntryKey:
        facts = entry.facts
        if leaf.settings.priority_sorting:
            return (-facts.max_priority, facts.submitted_at_ns, entry.application_id)
        return (facts.submitted_at_ns, -facts.max_priority, entry.application_id)

    def sentence(self, leaf: Queue) -> str:
        return _with_priority(leaf, "the earlier submission")


@final
class _SmallestShare(ApplicationOrderRule):
    """The smaller share of the queue's guarantee first."""

    def key(self, entry: ApplicationEntry, leaf: Queue) -> EntryKey:
        facts = entry.facts
        usage = _usage(facts.allocated, leaf.guaranteed)
        if leaf.settings.priority_sorting:
            return (-facts.max_priority, usage, facts.submitted_at_ns, entry.application_id)
        return (usage, -facts.max_priority, facts.submitted_at_ns, entry.application_id)

    def sentence(self, leaf: Queue) -> str:
        return _with_priority(leaf, "the smaller share of the queue's guarantee")


@final
class _UserTurns(ApplicationOrderRule):
    """The user first who has used less, then the earlier submission."""

    def key(self, entry: ApplicationEntry, leaf: Queue) -> EntryKey:
        facts = entry.facts
        priority = -facts.max_priority
        level = priority if leaf.settings.priority_sorting else 0
        return (level, user_place_of(entry), facts.submitted_at_ns, priority, entry.application_id)

    def sentence(self, leaf: Queue) -> str:
        half_life_ns = leaf.settings.fair_half_life_ns
        mean = "use by weight"
        if half_life_ns is not None:
            mean = f"mean use by weight, half-life {short_duration_text(half_life_ns)}"
        return _with_priority(leaf, f"the user with the smaller {mean}, then the earlier submission")


@final
class _ApplicationsByPolicy(ApplicationOrderRule):
    """The smaller key of a policy first, then the earlier submission."""

    def __init__(self, word: str, policy: GuardedPolicy) -> None:
        super().__init__(word, is_steady=policy.is_fixed, policy=policy)
        self._policy = policy

    def key(self, entry: ApplicationEntry, _: Queue) -> EntryKey:
        key = entry.policy_key
        if key is None or not self._policy.is_fixed:
            key = self._policy.application_key(view_of(entry))
        return (key, entry.facts.submitted_at_ns, entry.application_id)

    def sentence(self, _: Queue) -> str:
        return f"the smaller key of policy {self._policy.name}, then the earlier submission"


APPLICATION_ORDERS: Final[Mapping[str, ApplicationOrderRule]] = by_word(
    APPLICATION_ORDER_WORDS,
    _FirstCome("fifo", takes_placeholders=True),
    _SmallestShare("fair", is_steady=False),
    _UserTurns("users", takes_turns=True),
)
"""The built-in orders, by their words."""


def application_order(word: str, policies: Policies) -> ApplicationOrderRule:
    """Return the order that the settings of a leaf name.

    Args:
        word: One of ours, or a policy with its prefix; that there is one was checked with the configuration.
        policies: Those of the partition.
    """
    return policies.rule(word, APPLICATION_ORDERS, _ApplicationsByPolicy)


def view_of(entry: ApplicationEntry) -> ApplicationView:
    """Return what a policy is shown of an application."""
    facts = entry.facts
    return ApplicationView(
        entry.application_id,
        entry.queue.path,
        entry.user.name,
        entry.user.groups,
        entry.tags,
        facts.max_priority,
        facts.submitted_at_ns,
        facts.pending,
        facts.allocated,
        facts.gang_waits,
        walltime_of(entry.tags),
    )


def _with_priority(leaf: Queue, rule: str) -> str:
    if leaf.settings.priority_sorting:
        return f"the higher priority first, then {rule}"
    return f"{rule} first, then the higher priority"


def _usage(allocated: Resource, guaranteed: Resource | None) -> tuple[float, ...]:
    """Return the shares, largest first, without the zeros at the end: tuples then compare as shares do."""
    usage = shares(allocated, guaranteed)[::-1]
    while usage and not usage[-1]:
        usage = usage[:-1]
    return usage


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
