"""Nodes that policies refuse to asks: the filters that a partition's configuration names.

A filter is asked about an ask and a node as it is, before the RM's predicates are, wherever those are: by the
step that places an ask, for reservations, members of gangs, and nodes on which work would end. Only answers
about a class of asks are kept, until the node changes. An ask that is refused everywhere is tried again as
after a refusal by the RM, in each cycle that changes something, and after a second.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Final, NamedTuple, final

from ..applications.life import view_of_ask
from ..nodes.class_orders import OrderedNodes
from ..nodes.entry import NodeEntry
from ..nodes.order import NodeOrder
from ..policies.interface import AskView, NodeView
from ..policies.policies import GuardedPolicy, Policies, PolicyPoint
from ..values.allocation import Ask
from .node_checks import CLASSES_MAX, NodeChecks, NodeSearch, Pending, WrappedChecks

FILTER_RETRY_NS: Final = 1_000_000_000
"""After how long an ask that needs its node, which a filter refuses, may preempt there."""


@final
class FilteredNodes(WrappedChecks):
    """The checks of a partition whose program has given filters.

    Args:
        checks: The checks by the RM's predicates, `None` if it takes every node.
        nodes: The nodes of the partition.
        policies: The policies of the partition.
    """

    def __init__(self, checks: NodeChecks | None, nodes: NodeOrder, policies: Policies) -> None:
        super().__init__(checks)
        self._nodes = nodes
        self._policies = policies
        self._filters: Sequence[GuardedPolicy] = ()
        self._kept: dict[tuple[str, str], dict[str, _KeptAnswer]] = {}
        """By filter and class of asks, and by node."""

    def use(self, names: Sequence[str]) -> None:
        """Have the filters decide that a configuration names, in its order."""
        self._filters = [self._policies.by_name[name] for name in names]
        self._kept.clear()

    def first_allowed(self, ask: Ask, nodes: OrderedNodes, *, without: Collection[str] = ()) -> NodeSearch:
        """Search without the nodes that a filter refuses."""
        if not self._filters:
            return self._inner.first_allowed(ask, nodes, without=without)
        view = view_of_ask(ask)
        reasons: dict[str, str] = {}
        filtered: set[str] = {*without}
        for node in nodes.fitting(ask.resource):
            if node.node_id in without:
                continue
            reason: str | Pending | None = self._refusal_by_filter(view, node)
            if reason is not None:
                filtered.add(node.node_id)
            elif not self.answers_later:
                reason = self._inner.refuse(ask, node.node_id, allocate=True)
                if reason is None:
                    return _search(node, reasons)
            if isinstance(reason, str):
                reasons[node.node_id] = reason
        if self.answers_later:
            search = self._inner.first_allowed(ask, nodes, without=filtered)
            if search.node is not None or search.pending or not reasons:
                return search
            found = _search(None, reasons)
            refusals = Counter(found.refusals) + Counter(search.refusals)
            return NodeSearch(None, refusals, search.denied or found.denied)
        is_by_class = bool(ask.predicate_class) and len(filtered) == len(without)
        return _search(None, reasons)._replace(for_class=is_by_class)

    def refuse(self, ask: Ask, node_id: str, *, allocate: bool) -> str | Pending | None:
        """Return why a node is refused, `None` if it is not."""
        reason = self.refusal_by_filter(ask, self._nodes.get(node_id))
        return self._inner.refuse(ask, node_id, allocate=allocate) if reason is None else reason

    def preemption_index(
        self, ask: Ask, node_id: str, victim_keys: tuple[str, ...], start_index: int
    ) -> int | Pending | None:
        """Return the index of the last victim that must end, `None` if the node is refused."""
        if self.refusal_by_filter(ask, self._nodes.get(node_id)) is not None:
            return None
        return self._inner.preemption_index(ask, node_id, victim_keys, start_index)

    def refusal_by_filter(self, ask: Ask, node: NodeEntry | None) -> str | None:
        """Return why a filter refuses a node, `None` if all accept it, or it does not exist."""
        if node is None or not self._filters:
            return None
        return self._refusal_by_filter(view_of_ask(ask), node)

    def _refusal_by_filter(self, ask: AskView, node: NodeEntry) -> str | None:
        shown = NodeView(node.node_id, node.attributes, node.capacity, node.available)
        for policy in self._filters:
            name = policy.filter_class(ask) if PolicyPoint.FILTER_CLASS in policy.points else ""
            reason = self._answer_for(policy, name, ask, shown) if name else policy.refuses(ask, shown)
            if reason is not None:
                return f"policy {policy.name}: {reason}"
        return None

    def _answer_for(self, policy: GuardedPolicy, name: str, ask: AskView, shown: NodeView) -> str | None:
        """Return the answer about a class and a node: the last one, unless the node has changed."""
        answers = self._kept.get((policy.name, name))
        if answers is None:
            if len(self._kept) >= CLASSES_MAX:
                del self._kept[next(iter(self._kept))]
            answers = self._kept[policy.name, name] = {}
        kept = answers.get(shown.node_id)
        if kept is None or not kept.is_about(shown):
            kept = answers[shown.node_id] = _KeptAnswer(policy.refuses(ask, shown), shown)
        return kept.reason


class _KeptAnswer(NamedTuple):
    """An answer of a filter about a class of asks and a node."""

    reason: str | None
    node: NodeView

    def is_about(self, node: NodeView) -> bool:
        """Return whether the filter was shown the same node."""
        before = self.node
        same_room = node.available is before.available and node.capacity is before.capacity
        return same_room and node.attributes is before.attributes


def _search(node: NodeEntry | None, reasons: dict[str, str]) -> NodeSearch:
    """Return the result of a search with the reasons of the nodes that were refused, in order."""
    return NodeSearch(node, Counter(reasons.values()), next(reversed(reasons.values()), ""))
