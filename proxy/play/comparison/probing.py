"""Ask a simulation why asks wait: just before one of its decisions, and at moments of its time.

The core of the simulation runs one cycle at a time where it is asked, so that the answers are exact. They are
those of `licorne explain`; nothing of the run changes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final, final

from ....model.errors import LicorneError
from ....model.explanation import Explanation
from ...core.explanation.one_line import explanation_line
from ...core.scheduler.answering.asking import QueueAndUser
from ...si.api import SchedulerAPI
from ..simulation.decisions import Decision, Decisions
from ..simulation.reporting.run_series import QueueBounds
from ..simulation.scheduler_core import SchedulerCore

_CYCLE_MAX: Final = 16
"""How many decisions one cycle makes at most, in a run whose answers are exact."""


@final
@dataclass(slots=True, kw_only=True)
class Probes:
    """What to ask one simulation, and its answers.

    `number` is the decision before which the asks of `decisions` are explained, at the moment `at_ns`. The
    answers are in `before`, by ask; an ask that is not known then has none. `moments` are the applications to
    explain at each moment, when the scheduler can do nothing more; their lines are in `lines`.
    """

    number: int
    at_ns: int
    decisions: Collection[Decision]
    moments: Mapping[int, Collection[str]]
    before: dict[str, Explanation] = field(default_factory=dict)
    lines: dict[tuple[int, str], str] = field(default_factory=dict)


@final
class ProbedCore:
    """A scheduler that is asked while it is simulated; a `Core`.

    Args:
        core: The scheduler; it is closed with this.
        written: The decisions of the simulation, as it writes them.
        probes: What is asked, and where the answers go.
    """

    def __init__(self, core: SchedulerCore, written: Decisions, probes: Probes) -> None:
        self._core = core
        self._written = written
        self._probes = probes
        self._origin_ns = core.now_ns()

    @property
    def api(self) -> SchedulerAPI:
        """The interface for resource managers."""
        return self._core.api

    def now_ns(self) -> int:
        """Return the virtual time, nanoseconds since 1970."""
        return self._core.now_ns()

    def run_until_idle(self) -> int:
        """Run until nothing more happens, and ask what is to be asked at this moment."""
        probes, now_ns = self._probes, self._core.now_ns() - self._origin_ns
        results = self._by_cycles() if now_ns == probes.at_ns else self._core.run_until_idle()
        for application in probes.moments.get(now_ns, ()):
            explanation = self._explained(application)
            if explanation is not None:
                probes.lines[now_ns, application] = explanation_line(explanation)
        return results

    def next_deadline_ns(self) -> int | None:
        """Return when something is due next, `None` if nothing is."""
        return self._core.next_deadline_ns()

    def queue_and_user(self, application_id: str, rm_id: str) -> QueueAndUser | None:
        """Return where an application was placed and whose it is, `None` if it is not known."""
        return self._core.queue_and_user(application_id, rm_id)

    def queue_bounds(self) -> dict[str, QueueBounds]:
        """Return the guarantee and the maximum of each queue, by its path."""
        return self._core.queue_bounds()

    def advance_to(self, now_ns: int) -> None:
        """Move the clock, firing everything that is due on the way."""
        self._core.advance_to(now_ns)

    def close(self) -> None:
        """End the scheduler."""
        self._core.close()

    def _by_cycles(self) -> int:
        """Run until nothing more happens, and explain the asks before the cycle with the decision."""
        scheduler, results = self._core.scheduler, 0
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
        """Explain the asks as they are now, if the decision can be the next one."""
        missing = self._probes.number - 1 - len(self._written)
        if not 0 <= missing < _CYCLE_MAX:
            return
        self._probes.before.clear()
        for decision in self._probes.decisions:
            explanation = self._explained(decision.application)
            if explanation is not None:
                self._probes.before[decision.ask] = explanation

    def _explained(self, application_id: str) -> Explanation | None:
        """Return the explanation of an application; `None` if it is not known, or several are."""
        try:
            return self._core.scheduler.explain(application_id)
        except LicorneError:
            return None
