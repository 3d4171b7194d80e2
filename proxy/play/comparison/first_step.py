"""The first step at which two runs differ: which limit, which order, or the choice of the node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias, final

from ....model.explanation import AskExplanation, Blocker, Explanation, Place
from ...core.explanation.sentences import Where, lack_line, what_blocks
from ..simulation.decisions import Decision, DecisionKind
from .first_difference import FirstDifference

Explained: TypeAlias = "Mapping[str, Explanation]"
"""The explanations of applications by the key of an ask, as they were before the decision."""


@final
@dataclass(frozen=True, slots=True)
class FirstStep:
    """The step: `kind` is `limit`, `order`, `node`, `queue`, `rejection` or `unknown`; `lines` say it."""

    kind: str
    lines: tuple[str, ...]


def first_step(
    difference: FirstDifference, explained: tuple[Explained, Explained], where: tuple[Where, Where]
) -> FirstStep:
    """Return the first step at which the orders or the refusals of the two runs differ.

    Args:
        difference: The first difference of their decisions.
        explained: Under A and under B, the application of each ask that was decided about.
        where: Where a setting of A, and one of B, is in both files.
    """
    sides = ("A", "B")
    for one, decision in ((0, difference.a), (1, difference.b)):
        other = 1 - one
        if decision is None:
            continue
        if decision.kind is DecisionKind.REJECTED:
            line = f"{sides[one]} rejects {decision.ask}: {decision.reason}"
            return FirstStep("rejection", (line,))
        here, there = (_blockers(explained[side].get(decision.ask), decision) for side in (one, other))
        new = [blocker for blocker in there if _sign(blocker) not in {_sign(each) for each in here}]
        if new:
            now_ns = explained[other][decision.ask].time_ns
            return FirstStep("limit", tuple(_refusal(sides[other], decision, new, where[other], now_ns)))
    return _order(difference, explained, where) or _node(difference) or _queue(difference, explained)


def _blockers(explanation: Explanation | None, decision: Decision) -> list[Blocker]:
    """Return what blocks the ask of a decision, the application first."""
    if explanation is None:
        return []
    ask = _ask(explanation, decision)
    return [*explanation.blockers, *(() if ask is None else ask.blockers)]


def _ask(explanation: Explanation, decision: Decision) -> AskExplanation | None:
    """Return the ask of a decision; of a transcript its key begins with the resource manager."""
    return explanation.ask(decision.ask) or explanation.ask(decision.ask.partition("/")[2])


def _sign(blocker: Blocker) -> tuple[str, ...]:
    """Return what makes a blocker the same in another run: what blocks, and not how much is left."""
    return (blocker.reason.name, blocker.subject, blocker.queue_path, *(lack.name for lack in blocker.lacks))


def _refusal(
    side: str, decision: Decision, blockers: list[Blocker], where: Where, now_ns: int
) -> Iterator[str]:
    """Write what refuses an ask in one run alone."""
    for blocker in blockers:
        place = "" if blocker.position is None or blocker.lacks else f" ({where(blocker.position)})"
        yield f"{side} refuses {decision.ask}: {what_blocks(blocker, now_ns)}{place}"
        for lack in blocker.lacks:
            setting = f"{blocker.setting}." if blocker.setting else ""
            yield f"  {setting}{lack_line(lack, where)}"


def _order(
    difference: FirstDifference, explained: tuple[Explained, Explained], where: tuple[Where, Where]
) -> FirstStep | None:
    """Return the first order, from the root down, in which the asks of both runs change their places."""
    a, b = difference.a, difference.b
    if a is None or b is None or a.ask == b.ask:
        return None
    found = []
    for side, of in enumerate(explained):
        if a.ask not in of or b.ask not in of:
            return None
        pair = _places_apart(_path(of[a.ask], a), _path(of[b.ask], b))
        if pair is None:
            return None
        first, second = pair if pair[0].number < pair[1].number else pair[::-1]
        found.append((first, second, side))
    if found[0][0].subject == found[1][0].subject:
        return None
    lines = []
    for first, second, side in found:
        setting = "" if first.position is None else f" ({where[side](first.position)})"
        lines.append(
            f"{'AB'[side]}: {first.subject} goes before {second.subject} in {first.among}, "
            f"place {first.number} before {second.number}, by {first.order}{setting}"
        )
    return FirstStep("order", tuple(lines))


def _path(explanation: Explanation, decision: Decision) -> list[Place]:
    """Return the places of an ask from the root down."""
    ask = _ask(explanation, decision)
    own = [] if ask is None or ask.place is None else [ask.place]
    return [*reversed(explanation.places), *own]


def _places_apart(one: list[Place], other: list[Place]) -> tuple[Place, Place] | None:
    """Return the places at which the paths of two asks part, `None` where they do not in one order."""
    for first, second in zip(one, other, strict=False):
        if first.among != second.among:
            return None
        if first.subject != second.subject:
            return first, second
    return None


def _node(difference: FirstDifference) -> FirstStep | None:
    """Return that one ask gets another node."""
    a, b = difference.a, difference.b
    if a is None or b is None or a.ask != b.ask or a.kind is not b.kind:
        return None
    line = f"both decide about {a.ask}: the nodes are in another order, {a.node_id} in A and {b.node_id} in B"
    return FirstStep("node", (line,))


def _queue(difference: FirstDifference, explained: tuple[Explained, Explained]) -> FirstStep:
    """Return that the runs place an application in other queues, or that no step is known."""
    for decision in filter(None, (difference.a, difference.b)):
        queues = [of[decision.ask].queue_path if decision.ask in of else "" for of in explained]
        if all(queues) and queues[0] != queues[1]:
            line = f"{decision.application} is in {queues[0]} in A and in {queues[1]} in B"
            return FirstStep("queue", (line,))
    return FirstStep("unknown", ("no order and no refusal of both runs differs just before the decision",))
