"""The monitoring of a scheduler: its figures, its health, and its history."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import final

from .....actors.engines.engine import Engine
from .....model.applications.effects import ApplicationState
from .....model.errors import error_text
from .....model.explanation.first_blockers import WaitingSums, waiting_sums
from .....model.partition import Partition
from .....model.policies.policies import PolicyFacts
from .....model.policies.watching import PointFailures, PolicyFigures
from .....model.queues.use_order import KeptUse
from .....model.values.documents import Document, Json
from .....model.views.rows import PartitionFigures, partition_figures
from .....model.views.shown import use_to_keep
from ....si.api import StateDumpPlugin
from ...health import AskAll, HealthChecks, HealthReport, HealthWatch, History
from ...metrics.figures import SchedulerFigures
from ..managers.extra_configurations import ExtraConfigurations
from ..managers.managers import Managers
from .questions import ask_each
from .views import LiveView


@final
class Monitoring:
    """The monitoring of one scheduler: its server reads it.

    A scheduler that is not stepped checks its health when a resource manager registers for the first time,
    and then every `health.checkInterval`, and adds to its history every minute. A stepped one does so when it
    is asked to.
    """

    def __init__(
        self,
        ask_all: AskAll,
        engine: Engine,
        managers: Managers,
        extra: ExtraConfigurations,
        now_ns: Callable[[], int],
    ) -> None:
        self._ask_all = ask_all
        self._engine = engine
        self._managers = managers
        self._extra = extra
        self.now_ns = now_ns
        """Returns the time, nanoseconds since 1970."""
        self.history = History()
        """How many applications and containers there were, minute by minute."""
        self.dumping = threading.Lock()
        """Held while a state dump is made: one at a time."""
        self.broken_interfaces: dict[str, str] = {}
        """Interfaces that do not answer now, such as `REST`, and why: its server writes it, health checks
        read it."""
        self.history_file: Path | None = None
        """The file of the history, for the page; what writes the history sets it."""
        self.report: HealthReport | None = None
        """Of the last health check."""
        self.live_view = LiveView(ask_all, managers.life_of)
        """The views with which watchers read the state, see `docs/page.md`."""
        self._checks = HealthChecks(
            ask_all, managers.metrics, managers.lost, self.broken_interfaces, self.policies
        )
        managers.when_policy_fails = self._note_policy_failure
        self._checking = threading.Lock()
        log = extra.log("core.scheduler.health")
        self._watch = HealthWatch(self.check_health, self.record_history, extra.health_check_seconds, log)
        self.wake = self._watch.wake
        """Takes note of a registration or of another configuration; not for one that is stepped."""
        self.check_soon = self._watch.check_soon
        self.close = self._watch.close

    def figures(self) -> SchedulerFigures:
        """Return all that its metrics are made of, each partition as of one moment.

        Raises:
            RequestError: the scheduler has been stopped, or a predicate asks.
        """

        def ask(partitions: Sequence[Partition]) -> SchedulerFigures:
            load = self._engine.load(partitions)
            answers = ask_each(partitions, _figures)
            counted = self._managers.events.counters()
            managers, forgotten = self._managers.figures(), self._managers.metrics.forgotten.figures()
            figures = tuple(figures for _, figures in answers)
            waiting: Counter[tuple[str, str]] = Counter()
            oldest_ns: dict[str, int] = {}
            for _, sums in ask_each(partitions, _waiting):
                waiting.update(sums.counts)
                for path, wait_ns in sums.oldest_ns.items():
                    oldest_ns[path] = max(oldest_ns.get(path, 0), wait_ns)
            return SchedulerFigures(
                *(figures, managers, load, counted, forgotten, self.policies(), waiting),
                oldest_waits_ns=oldest_ns,
                configurations=self._managers.metrics.configurations.figures(),
            )

        return self._ask_all("a question for figures", ask)

    def policies(self) -> dict[str, PolicyFigures]:
        """Return what each policy has answered so far; from any thread, without waiting."""
        return {name: counts.figures() for name, counts in self._managers.policies.counts.items()}

    def policy_failures(self) -> dict[str, dict[str, PointFailures]]:
        """Return the failures so far by policy and method; from any thread, without waiting."""
        return {name: counts.failures() for name, counts in self._managers.policies.counts.items()}

    def policy_facts(self) -> Mapping[str, PolicyFacts]:
        """Return what the object of each policy has."""
        return self._managers.policies.facts

    def _note_policy_failure(self) -> None:
        """Check the health soon, unless it is known already that policies fail."""
        if not self._checks.policies_failed:
            self.check_soon()

    def keep_use(self) -> dict[str, KeptUse]:
        """Return what all partitions have used, by full name, those that are not here now included.

        A partition that is made again continues from it.

        Raises:
            RequestError: the scheduler has been stopped, or a predicate asks.
        """

        def ask(partitions: Sequence[Partition]) -> dict[str, KeptUse]:
            return {partition.name: kept for partition, kept in ask_each(partitions, _kept_use)}

        kept = {**self._managers.kept_use, **self._ask_all("a question for the past use", ask)}
        self._managers.kept_use = kept
        return kept

    def is_busy(self) -> bool:
        """Return whether a thread of the engine works or has to; from any thread, without waiting."""
        load = self._engine.load(())
        return load.queued > 0 or load.threads_waiting < load.threads

    def announced(self) -> int:
        """Return how much was sent to resource managers so far; it grows while things happen."""
        return self._managers.metrics.announced()

    def check_health(self) -> HealthReport:
        """Check the health now; `report` returns its result from now on.

        Raises:
            RequestError: the scheduler has been stopped, or a predicate asks.
        """
        with self._checking:
            report = self._checks.run(self.now_ns())
            self.report = report
        return report

    def record_history(self) -> None:
        """Add to the history how many applications run now, and how many allocations there are.

        Raises:
            RequestError: as for `check_health`.
        """
        partitions = self.figures().current
        self.history.add(
            self.now_ns(),
            applications=sum(map(_running, partitions)),
            containers=sum(partition.allocations for partition in partitions),
        )

    def log_level(self) -> str:
        """Return the most detailed level at which something is logged, in lower case."""
        return self._extra.most_detailed().name.lower()

    def manager_diagnostics(self) -> Document:
        """Return the diagnostics of the resource managers: those of one directly, of several by their ids.

        A resource manager is asked if it has the method `get_state_dump`; what it raises is shown.

        Raises:
            RequestError: a predicate asks.
        """
        threads = self._managers.callback_threads
        threads.refuse("a state dump")
        said: Document = {}
        for manager in self._managers.registered():
            if isinstance(manager.callback, StateDumpPlugin):
                with threads.callback(manager.rm_id):
                    said[manager.rm_id] = _diagnostics(manager.callback)
        if not said:
            return {"empty": "Resource Manager did not register callback"}
        (first, *others) = said.values()
        return said if others or not isinstance(first, dict) else first


def _diagnostics(plugin: StateDumpPlugin) -> Json:
    """Return the diagnostics of a resource manager, or why they cannot be read."""
    try:
        said: Json = json.loads(plugin.get_state_dump())
    except BaseException as error:  # noqa: BLE001 - whatever it raises is shown
        return {"Error": error_text(error)}
    return said


def _kept_use(partition: Partition) -> KeptUse:
    return partition.read(use_to_keep)


def _figures(partition: Partition) -> PartitionFigures:
    return partition.read(partition_figures)


def _waiting(partition: Partition) -> WaitingSums:
    return partition.read(waiting_sums)


def _running(figures: PartitionFigures) -> int:
    states = figures.active.items()
    return sum(count for (_, state), count in states if state is ApplicationState.RUNNING)
