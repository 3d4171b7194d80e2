"""Promises of starts, as the second scheduler finds them: nothing may make a promised job wait longer.

It knows a partition whose root backfills with a number of promises, and one leaf below. A profile of what is
free is not kept: whether something fits at a moment is added up from all that runs then.
"""

from __future__ import annotations

from itertools import chain, count
from typing import TYPE_CHECKING, Final, NamedTuple

from ..manager.cluster_record import Size
from .queues import ReferenceApplication, ReferenceAsk, ReferenceNode, add_to, fits_within

if TYPE_CHECKING:
    from .scheduler import ReferenceDecision, ReferenceScheduler

_MINUTE_NS: Final = 60_000_000_000
_LATER_NS: Final = tuple(
    minutes * _MINUTE_NS for minutes in (1, 5, 15, 30, 60, 120, 300, 600, 1_200, 3_000, 6_000)
)
"""How long after its walltime work is expected to end that has not ended by then."""


class _Work(NamedTuple):
    """What runs, or is to run, from a moment to another."""

    node: str
    size: Size
    begin_ns: int
    end_ns: int | None
    user: str = ""


def next_start(scheduler: ReferenceScheduler) -> ReferenceDecision | None:
    """Return the next ask that starts: the first that fits and delays no promise."""
    from .scheduler import ReferenceDecision  # noqa: PLC0415 - the two make one decision together

    (leaf,) = (queue for queue in scheduler.root.tree() if not queue.is_parent)
    most = int(scheduler.root.properties["backfill.reservations"])
    shortest = scheduler.root.properties.get("backfill.order") == "shortest"
    promised: list[tuple[ReferenceAsk, _Work]] = []
    later: list[tuple[ReferenceApplication, ReferenceAsk]] = []
    running = _running(scheduler)
    asks = [(each, ask) for each in scheduler.applications_of(leaf) for ask in each.in_order()]
    for application, ask in asks:
        if len(promised) >= most and shortest:
            later.append((application, ask))
            continue
        found = _start(scheduler, ask, running, promised)
        if found is not None:
            return ReferenceDecision(ask.key, found.name)
        if len(promised) < most and not _is_held_by_own(scheduler, application, ask, running):
            work = _earliest(scheduler, ask, [*running, *(each for _, each in promised)])
            if work is not None:
                promised.append((ask, work))
    never = 2**80
    later.sort(
        key=lambda each: (never if each[1].walltime_ns is None else each[1].walltime_ns, each[1].since_ns)
    )
    for _, ask in later:
        found = _start(scheduler, ask, running, promised)
        if found is not None:
            return ReferenceDecision(ask.key, found.name)
    return None


def _running(scheduler: ReferenceScheduler) -> list[_Work]:
    now_ns = scheduler.now_ns
    works = []
    for task in scheduler.running.values():
        end_ns = None
        if task.ask.walltime_ns is not None:
            planned_ns = task.begun_ns + task.ask.walltime_ns
            later = chain((0, *_LATER_NS), (_LATER_NS[-1] * times for times in count(2)))
            end_ns = next(planned_ns + more for more in later if planned_ns + more > now_ns)
        works.append(_Work(task.node.name, task.ask.size, 0, end_ns, task.application.user))
    return works


def _start(
    scheduler: ReferenceScheduler,
    ask: ReferenceAsk,
    running: list[_Work],
    promised: list[tuple[ReferenceAsk, _Work]],
) -> ReferenceNode | None:
    """Return the first node on which an ask fits now and delays no promise."""
    if any(
        not queue.is_parent and any(scheduler.quota_blockers(queue, ask.size))
        for queue in scheduler.root.tree()
    ):
        return None
    for node in scheduler.nodes_in_order():
        if node.drained or not _fits(scheduler, node, ask.size, scheduler.now_ns, running):
            continue
        works = [*running, _work(node, ask, scheduler.now_ns)]
        for other, before in promised:
            found = _earliest(scheduler, other, works)
            if found is None or found.begin_ns > before.begin_ns:
                break
            works.append(found)
        else:
            return node
    return None


def _work(node: ReferenceNode, ask: ReferenceAsk, begin_ns: int) -> _Work:
    end_ns = None if ask.walltime_ns is None else begin_ns + ask.walltime_ns
    return _Work(node.name, ask.size, begin_ns, end_ns)


def _earliest(scheduler: ReferenceScheduler, ask: ReferenceAsk, works: list[_Work]) -> _Work | None:
    """Return the first start of an ask for its whole walltime, where the fewest others run then."""
    moments = {scheduler.now_ns, *(work.end_ns for work in works if work.end_ns is not None)}
    moments |= {work.begin_ns for work in works if work.begin_ns > scheduler.now_ns}
    for begin_ns in sorted(moments):
        possible: list[tuple[int, int, _Work]] = []
        for node in scheduler.nodes_in_order():
            work = _work(node, ask, begin_ns)
            within = [
                each for each in moments if begin_ns <= each and (work.end_ns is None or each < work.end_ns)
            ]
            if not node.drained and all(_fits(scheduler, node, ask.size, each, works) for each in within):
                others = sum(
                    each.node == node.name
                    and each.begin_ns == 0
                    and (each.end_ns is None or each.end_ns > begin_ns)
                    for each in works
                )
                possible.append((others, len(possible), work))
        if possible:
            return min(possible)[2]
    return None


def _fits(
    scheduler: ReferenceScheduler, node: ReferenceNode, size: Size, at_ns: int, works: list[_Work]
) -> bool:
    """Return whether a node and the maxima of the queues have room at a moment."""
    then = [work for work in works if work.begin_ns <= at_ns and (work.end_ns is None or work.end_ns > at_ns)]
    left = dict(node.size)
    for other in (*node.foreign.values(), *(work.size for work in then if work.node == node.name)):
        add_to(left, other, -1)
    if not fits_within(left, size):
        return False
    for queue in scheduler.root.tree():
        if queue.parent is not None and queue.maximum:
            left = dict(queue.maximum)
            for work in then:
                add_to(left, {name: work.size.get(name, 0) for name in queue.maximum}, -1)
            if not fits_within(left, size, unlimited=True):
                return False
    return True


def _is_held_by_own(
    scheduler: ReferenceScheduler, application: ReferenceApplication, ask: ReferenceAsk, running: list[_Work]
) -> bool:
    """Return whether a maximum refuses an ask that work of its user alone fills."""
    if any(work.user != application.user for work in running):
        return False
    blockers = scheduler.quota_blockers(application.queue, ask.size)
    return any(blocked.path != "root" for blocked in blockers)
