"""An explanation as one line, for where no more fits: the condition of a pod, a column, a log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ....model.explanation import AskExplanation, AskStatus, Blocker, Explanation
from ....model.resources.texts import quantity_text, resource_text
from ....model.values.allocation import RefusalReason
from ...si.arguments import check_type
from .sentences import sentence

LINE_CHARACTERS_MAX: Final = 1_024
_COUNTED: Final = (RefusalReason.WAITS_FOR_PLACEHOLDER, RefusalReason.PROTECTED, RefusalReason.WOULD_DELAY)
"""Whose details are counts."""
_CUT: Final = "..."
_ENDING: Final = "it has preempted, and waits until its victims have ended"
_TURN: Final = "it is placed when its turn comes"


def explanation_line(explanation: Explanation) -> str:
    """Return why an application waits, or the ask that an explanation is of, in one line.

    It names all blockers of the application and of its first waiting ask, with what is asked and what the
    limit is. It has no times, no counts and no usage: while the same blocks, it is the same line.

    Returns:
        At most 1,024 characters; a longer line is cut and ends with `...`.
    """
    check_type("explanation", explanation, Explanation)
    text = "; ".join(_parts(explanation)) or _TURN
    text = " ".join(text.split())
    return text if len(text) <= LINE_CHARACTERS_MAX else text[: LINE_CHARACTERS_MAX - len(_CUT)] + _CUT


def _parts(explanation: Explanation) -> Iterator[str]:
    if explanation.rejection:
        yield explanation.rejection
        return
    ask = next((each for each in explanation.asks if each.status is AskStatus.WAITING), None)
    if ask is None and explanation.asks:
        first = explanation.asks[0]
        yield f"it {first.status.value}" + (f" on {first.node_id}" if first.node_id else "")
        return
    yield from (_part(blocker, None) for blocker in explanation.blockers)
    if ask is not None:
        if ask.ending:
            yield _ENDING
        yield from (_part(blocker, ask) for blocker in ask.blockers)


def _part(blocker: Blocker, ask: AskExplanation | None) -> str:
    text = sentence(blocker)
    if blocker.reason is RefusalReason.NO_NODE_FITS and ask is not None:
        text = f"{text} for {resource_text(ask.resource)}"
    lacks = ", ".join(
        f"{lack.name} {quantity_text(lack.name, lack.asked)} asked, at most "
        f"{quantity_text(lack.name, lack.limit)}"
        for lack in blocker.lacks
    )
    detail = "" if blocker.reason in _COUNTED else blocker.detail
    return ": ".join(part for part in (text, lacks, detail) if part)
