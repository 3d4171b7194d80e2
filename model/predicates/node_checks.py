"""The RM's predicates as a partition uses them, whether they answer at once or later.

A check of predicates that answer later may be pending. Pending is not a refusal: the cycle passes over the
ask, which changes nothing, and continues with the next one (`licorne.model.predicates.deferred_checks`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import Enum
from typing import Final, NamedTuple, Protocol, final

from ..nodes.class_orders import OrderedNodes
from ..nodes.entry import NodeEntry
from ..nodes.windows import KeepingWindows
from ..resources.resource import Resource
from ..values.allocation import Ask
from ..values.messages import NumberedQuestion, PredicateAnswer

QUESTIONS_MAX: Final = 128
"""How many questions of a partition are open at most."""


class Pending(Enum):
    """The result of a check while the RM has not answered."""

    PENDING = "the RM has not answered yet"


class NodeSearch(NamedTuple):
    """The result of a search for a node that the RM allows."""

    node: NodeEntry | None
    """The first node in order that is allowed; `None` if all are refused, or it is not known yet."""
    refusals: Mapping[str, int]
    """The reasons to be noted, in the order in which they came, and how many nodes were refused with each."""
    denied: str
    """Why the last refused node before the allowed one was refused; the empty text without one."""
    pending: bool = False
    for_class: bool = False
    """Whether it holds for all asks of the class, until the RM reports that its answers change."""
    keeping: KeepingWindows | None = None
    """The windows that have all nodes with room, if nothing else refuses one."""


NO_ROOM: Final = NodeSearch(None, {}, "")
PENDING_SEARCH: Final = NodeSearch(None, {}, "", pending=True)


class NodeChecks(Protocol):
    """The checks of nodes by the RM's predicates, of one partition."""

    @property
    def answers_later(self) -> bool:
        """Whether the RM is asked, and answers later; otherwise a check is a call."""

    @property
    def ends_cycle(self) -> bool:
        """Whether the cycle goes no further: too many questions are open, or no ask may overtake another."""

    @property
    def may_overtake(self) -> bool:
        """Whether an ask may be placed while the answer about one that goes before it is pending."""

    def begin(self, now_ns: int) -> None:
        """Begin a cycle: take the answers that have come."""

    def end(self, *, changed: bool) -> None:
        """End a cycle, and send its questions."""

    def keys_to_skip(self) -> Collection[str]:
        """Return the keys of asks that a cycle passes over; they may become more while it runs."""

    def first_allowed(self, ask: Ask, nodes: OrderedNodes, *, without: Collection[str] = ()) -> NodeSearch:
        """Search the usable nodes with room in order, except those with the ids `without`."""

    def refuse(self, ask: Ask, node_id: str, *, allocate: bool) -> str | Pending | None:
        """Return why a node is refused, `None` if it is not; `allocate` is false for a reservation.

        If that is pending and is to be known later, `ask_about` asks.
        """

    def ask_about(self, ask: Ask, node_ids: Sequence[str], *, allocate: bool) -> None:
        """Ask about nodes for which `refuse` returned that the answer is pending."""

    def preemption_index(
        self, ask: Ask, node_id: str, victim_keys: tuple[str, ...], start_index: int
    ) -> int | Pending | None:
        """Return the index of the last victim that must end, `None` if the node is refused; it asks."""

    def forget(
        self, *, keys: Iterable[str] = (), node_ids: Collection[str] = (), gone: Collection[str] = ()
    ) -> None:
        """Drop what is known of asks that are gone, come again or have changed, and of nodes.

        Args:
            keys: The keys of the asks.
            node_ids: Nodes that come, perhaps again.
            gone: Nodes that go: what is known of them for classes of asks would stay for ever.
        """

    def reconsider(
        self, *, keys: Collection[str], node_ids: Collection[str], classes: Collection[str]
    ) -> None:
        """Drop the RM's answers about asks, nodes and classes; by default all of them."""

    def next_due_ns(self) -> int | None:
        """Return when the first open question has been open for too long, `None` without an open one."""


