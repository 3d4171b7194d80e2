"""The answers of predicates as they stand in a line, in the order of the questions.

`null` is an answer without a value: the node is not refused, or no victim would help. A text says why a node
is refused, a number is the index of the last victim.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...model.values.documents import Json

__all__ = ["read_answer", "written_answer"]


def written_answer(answer: str | int | None) -> Json:
    """Return an answer as JSON."""
    return answer


def read_answer(answer: Json) -> str | int | None:
    """Return the answer that a line has.

    Raises:
        ValueError: it is none.
    """
    if answer is None or (isinstance(answer, str | int) and not isinstance(answer, bool)):
        return answer
    raise ValueError(f"no answer of a predicate: {answer!r}")
