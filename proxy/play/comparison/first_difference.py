"""The first decision that differs between two simulations of one input, and the decision of the other run.

Before it both runs are equal; all later differences follow from it, or from a difference of the
configurations that had no effect until then.

A simulation is asked why asks wait just before one of its decisions, and at moments of its time. For exact
answers its core then runs one cycle at a time. They are the answers of `licorne explain`; they do not change
the run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, Final, TypeAlias, final

from ....model.configuration.durations import duration_text
from ....model.errors import LicorneError
from ....model.explanation import AskExplanation, Blocker, Explanation, Place
from ...core.explanation.one_line import explanation_line
from ...core.explanation.text import Where, lack_line, what_blocks
from ..simulation.core import SchedulerCore
from ..simulation.record import Decision, DecisionKind, Decisions
from ..simulation.report import JsonDocument

Explained: TypeAlias = "Mapping[str, Explanation]"
"""The explanations of applications by the key of an ask, just before the decision."""
_CYCLE_MAX: Final = 16
"""The largest number of decisions of one cycle in a run with exact answers."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FirstDifference:
    """The first decision that differs.

    `number` counts decisions from 1, `at_ns` is the moment. `a` and `b` are the decisions of A and B, `None`
    if a run decides nothing more at that moment. `a_in_b` is the next decision of B about the ask of `a`, now
    or later, and `b_in_a` the reverse; `None` without such a decision.
    """

    number: int
    at_ns: int
    a: Decision | None
    b: Decision | None
    a_in_b: Decision | None
    b_in_a: Decision | None


def first_difference(a: Sequence[Decision], b: Sequence[Decision]) -> FirstDifference | None:
    """Return the first difference of the decisions of two simulations, `None` if all are the same."""
    for index, (of_a, of_b) in enumerate(zip_longest(a, b)):
        if of_a is None or of_b is None or not of_a.is_same(of_b):
            at_ns = min(decision.at_ns for decision in (of_a, of_b) if decision is not None)
            now_a, now_b = _at(of_a, at_ns), _at(of_b, at_ns)
            return FirstDifference(
                number=index + 1,
                at_ns=at_ns,
                a=now_a,
                b=now_b,
                a_in_b=_next_about(now_a, b, index),
                b_in_a=_next_about(now_b, a, index),
            )
    return None


def _at(decision: Decision | None, at_ns: int) -> Decision | None:
    """Return a decision if it is from that moment."""
    return decision if decision is not None and decision.at_ns == at_ns else None


def _next_about(decision: Decision | None, others: Sequence[Decision], start: int) -> Decision | None:
    """Return the first decision of another run about the same ask, from a position on."""
    if decision is None:
        return None
    return next((others[n] for n in range(start, len(others)) if others[n].ask == decision.ask), None)


def difference_lines(difference: FirstDifference | None) -> Iterator[str]:
    """Yield the first difference as lines of text."""
    if difference is None:
        yield "no decision differs"
        return
    yield (
        f"the first decision that differs is number {difference.number:,}, "
        f"at {duration_text(difference.at_ns)}:"
    )
    for side, other, decision, there in (
        ("A", "B", difference.a, difference.a_in_b),
        ("B", "A", difference.b, difference.b_in_a),
    ):
        if decision is None:
            yield f"  {side} decides nothing more at this moment"
            continue
        yield (
            f"  {side}: {decision.ask} of {decision.application} ({_owner(decision)}) is {_result(decision)}"
        )
        yield f"     {_elsewhere(other, decision, there)}"


def _owner(decision: Decision) -> str:
    """Return the queue and the user of a decision as text."""
    return ", ".join(filter(None, (decision.queue, decision.user))) or "of no queue and no user"


def _result(decision: Decision) -> str:
    """Return the result of a decision as text."""
    if decision.kind is DecisionKind.REJECTED:
        return f"rejected: {decision.reason}"
    return f"{decision.kind.value} on {decision.node_id}"


def _elsewhere(side: str, decision: Decision, there: Decision | None) -> str:
    """Return the other run's decision about the same ask as text."""
    if there is None:
        return f"{side} does not: it decides nothing about {decision.ask} from this moment on"
    queue = f", in {there.queue}" if there.queue != decision.queue else ""
    return f"in {side} it is {_result(there)}{queue}, at {duration_text(there.at_ns)}"


def difference_document(difference: FirstDifference | None) -> JsonDocument:
    """Return the first difference as a JSON document, null if no decision differs."""
    if difference is None:
        return None
    return {
        "number": difference.number,
        "at_ns": difference.at_ns,
        "a": _decision_document(difference.a),
        "b": _decision_document(difference.b),
        "a_in_b": _decision_document(difference.a_in_b),
        "b_in_a": _decision_document(difference.b_in_a),
    }


def _decision_document(decision: Decision | None) -> JsonDocument:
    """Return one decision as a JSON document."""
    return None if decision is None else {**decision._asdict(), "kind": decision.kind.value}


@final
@dataclass(frozen=True, slots=True)
class FirstStep:
    """A step: `kind` is `limit`, `order`, `node`, `queue`, `rejection` or `unknown`; `lines` describe it."""

    kind: str
    lines: tuple[str, ...]