def refuse_or_ask(checks: NodeChecks, ask: Ask, node_id: str, *, allocate: bool) -> str | Pending | None:
    """Return why a node is refused, `None` if it is not; if that is pending, the RM is asked."""
    reason = checks.refuse(ask, node_id, allocate=allocate)
    if isinstance(reason, Pending):
        checks.ask_about(ask, (node_id,), allocate=allocate)
    return reason


CLASSES_MAX: Final = 4_096
"""For how many classes answers are kept; those of the first one are dropped to take in another one."""
_SEARCHES_MAX: Final = 256
"""For how many sizes of one class searches are kept."""


@final
class _ClassAnswers:
    """The immediate answers of predicates about one class of asks."""

    __slots__ = ("reasons", "searches")

    def __init__(self) -> None:
        self.reasons: dict[tuple[str, bool], str | None] = {}
        """Why a node is refused, `None` if it is not: for a placement, and for a reservation."""
        self.searches: dict[Resource, tuple[int, NodeSearch]] = {}
        """The searches that found every node refused, with the gains of the node order at that time."""

    def forget(self, node_ids: Collection[str]) -> None:
        """Drop the answers about nodes."""
        self.reasons = {key: reason for key, reason in self.reasons.items() if key[0] not in node_ids}
        self.searches.clear()


@final
class ImmediateChecks:
    """Checks by predicates that answer at once: each is one call, made when the answer is needed."""

    answers_later: Final = False
    ends_cycle: Final = False
    may_overtake: Final = True

    def __init__(self, predicates: Predicates) -> None:
        self._predicates = predicates
        self._by_class: dict[str, _ClassAnswers] = {}

    def begin(self, now_ns: int) -> None:
        """Do nothing: nothing is kept."""

    def end(self, *, changed: bool) -> None:
        """Do nothing: nothing is sent later."""

    def keys_to_skip(self) -> Collection[str]:
        """Return no keys: no answer is pending."""
        return ()

    def first_allowed(self, ask: Ask, nodes: OrderedNodes, *, without: Collection[str] = ()) -> NodeSearch:
        """Ask about one node after the other until one is allowed."""
        answers = self._answers_for(ask.predicate_class)
        if answers is not None:
            gains, search = answers.searches.get(ask.resource, (-1, PENDING_SEARCH))
            if gains == nodes.gains:
                return search
        refusals: dict[str, int] = {}
        denied = ""
        for node in nodes.fitting(ask.resource):
            if node.node_id in without:
                continue
            reason = self.refuse(ask, node.node_id, allocate=True)
            if reason is None:
                return NodeSearch(node, refusals, denied)
            refusals[reason] = refusals.get(reason, 0) + 1
            denied = reason
        search = NodeSearch(None, refusals, denied, for_class=answers is not None)
        if answers is not None and not without:
            if len(answers.searches) >= _SEARCHES_MAX:
                answers.searches.clear()
            answers.searches[ask.resource] = nodes.gains, search
        return search

    def _answers_for(self, name: str) -> _ClassAnswers | None:
        if not name:
            return None
        answers = self._by_class.get(name)
        if answers is None:
            if len(self._by_class) >= CLASSES_MAX:
                del self._by_class[next(iter(self._by_class))]
            answers = self._by_class[name] = _ClassAnswers()
        return answers

    def refuse(self, ask: Ask, node_id: str, *, allocate: bool) -> str | None:
        """Ask about one node, unless the answer for the class of the ask is known."""
        answers = self._answers_for(ask.predicate_class)
        if answers is None:
            return self._predicates.refuse(ask.allocation_key, node_id, allocate=allocate)
        if (node_id, allocate) not in answers.reasons:
            reason = self._predicates.refuse(ask.allocation_key, node_id, allocate=allocate)
            answers.reasons[node_id, allocate] = reason
        return answers.reasons[node_id, allocate]

    def ask_about(self, ask: Ask, node_ids: Sequence[str], *, allocate: bool) -> None:
        """Raise: no answer is pending.

        Raises:
            AssertionError: always.
        """
        raise AssertionError(f"the answers for {ask} on {node_ids} ({allocate=}) came at once: please report")

    def preemption_index(
        self, ask: Ask, node_id: str, victim_keys: tuple[str, ...], start_index: int
    ) -> int | Pending | None:
        """Ask about the victims on one node."""
        return self._predicates.preemption_index(ask.allocation_key, node_id, victim_keys, start_index)

    def forget(
        self,
        *,
        keys: Iterable[str] = (),  # noqa: ARG002 - nothing is kept about single asks
        node_ids: Collection[str] = (),
        gone: Collection[str] = (),
    ) -> None:
        """Drop what is known of nodes."""
        if node_ids or gone:
            for answers in self._by_class.values():
                answers.forget({*node_ids, *gone})

    def reconsider(
        self, *, keys: Collection[str], node_ids: Collection[str], classes: Collection[str]
    ) -> None:
        """Drop what the RM has answered about nodes and classes; nothing is kept about single asks."""
        if not (keys or node_ids or classes):
            self._by_class.clear()
        self.forget(node_ids=node_ids)
        for name in classes:
            self._by_class.pop(name, None)

    def next_due_ns(self) -> int | None:
        """Return `None`: no question is open."""
        return None


