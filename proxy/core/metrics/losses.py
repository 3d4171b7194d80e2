"""The metrics of what waits and of what is lost: waits, preemptions, back-offs, moved promises, refusals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from prometheus_client import Metric

from ....model.state.counters import WAIT_BOUNDS_NS, HistogramFigures
from .families import counter, gauge, histogram
from .figures import SchedulerFigures

_NS: Final = 10**9


def loss_families(figures: SchedulerFigures) -> Iterator[Metric]:
    """Return the families of one scrape; queues of the same path in several partitions are added up."""
    partitions = figures.partitions
    text = "Applications that wait, by their first blocker"
    yield gauge("licorne_waiting", text, ("queue", "reason"), dict(sorted(figures.waiting.items())))
    yield gauge(
        "licorne_oldest_wait_seconds",
        "The longest wait of the first waiting ask of an application",
        "queue",
        {queue: wait_ns / _NS for queue, wait_ns in sorted(figures.oldest_waits_ns.items())},
    )
    waits: dict[str, HistogramFigures] = {}
    preempted: Counter[tuple[str, ...]] = Counter()
    lost_ns: Counter[tuple[str, ...]] = Counter()
    backoffs: Counter[str] = Counter()
    promises_moved: Counter[str] = Counter()
    for each in partitions:
        for queue, of_queue in each.waits_in.items():
            waits[queue] = of_queue.plus(waits[queue]) if queue in waits else of_queue
        preempted.update(each.preempted)
        lost_ns.update(each.lost_ns)
        backoffs.update(each.backoffs)
        promises_moved.update(each.promises_moved)
    yield histogram(
        "licorne_queue_wait_seconds",
        "From the creation of an ask to its placement, by queue",
        [({"queue": queue}, of_queue) for queue, of_queue in sorted(waits.items())],
        WAIT_BOUNDS_NS,
    )
    sides = ("queue", "victim_queue", "cause")
    text = "Allocations that were preempted, by the queue of the ask and of the victim"
    yield counter("licorne_preempted_total", text, sides, dict(sorted(preempted.items())))
    yield counter(
        "licorne_preempted_seconds_total",
        "The work of preempted allocations since their start or last checkpoint",
        sides,
        {labels: each_ns / _NS for labels, each_ns in sorted(lost_ns.items())},
    )
    yield counter("licorne_backoffs_total", "How often an application backed off", "queue", backoffs)
    yield counter(
        "licorne_promises_moved_total", "Promised starts that have moved back", "queue", promises_moved
    )
    yield configurations_family(figures.configurations)


def configurations_family(counts: Mapping[str, int]) -> Metric:
    """Return the family of the configurations, by whether they were accepted or refused."""
    text = "Configurations that were accepted, or refused"
    return counter("licorne_configurations_total", text, "result", counts)
