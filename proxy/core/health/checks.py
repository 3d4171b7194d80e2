"""The checks of a running scheduler.

What concerns a whole partition is taken from one turn of it, and what concerns one node as well. Allocations
that only a node or only an application knows are looked for in pieces, while the partition works in between.
What seems to be one is looked at again in one turn, so that nothing is reported that merely moved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple, Protocol, TypeVar, final

from ....model.applications.report import ShownApplication
from ....model.errors import RequestError
from ....model.nodes.node import NodeFacts
from ....model.partition import Partition
from ....model.policies.watching import PolicyFigures
from ....model.resources.comparisons import equals, equals_or_empty, has_negative
from ....model.resources.resource import add, total_of
from ....model.views.rows import PartitionFigures, partition_figures
from ....model.views.shown import (
    PlacedOn,
    ShownNode,
    listed_applications,
    node_ids,
    shown_active,
    shown_nodes,
    unknown_to_applications,
    unknown_to_nodes,
)
from ..documents.fields import paged, size_of_application, size_of_node
from ..documents.monitoring import HealthDocument
from ..metrics.figures import Metrics

_SUSPECTS_MAX: Final = 100
"""How many allocations are looked at again in one turn."""
_RECENT_NS: Final = 60 * 10**9
"""For how long a policy that has failed is reported."""


class _Findings(NamedTuple):
    """What was found in one partition."""

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
        metrics: What the scheduler has counted.
        lost_managers: Returns which resource managers are lost, and why.
        broken_interfaces: What does not answer now, and why.
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
            with suppress(RequestError):  # It has ended; or the scheduler has, and the next question says so.
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
        """Put a question to all partitions; `question` says in words what it is.

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
