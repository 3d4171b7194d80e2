"""Nodes that asks may not get, whatever the RM's predicates say; the checks of the partition refuse them.

An ask avoids the node on which the RM could not start it, for a while. An ask of a gang that needs one domain
of nodes gets only nodes of the domain where the rest of the gang runs. An ask that would run into a window
does not get its nodes. All else follows from the refusals: the ask is tried on other nodes, and again from
time to time if none takes it; after windows when one of them ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from typing import Final, NamedTuple, final

from ..nodes.class_orders import OrderedNodes
from ..nodes.topology import KeptDomain
from ..nodes.windows import WindowRefusal, Windows
from ..resources.resource import fits
from ..values.allocation import Ask
from .node_checks import NodeChecks, NodeSearch, Pending, WrappedChecks

AVOIDANCE_NS: Final = 30_000_000_000
"""How long an ask avoids a node on which the RM could not start it."""


def _any_domain(_: Ask) -> None:
    """Allow an ask all nodes."""


def _no_refusal(_: Ask) -> WindowRefusal | None:
    """Refuse an ask no node."""
    return None


class _Avoidance(NamedTuple):
    node_id: str
    until_ns: int


@final
class AvoidedNodes(WrappedChecks):
    """The checks of a partition in which asks may not get some nodes; all avoid a node as long.

    Args:
        checks: The checks of the partition otherwise, `None` if every node is taken.
    """

    def __init__(self, checks: NodeChecks | None) -> None:
        super().__init__(checks)
        self.checks: Final = checks
        self.domain_of: Callable[[Ask], KeptDomain | None] = _any_domain
        """Returns the domain of nodes that an ask must have, `None` if it may have any."""
        self.windows = Windows()
        self.window_refusal: Callable[[Ask], WindowRefusal | None] = _no_refusal
        """Returns the windows that keep an ask from nodes now."""
        self._by_key: dict[str, _Avoidance] = {}
        """By the key of the ask; those that end first come first, since all last as long."""
        self.ended = 0
        """How many asks have avoided a node for long enough."""

    def avoid(self, allocation_key: str, node_id: str, now_ns: int) -> None:
        """Have an ask avoid a node from now on."""
        self._by_key.pop(allocation_key, None)
        self._by_key[allocation_key] = _Avoidance(node_id, now_ns + AVOIDANCE_NS)

    @property
    def are_none(self) -> bool:
        """Whether asks may have all nodes."""
        return not self._by_key and self.domain_of is _any_domain and not self.windows.all

    def begin(self, now_ns: int) -> None:
        """Begin a cycle: drop what is over."""
        while self._by_key:
            oldest = next(iter(self._by_key))
            if now_ns < self._by_key[oldest].until_ns:
                break
            del self._by_key[oldest]
            self.ended += 1
        self.ended += self.windows.has_ended(now_ns)
        self._inner.begin(now_ns)

    def first_allowed(self, ask: Ask, nodes: OrderedNodes, *, without: Collection[str] = ()) -> NodeSearch:
        """Search without the nodes that the ask may not get."""
        avoided, refusal = self._refused(ask, nodes), self.window_refusal(ask)
        if not avoided and refusal is None:
            return self._inner.first_allowed(ask, nodes, without=without)
        reserved = () if refusal is None else refusal.node_ids
        search = self._inner.first_allowed(ask, nodes, without={*without, *avoided, *reserved})
        if search.node is not None or search.pending:
            return search
        keeping = None if refusal is None else refusal.on(nodes.fitting(ask.resource))
        is_alone = keeping is not None and not avoided and not search.refusals
        texts = Counter(avoided.values())
        texts.update({} if keeping is None else {text: len(ids) for text, ids in keeping.by_text.items()})
        if not texts:
            return search
        denied = search.denied or next(iter(texts))
        return NodeSearch(None, {**search.refusals, **texts}, denied, keeping=keeping if is_alone else None)

    def _refused(self, ask: Ask, nodes: OrderedNodes) -> dict[str, str]:
        """Return the nodes with room that an ask may not get, each with the reason."""
        avoided = self._node_of(ask.allocation_key)
        domain = self.domain_of(ask)
        if domain is not None:
            fitting = [node.node_id for node in nodes.fitting(ask.resource)]
            refused = {node_id: domain.text for node_id in fitting if not domain.has(node_id)}
        else:
            refused = {}
        node = None if avoided is None else nodes.get(avoided)
        if node is not None and fits(node.available, ask.resource):
            refused[node.node_id] = _text(node.node_id)
        return refused

    def refuse(self, ask: Ask, node_id: str, *, allocate: bool) -> str | Pending | None:
        """Return why a node is refused, `None` if it is not."""
        return self._reason(ask, node_id) or self._inner.refuse(ask, node_id, allocate=allocate)

    def _reason(self, ask: Ask, node_id: str) -> str:
        if node_id == self._node_of(ask.allocation_key):
            return _text(node_id)
        domain = self.domain_of(ask)
        if domain is not None and not domain.has(node_id):
            return domain.text
        refusal = self.window_refusal(ask)
        return "" if refusal is None else refusal.text_for(node_id)

    def preemption_index(
        self, ask: Ask, node_id: str, victim_keys: tuple[str, ...], start_index: int
    ) -> int | Pending | None:
        """Return the index of the last victim that must end, `None` if the node is refused."""
        if self._reason(ask, node_id):
            return None
        return self._inner.preemption_index(ask, node_id, victim_keys, start_index)

    def forget(
        self, *, keys: Iterable[str] = (), node_ids: Collection[str] = (), gone: Collection[str] = ()
    ) -> None:
        """Drop what is known of asks and nodes that are gone, come again or have changed."""
        keys = [*keys]
        for key in keys:
            self._by_key.pop(key, None)
        if node_ids or gone:
            changed = {*node_ids, *gone}
            self._by_key = {key: each for key, each in self._by_key.items() if each.node_id not in changed}
        self._inner.forget(keys=keys, node_ids=node_ids, gone=gone)

    def next_due_ns(self) -> int | None:
        """Return when an ask has avoided a node for long enough, a window ends, or an answer is overdue."""
        due_ns = next((each.until_ns for each in self._by_key.values()), None)
        moments = due_ns, self.windows.due_ns, self._inner.next_due_ns()
        return min((each for each in moments if each is not None), default=None)

    def _node_of(self, allocation_key: str) -> str | None:
        avoidance = self._by_key.get(allocation_key)
        return None if avoidance is None else avoidance.node_id


def _text(node_id: str) -> str:
    return f"the resource manager could not start it on {node_id} a short time ago"