class Predicates(Protocol):
    """The RM's decision whether an ask may run on a node."""

    def refuse(self, allocation_key: str, node_id: str, *, allocate: bool) -> str | None:
        """Return why the node is refused, `None` if it is not. `allocate` is false for a reservation."""

    def preemption_index(
        self,
        allocation_key: str,
        node_id: str,
        victim_keys: tuple[str, ...],
        start_index: int,
    ) -> int | None:
        """Return the index of the last victim that must end for the ask to run there, or `None`."""


class QuestionChannel(Protocol):
    """The way to predicates that are answered later: neither method waits.

    It is all that a partition learns of the RM's answers. The result of `take` decides the actions of a
    cycle, so a record of it is enough to repeat the cycle.
    """

    def ask(self, questions: Sequence[NumberedQuestion]) -> None:
        """Send questions to the RM, in order; called at the end of a cycle."""

    def take(self) -> Sequence[PredicateAnswer]:
        """Return the answers that have come since the last call; called at the start of each cycle.

        After an answer has come, the partition must get a `RetryAsks`, unless its caller steps it.
        """


def many_questions() -> int:
    """Return how many questions may be open where an ask may be placed while earlier ones are pending."""
    return QUESTIONS_MAX


def one_question() -> int:
    """Return how many questions may be open where asks are placed in their order."""
    return 1


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


class WrappedChecks:
    """Checks of a partition by others, to which what extends this adds something.

    Args:
        checks: The checks by the RM's predicates, `None` if it takes every node.
    """

    def __init__(self, checks: NodeChecks | None) -> None:
        self._inner: Final = checks or ImmediateChecks(_AllNodes())

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
        """Begin a cycle."""
        self._inner.begin(now_ns)

    def end(self, *, changed: bool) -> None:
        """End a cycle."""
        self._inner.end(changed=changed)

    def keys_to_skip(self) -> Collection[str]:
        """Return the keys of asks that a cycle passes over."""
        return self._inner.keys_to_skip()

    def ask_about(self, ask: Ask, node_ids: Sequence[str], *, allocate: bool) -> None:
        """Ask the RM about nodes."""
        self._inner.ask_about(ask, node_ids, allocate=allocate)

    def forget(
        self, *, keys: Iterable[str] = (), node_ids: Collection[str] = (), gone: Collection[str] = ()
    ) -> None:
        """Drop what is known of asks and nodes that are gone, come again or have changed."""
        self._inner.forget(keys=keys, node_ids=node_ids, gone=gone)

    def reconsider(
        self, *, keys: Collection[str], node_ids: Collection[str], classes: Collection[str]
    ) -> None:
        """Drop what the RM has answered."""
        self._inner.reconsider(keys=keys, node_ids=node_ids, classes=classes)

    def next_due_ns(self) -> int | None:
        """Return when a question was open for too long, `None` without an open one."""
        return self._inner.next_due_ns()