def first_step(
    difference: FirstDifference, explained: tuple[Explained, Explained], where: tuple[Where, Where]
) -> FirstStep:
    """Return the first step at which the orders or the refusals of the two runs differ.

    Args:
        difference: The first difference of their decisions.
        explained: Under A and under B, the explanation of the application of each decided ask.
        where: The function for the places, in both files, of a setting of A, and that of B.
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
    """Return the blockers of the ask of a decision, those of the application first."""
    if explanation is None:
        return []
    ask = _ask(explanation, decision)
    return [*explanation.blockers, *(() if ask is None else ask.blockers)]


def _ask(explanation: Explanation, decision: Decision) -> AskExplanation | None:
    """Return the ask of a decision; in a transcript its key begins with the resource manager."""
    return explanation.ask(decision.ask) or explanation.ask(decision.ask.partition("/")[2])


def _sign(blocker: Blocker) -> tuple[str, ...]:
    """Return the identity of a blocker in another run: the kind of blocker, without the remaining amounts."""
    return (blocker.reason.name, blocker.subject, blocker.queue_path, *(lack.name for lack in blocker.lacks))


def _refusal(
    side: str, decision: Decision, blockers: list[Blocker], where: Where, now_ns: int
) -> Iterator[str]:
    """Return the lines of a refusal in only one of the runs."""
    for blocker in blockers:
        place = "" if blocker.position is None or blocker.lacks else f" ({where(blocker.position)})"
        yield f"{side} refuses {decision.ask}: {what_blocks(blocker, now_ns)}{place}"
        for lack in blocker.lacks:
            setting = f"{blocker.setting}." if blocker.setting else ""
            yield f"  {setting}{lack_line(lack, where)}"


def _order(
    difference: FirstDifference, explained: tuple[Explained, Explained], where: tuple[Where, Where]
) -> FirstStep | None:
    """Return the first order, from the root down, in which the asks of both runs are exchanged."""
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
    """Return the places at which the paths of two asks part, `None` if these are not in one order."""
    for first, second in zip(one, other, strict=False):
        if first.among != second.among:
            return None
        if first.subject != second.subject:
            return first, second
    return None


def _node(difference: FirstDifference) -> FirstStep | None:
    """Return the step in which an ask gets another node."""
    a, b = difference.a, difference.b
    if a is None or b is None or a.ask != b.ask or a.kind is not b.kind:
        return None
    line = f"both decide about {a.ask}: the nodes are in another order, {a.node_id} in A and {b.node_id} in B"
    return FirstStep("node", (line,))


def _queue(difference: FirstDifference, explained: tuple[Explained, Explained]) -> FirstStep:
    """Return the step in which an application is placed in another queue, or an unknown step."""
    for decision in filter(None, (difference.a, difference.b)):
        queues = [of[decision.ask].queue_path if decision.ask in of else "" for of in explained]
        if all(queues) and queues[0] != queues[1]:
            line = f"{decision.application} is in {queues[0]} in A and in {queues[1]} in B"
            return FirstStep("queue", (line,))
    return FirstStep("unknown", ("no order and no refusal of both runs differs just before the decision",))


@final
@dataclass(slots=True, kw_only=True)
class Probes:
    """The questions to one simulation, and its answers.

    `number` is the decision before which the asks of `decisions` are explained, at the moment `at_ns`. The
    answers are in `before`, by ask; an ask that is unknown then has none. `moments` are the applications to
    explain at each moment, when the scheduler has nothing more to do; their lines are in `lines`.
    """

    number: int
    at_ns: int
    decisions: Collection[Decision]
    moments: Mapping[int, Collection[str]]
    before: dict[str, Explanation] = field(default_factory=dict)
    lines: dict[tuple[int, str], str] = field(default_factory=dict)


@final
class ProbedCore(SchedulerCore):
    """A scheduler that is asked during its simulation.

    Args:
        written: The decisions of the simulation, as it writes them.
        probes: The questions, and the place of the answers.
        settings: The arguments of `SchedulerCore`.
    """

    def __init__(self, written: Decisions, probes: Probes, *settings: Any) -> None:
        super().__init__(*settings)
        self._written = written
        self._probes = probes
        self._origin_ns = self.now_ns()

    def run_until_idle(self) -> int:
        """Run until nothing more happens, then ask the questions of this moment."""
        probes, now_ns = self._probes, self.now_ns() - self._origin_ns
        results = self._by_cycles() if now_ns == probes.at_ns else super().run_until_idle()
        for application in probes.moments.get(now_ns, ()):
            explanation = self._explained(application)
            if explanation is not None:
                probes.lines[now_ns, application] = explanation_line(explanation)
        return results

    def _by_cycles(self) -> int:
        """Run until nothing more happens, and explain the asks before the cycle with the decision."""
        scheduler, results = self.scheduler, 0
        scheduler.deliver()
        while True:
            self._note()
            if not scheduler.schedule(1):
                break
            results += 1
            scheduler.deliver()
        scheduler.deliver()
        return results

    def _note(self) -> None:
        """Explain the asks now, if the decision can be the next one."""
        missing = self._probes.number - 1 - len(self._written)
        if not 0 <= missing < _CYCLE_MAX:
            return
        self._probes.before.clear()
        for decision in self._probes.decisions:
            explanation = self._explained(decision.application)
            if explanation is not None:
                self._probes.before[decision.ask] = explanation

    def _explained(self, application_id: str) -> Explanation | None:
        """Return the explanation of an application; `None` if it is unknown or ambiguous."""
        try:
            return self.scheduler.explain(application_id)
        except LicorneError:
            return None
