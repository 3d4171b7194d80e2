"""The answers of predicates as they stand in a line.

Predicates that answer at once have `answers`, in the order of the questions. `null` is an answer without a
value: the node is not refused, or no victim would help. A text says why a node is refused, a number is the
index of the last victim.

Predicates that answer later have `taken`: the answers in the order in which the cycles of the turn took them,
each with the number of its question, and that of the cycle unless it is the first one of the turn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple, TypeGuard

from ....model.state.host import PartitionHost
from ....model.values.documents import Document, Json
from ....model.values.messages import NoAnswer, NodesAnswer, PredicateAnswer, VictimsAnswer

_TAKEN_KEYS: Final = frozenset({"cycle", "question", "refused", "victims"})


@dataclass(frozen=True, slots=True)
class AskedLater:
    """How a partition asks predicates that answer later; as `PartitionHost` has it."""

    timeout_ns: int
    may_overtake: bool


class TakenAnswer(NamedTuple):
    """An answer that a cycle took."""

    cycle: int
    """The cycle of the turn, from 0."""
    answer: PredicateAnswer


def written_answer(answer: str | int | None) -> Json:
    """Return an answer as JSON."""
    return answer


def read_answer(answer: Json) -> str | int | None:
    """Return the answer that a line has.

    Raises:
        ValueError: it is not one.
    """
    if answer is None or (isinstance(answer, str | int) and not isinstance(answer, bool)):
        return answer
    raise ValueError(f"no answer of a predicate: {answer!r}")


def written_taken(cycle: int, answer: PredicateAnswer) -> Document:
    """Return an answer that a cycle took as JSON."""
    document: Document = {"cycle": cycle} if cycle else {}
    document["question"] = answer.number
    if isinstance(answer, NodesAnswer):
        document["refused"] = {**answer.refused}
    elif isinstance(answer, VictimsAnswer):
        document["victims"] = answer.index
    return document


def read_taken(document: Json) -> TakenAnswer:
    """Return the answer that a cycle took.

    Raises:
        ValueError: it is not one.
    """
    wrong = ValueError(f"no answer that a cycle took: {document!r:.200}")
    if not isinstance(document, dict) or not document.keys() <= _TAKEN_KEYS:
        raise wrong
    cycle, number = document.get("cycle", 0), document.get("question")
    if not _is_count(cycle) or not _is_count(number):
        raise wrong
    match document:
        case {"refused": _, "victims": _}:
            raise wrong
        case {"refused": dict() as refused}:
            reasons = {node_id: reason for node_id, reason in refused.items() if isinstance(reason, str)}
            if len(reasons) < len(refused):
                raise wrong
            return TakenAnswer(cycle, NodesAnswer(number, reasons))
        case {"victims": index} if index is None or _is_count(index):
            return TakenAnswer(cycle, VictimsAnswer(number, index))
        case {"refused": _} | {"victims": _}:
            raise wrong
        case _:
            return TakenAnswer(cycle, NoAnswer(number))


def how_asked(host: PartitionHost) -> AskedLater | bool:
    """Return how a partition asks predicates; of those that answer at once, whether it asks any."""
    if host.question_channel is not None:
        return AskedLater(host.answer_timeout_ns, host.open_questions_max() > 1)
    return host.predicates is not None


def written_how_asked(asked: AskedLater | bool) -> Json:  # noqa: FBT001 - one of its values
    """Return how a partition asks predicates as JSON."""
    if isinstance(asked, AskedLater):
        return {"timeout": asked.timeout_ns, "overtaking": asked.may_overtake}
    return asked


def read_how_asked(asked: Json) -> AskedLater | bool:
    """Return how a partition asks predicates.

    Raises:
        ValueError: it is nothing that can be read.
    """
    match asked:
        case bool():
            return asked
        case {"timeout": timeout_ns, "overtaking": bool() as may_overtake, **more}:
            if _is_count(timeout_ns) and not more:
                return AskedLater(timeout_ns, may_overtake)
    raise ValueError(f"neither true nor false, nor a `timeout` and `overtaking`: {asked!r:.200}")


def _is_count(value: object) -> TypeGuard[int]:
    return type(value) is int and value >= 0
