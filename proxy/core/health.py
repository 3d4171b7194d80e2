"""Health: checks of a running scheduler, the history of its applications and containers, and their thread.

Facts about a whole partition are taken from one turn of it, and facts about one node as well. Allocations
that only a node or only an application knows are looked for in pieces, while the partition works in between.
Each that is found is looked at again in one turn, so that nothing is reported that merely moved.

The room owns the last report, the history, and the thread that makes both when they are due. It asks
partitions in pieces of bounded size, and imports the rooms below `scheduler`.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from time import monotonic
from typing import Final, NamedTuple, Protocol, TypeVar, final

from ...actors.services.log import Log
from ...model.applications.report import ShownApplication
from ...model.errors import RequestError
from ...model.nodes.node import NodeFacts
from ...model.partition import Partition
from ...model.policies.watching import PolicyFigures
from ...model.resources.comparisons import equals, equals_or_empty, has_negative
from ...model.resources.resource import add, total_of
from ...model.views.rows import PartitionFigures, partition_figures
from ...model.views.shown import (
    PlacedOn,
    ShownNode,
    listed_applications,
    node_ids,
    shown_active,
    shown_nodes,
    unknown_to_applications,
    unknown_to_nodes,
)
from .documents.declarations import paged, size_of_application, size_of_node
from .documents.monitoring import ApplicationCountDocument, ContainerCountDocument, HealthDocument
from .metrics.figures import Metrics

_SUSPECTS_MAX: Final = 100
"""How many allocations are looked at again in one turn."""
_RECENT_NS: Final = 60 * 10**9
"""For how long a policy that has failed is reported."""


class _Findings(NamedTuple):
    """The findings in one partition."""

    figures: PartitionFigures
    negative_nodes: list[str]
    inconsistent_nodes: list[str]
    unknown_to_applications: list[str]
    unknown_to_nodes: list[str]


@final
class HealthChecks:
    """Checks one scheduler; one thread at a time.

    Args:
        ask_all: How partitions are asked.
        metrics: The counts of the scheduler.
        lost_managers: Returns which resource managers are lost, and why.
        broken_interfaces: Interfaces that do not answer now, and why.
        policies: Returns what each policy has answered so far.
    """

    def __init__(
        self,
        ask_all: AskAll,
        metrics: Metrics,
        lost_managers: Callable[[], Sequence[str]],
        broken_interfaces: Mapping[str, str],
        policies: Callable[[], Mapping[str, PolicyFigures]] = dict,
    ) -> None:
        self._ask_all = ask_all
        self._metrics = metrics
        self._lost_managers = lost_managers
        self._broken_interfaces = broken_interfaces
        self._policies = policies
        self.policies_failed = False
        """Whether one had failed within a minute when the health was checked last."""
        self._errors_before = 0
        self._failed_nodes_before = 0

    def run(self, now_ns: int) -> HealthReport:
        """Run all checks; partitions that end meanwhile are left out.

        Raises:
            RequestError: the scheduler has been stopped.
        """
        findings = []
        for partition in self._ask_all("a health check", tuple):
            with suppress(
                RequestError
            ):  # It has ended; or the scheduler has, and the next question fails for that.
                findings.append(self._look_at(partition))
        self._ask_all("a health check", len)
        looked_at = (*_resources(findings), *_allocations(findings))
        return HealthReport(now_ns, (*self._counts(findings), *looked_at, *self._connections(now_ns)))

    def _look_at(self, partition: Partition) -> _Findings:
        figures = self._ask_all("a health check", lambda _: partition.read(partition_figures))
        negative, inconsistent = [], []
        on_nodes: set[PlacedOn] = set()
        for node in nodes(self._ask_all, partition):
            facts = node.facts
            if any(map(has_negative, (facts.allocated, facts.available, facts.capacity, facts.occupied))):
                negative.append(facts.node_id)
            if not equals(facts.capacity, add(add(facts.allocated, facts.occupied), facts.available)):
                inconsistent.append(facts.node_id)
            on_nodes.update(_placed_on(facts))
        in_applications = {
            PlacedOn(allocation.ask.application_id, allocation.ask.allocation_key, allocation.node_id)
            for application in active_applications(self._ask_all, partition)
            for allocation, _ in application.allocations
        }
        return _Findings(
            figures,
            negative,
            inconsistent,
            self._confirmed(
                on_nodes - in_applications, lambda some: partition.read(unknown_to_applications, some)
            ),
            self._confirmed(in_applications - on_nodes, lambda some: partition.read(unknown_to_nodes, some)),
        )

    def _confirmed(
        self, suspects: Iterable[PlacedOn], question: Callable[[Sequence[PlacedOn]], Sequence[PlacedOn]]
    ) -> list[str]:
        """Look again at allocations that one side lacked; return the keys of those that it lacks now."""
        ordered = sorted(suspects)

        def ask(page: Sequence[PlacedOn]) -> Sequence[PlacedOn]:
            return self._ask_all("a health check", lambda _: question(page))

        pages = (ordered[start : start + _SUSPECTS_MAX] for start in range(0, len(ordered), _SUSPECTS_MAX))
        return [placed.allocation_key for page in pages for placed in ask(page)]

    def _counts(self, findings: Sequence[_Findings]) -> tuple[HealthCheck, ...]:
        """Check what was counted since the last check, and what is broken now."""
        counts = [self._metrics.forgotten, *self._metrics.managers().values()]
        errors, failed = sum(each.rejected for each in counts), sum(each.nodes_failed for each in counts)
        new_errors, self._errors_before = errors - self._errors_before, errors
        new_failed, self._failed_nodes_before = failed - self._failed_nodes_before, failed
        wrong = new_errors + sum(found.figures.quarantined for found in findings)
        return (
            HealthCheck(
                "Scheduling errors",
                "Check for scheduling error entries in metrics",
                not wrong,
                f"There were {wrong} scheduling errors logged in the metrics",
            ),
            HealthCheck(
                "Failed nodes",
                "Check for failed nodes entries in metrics",
                not new_failed,
                f"There were {new_failed} failed nodes logged in the metrics",
            ),
        )

    def _connections(self, now_ns: int) -> Iterator[HealthCheck]:
        """Yield what is lost, does not answer or fails; the recorded core has no such checks."""
        lost = self._lost_managers()
        if lost:
            what = "Check for resource managers that were lost, and did not come back"
            yield _listing("Resource managers", what, "Lost resource managers", lost)
        broken = [f"{name}: {why}" for name, why in sorted(self._broken_interfaces.items())]
        if broken:
            what = "Check for interfaces that do not answer"
            yield _listing("Interfaces", what, "Interfaces that do not answer", broken)
        failed = [*self._failed_policies(now_ns)]
        self.policies_failed = bool(failed)
        if failed:
            what = "Check for policies that have failed in the last minute"
            yield HealthCheck("Policies", what, succeeded=False, diagnosis="; ".join(failed))

    def _failed_policies(self, now_ns: int) -> Iterator[str]:
        for name, figures in sorted(self._policies().items()):
            last = figures.last_failure
            if last is not None and last.at_ns > now_ns - _RECENT_NS:
                counts = f"{figures.failures:,} of {figures.answers:,} answers"
                yield f"{name} failed for {counts}, at last {last.method} about {last.subject}: {last.error}"


def _resources(findings: Sequence[_Findings]) -> tuple[HealthCheck, ...]:
    """Check the sums of partitions and nodes."""
    negative, inconsistent = [], []
    for found in findings:
        figures = found.figures
        if has_negative(figures.capacity) or has_negative(figures.queues[0].allocated):
            negative.append(figures.name)
        if not equals_or_empty(figures.capacity, total_of(node.capacity for node in figures.nodes)):
            inconsistent.append(figures.name)
    return (
        _listing(
            "Negative resources",
            "Check for negative resources in the partitions",
            "Partitions with negative resources",
            negative,
        ),
        _listing(
            "Negative resources",
            "Check for negative resources in the nodes",
            "Nodes with negative resources",
            [name for found in findings for name in found.negative_nodes],
        ),
        _listing(
            "Consistency of data",
            "Check if total partition resource == sum of the node resources from the partition",
            "Partitions with inconsistent data",
            inconsistent,
        ),
        _listing(
            "Consistency of data",
            "Check if node total resource = allocated resource + occupied resource + available resource",
            "Nodes with inconsistent data",
            [name for found in findings for name in found.inconsistent_nodes],
        ),
    )


def _allocations(findings: Sequence[_Findings]) -> tuple[HealthCheck, ...]:
    """Check reservations, and allocations that only one side knows."""
    ratios = [found.figures.reservations / max(len(found.figures.nodes), 1) for found in findings]
    return (
        HealthCheck(
            "Reservation check",
            "Check the reservation nr compared to the number of nodes",
            succeeded=True,
            diagnosis=f"Reservation/node nr ratio: [{' '.join(f'{ratio:f}' for ratio in ratios)}]",
        ),
        _listing(
            "Orphan allocation on node check",
            "Check if there are orphan allocations on the nodes",
            "Orphan allocations",
            [key for found in findings for key in found.unknown_to_applications],
        ),
        _listing(
            "Orphan allocation on app check",
            "Check if there are orphan allocations on the applications",
            "OrphanAllocations",
            [key for found in findings for key in found.unknown_to_nodes],
        ),
    )


def _listing(name: str, description: str, what: str, found: Sequence[str]) -> HealthCheck:
    """Return a check that has failed if something was found."""
    return HealthCheck(name, description, not found, f"{what}: [{' '.join(found)}]")


def _placed_on(facts: NodeFacts) -> Iterable[PlacedOn]:
    return (
        PlacedOn(allocation.ask.application_id, allocation.ask.allocation_key, facts.node_id)
        for allocation in facts.allocations
    )


T = TypeVar("T")
K = TypeVar("K")


class AskAll(Protocol):
    """How partitions are asked: between their turns, one question at a time."""

    def __call__(self, question: str, answer: Callable[[Sequence[Partition]], T]) -> T:
        """Put a question to all partitions; `question` is its name in words.

        Raises:
            RequestError: the scheduler has been stopped, a predicate asks, or a partition has ended.
        """


def nodes(ask_all: AskAll, partition: Partition) -> Iterator[ShownNode]:
    """Yield what each node shows, by id."""
    names = ask_all("a look at the nodes", lambda _: partition.read(node_ids))

    def ask(some: Sequence[str]) -> Sequence[ShownNode]:
        return ask_all("a look at some of them", lambda _: partition.read(shown_nodes, some))

    for page in paged(names, ask, size_of_node):
        yield from page


def active_applications(ask_all: AskAll, partition: Partition) -> Iterator[ShownApplication]:
    """Yield what each active application shows, in the order of their arrival."""
    listed = ask_all("a look at the applications", lambda _: partition.read(listed_applications))
    names = [entry.application_id for entry in listed.active]

    def ask(some: Sequence[str]) -> Sequence[ShownApplication]:
        return ask_all("a look at some of them", lambda _: partition.read(shown_active, some))

    for page in paged(names, ask, size_of_application):
        yield from page


class HealthCheck(NamedTuple):
    """The outcome of one check."""

    name: str
    description: str
    succeeded: bool
    diagnosis: str


class HealthReport(NamedTuple):
    """The outcome of all checks."""

    made_at_ns: int
    """Nanoseconds since 1970."""
    checks: tuple[HealthCheck, ...]

    @property
    def healthy(self) -> bool:
        """Whether all checks have succeeded."""
        return all(check.succeeded for check in self.checks)


def health_document(report: HealthReport) -> HealthDocument:
    """Return the document of a report, as the REST interface shows it."""
    return {
        "Healthy": report.healthy,
        "HealthChecks": [
            {
                "Name": check.name,
                "Succeeded": check.succeeded,
                "Description": check.description,
                "DiagnosisMessage": check.diagnosis,
            }
            for check in report.checks
        ],
    }


_JOIN_SECONDS: Final = 5
HISTORY_MAX: Final = 1440
"""How many entries are kept; the oldest one is dropped for a new one."""
HISTORY_SECONDS: Final = 60
"""The time between two entries."""


@final
class HealthWatch:
    """Watches over one scheduler, from the first registration on.

    Args:
        check: Checks the health.
        record: Adds to the history.
        interval_seconds: Returns how long it is from one check to the next; not above 0: none follows.
        log: Gets what goes wrong.
    """

    def __init__(
        self,
        check: Callable[[], object],
        record: Callable[[], object],
        interval_seconds: Callable[[], float],
        log: Log,
    ) -> None:
        self._check = check
        self._record = record
        self._interval_seconds = interval_seconds
        self._log = log
        self._changed = threading.Event()
        self._closed = False
        self._thread: threading.Thread | None = None
        self._checked_at: float | None = None
        self._record_at: float | None = None

    def wake(self) -> None:
        """Start if it has not started; otherwise take a changed interval. One thread at a time calls."""
        if self._thread is None and not self._closed:
            self._thread = threading.Thread(target=self._run, name="licorne-watch", daemon=True)
            self._thread.start()
        self._changed.set()

    def check_soon(self) -> None:
        """Check the health as soon as may be; any thread calls."""
        self._checked_at = None
        self._changed.set()

    def close(self) -> None:
        """End the thread; wait for it, unless it is the thread that calls."""
        self._closed = True
        self._changed.set()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(_JOIN_SECONDS)

    def step(self, now: float) -> float:
        """Do what is due; return in how many seconds something is due again.

        Args:
            now: Seconds since any moment.
        """
        interval = self._interval_seconds()
        if self._checked_at is None or (interval > 0 and now >= self._checked_at + interval):
            self._checked_at = now
            self._do(self._check)
        if self._record_at is None:
            self._record_at = now + HISTORY_SECONDS
        elif now >= self._record_at:
            self._record_at += HISTORY_SECONDS
            self._do(self._record)
        checked_at = now if self._checked_at is None else self._checked_at
        next_at = self._record_at if interval <= 0 else min(self._record_at, checked_at + interval)
        return max(next_at - now, 0)

    def _run(self) -> None:
        while not self._closed:
            self._changed.clear()
            self._changed.wait(self.step(monotonic()))

    def _do(self, step: Callable[[], object]) -> None:
        try:
            step()
        except RequestError:
            pass  # The scheduler is being stopped.
        except Exception:  # noqa: BLE001 - it is logged, and the next one is tried
            self._log.exception("a health check or its history failed, please report")


class _Entry(NamedTuple):
    time_ns: int
    applications: int
    containers: int


@final
class History:
    """The history of one scheduler. One thread at a time adds, any thread reads."""

    def __init__(self) -> None:
        self._entries: deque[_Entry] = deque(maxlen=HISTORY_MAX)

    def add(self, time_ns: int, *, applications: int, containers: int) -> None:
        """Add how many applications run, and how many allocations there are."""
        self._entries.append(_Entry(time_ns, applications, containers))

    def applications(self) -> list[ApplicationCountDocument]:
        """Return the documents of the applications, the oldest first."""
        return [
            {"timestamp": entry.time_ns, "totalApplications": str(entry.applications)}
            for entry in self._entries.copy()
        ]

    def containers(self) -> list[ContainerCountDocument]:
        """Return the documents of the containers, the oldest first."""
        return [
            {"timestamp": entry.time_ns, "totalContainers": str(entry.containers)}
            for entry in self._entries.copy()
        ]
