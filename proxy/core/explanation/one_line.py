"""An explanation in one line: for conditions of pods, tables, and programs with little room."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ....model.explanation import AskExplanation, Blocker, Explanation, NodeSummary, SubjectKind
from ....model.resources.resource import quantity_text
from ....model.values.allocation import RefusalReason
from ...si.arguments import check_type

LINE_CHARACTERS_MAX: Final = 1_024
_COUNTED: Final = (RefusalReason.WAITS_FOR_PLACEHOLDER, RefusalReason.PROTECTED, RefusalReason.WOULD_DELAY)
"""Reasons whose details are counts."""
_OF_NODES: Final = (RefusalReason.NO_NODE_FITS, RefusalReason.PREDICATES, RefusalReason.NO_CAPACITY)
"""Reasons that the sentence about the nodes contains."""
_CUT: Final = "..."
_ENDING: Final = "it has preempted, and waits until its victims have ended"
_TURN: Final = "it is placed when its turn comes"


def sentence(blocker: Blocker) -> str:
    """Return what blocks, without its detail and without times."""
    subject, kind = blocker.subject, blocker.kind.value
    reason = blocker.reason
    if reason is RefusalReason.QUEUE_QUOTA:
        return f"queue {subject} has no room"
    if reason is RefusalReason.USER_QUOTA:
        return f"{kind} {subject} has no room left in {blocker.queue_path}"
    if reason is RefusalReason.QUEUE_APPLICATIONS:
        return f"queue {subject} runs its maximum of applications"
    if reason is RefusalReason.USER_APPLICATIONS:
        return f"{kind} {subject} runs the maximum of applications in {blocker.queue_path}"
    if reason is RefusalReason.REQUIRED_NODE_UNKNOWN:
        return f"the required node {subject} is unknown"
    if reason is RefusalReason.REQUIRED_NODE_FULL:
        return f"the required node {subject} has no room"
    if reason in {RefusalReason.PREDICATES, RefusalReason.WINDOW}:
        where = f"node {subject}" if blocker.kind is SubjectKind.NODE else "every node with room"
        return f"{where} is {'refused' if reason is RefusalReason.PREDICATES else 'kept for a window'}"
    if reason is RefusalReason.WAITS_FOR_PLACEHOLDER:
        return f"it waits to replace a placeholder of task group {subject}"
    if reason is RefusalReason.WOULD_DELAY:
        return f"it would delay application {subject}, which is promised a start"
    text = reason.value[0].lower() + reason.value[1:]
    return f"{kind} {subject}: {text}" if subject else text


def nodes_sentence(nodes: NodeSummary) -> str:
    """Return how many nodes are available, and the first reason of each other one, with the numbers."""
    reasons = ", ".join(f"{count} {reason}" for reason, count in nodes.reasons)
    return f"{nodes.available}/{nodes.total} nodes are available" + (f": {reasons}" if reasons else "")


def explanation_line(explanation: Explanation) -> str:
    """Return why an application waits, or the ask that an explanation is of, in one line.

    It names all blockers of the application and of its first waiting ask: the nodes with their numbers, what
    is left of quotas, and why nothing is preempted. It contains no times.

    Returns:
        At most 1,024 characters; a longer line is cut and ends with `...`.
    """
    check_type("explanation", explanation, Explanation)
    if explanation.rejection:
        return _cut(explanation.rejection)
    if explanation.asks and not explanation.waiting:
        first = explanation.asks[0]
        return _cut(f"it {first.status.value}" + (f" on {first.node_id}" if first.node_id else ""))
    return ask_line(next(iter(explanation.waiting), None), explanation)


def ask_line(ask: AskExplanation | None, explanation: Explanation) -> str:
    """Return why one ask waits, in one line; see `explanation_line`.

    Args:
        ask: The ask, `None` if nothing of the application waits.
        explanation: The explanation of its application.
    """
    return _cut("; ".join(_parts(ask, explanation)) or _TURN)


def _cut(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= LINE_CHARACTERS_MAX else text[: LINE_CHARACTERS_MAX - len(_CUT)] + _CUT


def _parts(ask: AskExplanation | None, explanation: Explanation) -> Iterator[str]:
    nodes = ask.nodes if ask is not None else None
    if ask is not None and ask.ending:
        yield _ENDING
    is_counted = nodes is not None and not nodes.available
    if nodes is not None and is_counted:
        yield nodes_sentence(nodes)
    blockers = (*explanation.blockers, *(ask.blockers if ask is not None else ()))
    yield from (_part(blocker) for blocker in blockers if not (is_counted and is_of_nodes(blocker)))
    if ask is not None and ask.preemption:
        yield f"preemption: {ask.preemption.removeprefix('Preemption ')}"


def is_of_nodes(blocker: Blocker) -> bool:
    """Return whether a blocker consists of the answers of the nodes, or of their sum."""
    if blocker.reason is RefusalReason.QUEUE_QUOTA:
        return "." not in blocker.subject and all(lack.position is None for lack in blocker.lacks)
    return blocker.reason in _OF_NODES


def _part(blocker: Blocker) -> str:
    detail = "" if blocker.reason in _COUNTED else blocker.detail
    if blocker.reason in (RefusalReason.QUEUE_QUOTA, RefusalReason.USER_QUOTA):
        where = f"{blocker.kind.value} {blocker.subject}"
        if blocker.queue_path:
            where = f"{where} in {blocker.queue_path}"
        left = ", ".join(
            f"{quantity_text(lack.name, lack.available)} of {quantity_text(lack.name, lack.limit)} "
            f"{lack.name} left"
            for lack in blocker.lacks
        )
        return ": ".join(part for part in (where, left, detail) if part)
    lacks = ", ".join(
        f"{lack.name} {quantity_text(lack.name, lack.asked)} asked, at most "
        f"{quantity_text(lack.name, lack.limit)}"
        for lack in blocker.lacks
    )
    return ": ".join(part for part in (sentence(blocker), lacks, detail) if part)
