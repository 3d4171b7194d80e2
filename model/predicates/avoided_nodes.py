"""Nodes that asks avoid for a while, because the RM could not start them there.

While an ask avoids a node, the checks of its partition refuse that node for it, as the RM's predicates might.
All else follows from that: the ask is tried on other nodes, and again from time to time if none takes it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final, NamedTuple, final

from ..nodes.order import NodeOrder
from ..resources.resource import fits
from ..values.allocation import Ask
from .node_checks import ImmediateChecks, NodeChecks, NodeSearch, Pending

AVOIDANCE_NS: Final = 30_000_000_000
"""How long an ask avoids a node on which the RM could not start it."""


class _AllNodes:
    """The predicates of an RM that takes every node."""

    def refuse(self, allocation_key: str, node_id: str, *, allocate: bool) -> str | None:  # noqa: ARG002 - whatever is asked
        """Refuse nothing."""
        return None

    def preemption_index(
        self,
        allocation_key: str,  # noqa: ARG002 - whatever is asked
        node_id: str,  # noqa: ARG002
        victim_keys: tuple[str, ...],  # noqa: ARG002
        start_index: int,
    ) -> int | None:
        """Agree to the first victims that give the node room."""
        return start_index


class _Avoidance(NamedTuple):
    node_id: str
    until_ns: int


@final
class AvoidedNodes:
    """The checks of a partition in which asks avoid nodes.

    Args:
        checks: The checks by the RM's predicates, `None` if it takes every node.
    """

    def __init__(self, checks: NodeChecks | None) -> None:
        self.checks: Final = checks
        self._inner: Final = checks or ImmediateChecks(_AllNodes())
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
        """Whether no ask avoids a node any more."""
        return not self._by_key

    @property
    def answers_later(self) -> bool:
        """Whether the RM is asked, and answers later."""
        return self._inner.answers_later

    @property
    def ends_cycle(self) -> bool:
        """Whether the cycle goes no further, by the RM's predicates."""
        return self._inner.ends_cycle

    @property
    def may_overtake(self) -> bool:
        """Whether an ask may overtake another one whose answer is pending."""
        return self._inner.may_overtake

    def begin(self, now_ns: int) -> None:
        """Begin a cycle: drop what is over."""
        while self._by_key:
            oldest = next(iter(self._by_key))
            if now_ns < self._by_key[oldest].until_ns:
                break
            del self._by_key[oldest]
            self.ended += 1
        self._inner.begin(now_ns)

    def end(self, *, changed: bool) -> None:
        """End a cycle."""
        self._inner.end(changed=changed)

    def keys_to_skip(self) -> Collection[str]:
        """Return the keys of asks that a cycle passes over."""
        return self._inner.keys_to_skip()

    def first_allowed(self, ask: Ask, nodes: NodeOrder, *, without: Collection[str] = ()) -> NodeSearch:
        """Search without the node that the ask avoids."""
        avoided = self._node_of(ask.allocation_key)
        if avoided is not None:
            without = (*without, avoided)
        search = self._inner.first_allowed(ask, nodes, without=without)
        if avoided is None or search.node is not None or search.pending:
            return search
        node = nodes.get(avoided)
        if node is None or not fits(node.available, ask.resource):
            return search
        text = _text(avoided)
        return NodeSearch(None, {**search.refusals, text: 1}, search.denied or text)

    def refuse(self, ask: Ask, node_id: str, *, allocate: bool) -> str | Pending | None:
        """Return why a node is refused, `None` if it is not."""
        if node_id == self._node_of(ask.allocation_key):
            return _text(node_id)
        return self._inner.refuse(ask, node_id, allocate=allocate)

    def ask_about(self, ask: Ask, node_ids: Sequence[str], *, allocate: bool) -> None:
        """Ask the RM about nodes."""
        self._inner.ask_about(ask, node_ids, allocate=allocate)

    def preemption_index(
        self, allocation_key: str, node_id: str, victim_keys: tuple[str, ...], start_index: int
    ) -> int | Pending | None:
        """Return the index of the last victim that must end, `None` if the node is refused."""
        if node_id == self._node_of(allocation_key):
            return None
        return self._inner.preemption_index(allocation_key, node_id, victim_keys, start_index)

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

    def reconsider(
        self, *, keys: Collection[str], node_ids: Collection[str], classes: Collection[str]
    ) -> None:
        """Drop what the RM has answered; nodes are avoided as long as before."""
        self._inner.reconsider(keys=keys, node_ids=node_ids, classes=classes)

    def next_due_ns(self) -> int | None:
        """Return when an ask has avoided a node for long enough, or a question was open for too long."""
        due_ns = next((each.until_ns for each in self._by_key.values()), None)
        unanswered_ns = self._inner.next_due_ns()
        return min((each for each in (due_ns, unanswered_ns) if each is not None), default=None)

    def _node_of(self, allocation_key: str) -> str | None:
        avoidance = self._by_key.get(allocation_key)
        return None if avoidance is None else avoidance.node_id


def _text(node_id: str) -> str:
    return f"the resource manager could not start it on {node_id} a short time ago"
