"""Questions to the predicates of a resource manager (RM) that answers them later, and its answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class PredicateQuestion:
    """May an ask run on these nodes?"""

    allocation_key: str
    node_ids: tuple[str, ...]
    """In the order in which the scheduler prefers them; questions of one batch may share one tuple."""
    allocate: bool
    """False for a reservation or for replacing a placeholder, where a node has no room yet."""


@dataclass(frozen=True, slots=True)
class PreemptionQuestion:
    """Up to which of these victims must allocations end before an ask may run on a node?"""

    allocation_key: str
    node_id: str
    victim_keys: tuple[str, ...]
    start_index: int
    """The index of the last victim without which the node has no room; those up to it end in any case."""


@dataclass(frozen=True, slots=True)
class NumberedQuestion:
    """A question with the number that its answer must have. A partition uses each number once."""

    number: int
    question: PredicateQuestion | PreemptionQuestion


@dataclass(frozen=True, slots=True)
class NodesAnswer:
    """The answer to a `PredicateQuestion`."""

    number: int
    refused: Mapping[str, str]
    """The nodes that are refused, with the reasons; all others are allowed."""
    asked: int | None = None
    """How many nodes of the question it is about, the first ones; `None`: all."""


@dataclass(frozen=True, slots=True)
class VictimsAnswer:
    """The answer to a `PreemptionQuestion`."""

    number: int
    index: int | None
    """The index of the last victim that must end, `None` if the node is refused."""


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """No answer will come to a question of either kind."""

    number: int


PredicateAnswer: TypeAlias = NodesAnswer | VictimsAnswer | NoAnswer
