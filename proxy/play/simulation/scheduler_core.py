"""The scheduler of this package as the core of a simulation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

from ....model.configuration.queue_properties import evaluate
from ....model.queues.use_order import KeptUse
from ....model.values.documents import Json
from ...core.resolvers.resolver import UserResolver
from ...core.scheduler.answering.asking import QueueAndUser
from ...core.scheduler.engine_names import EngineName
from ...core.scheduler.scheduler import Scheduler
from ...si.api import SchedulerAPI
from .reporting.decayed_fairness import FairTerms
from .reporting.run_series import QueueBounds


@final
class SchedulerCore:
    """A stepped scheduler; a `Core`. A resolver that is given replaces the configured ones.

    Raises:
        LicorneError: The engine cannot have so many threads.
    """

    def __init__(
        self,
        engine: EngineName,
        resolver: UserResolver | None = None,
        threads: int | None = None,
        kept_use: Mapping[str, KeptUse] | None = None,
    ) -> None:
        self._scheduler = Scheduler(
            engine=engine, stepped=True, threads=threads, resolver=resolver, kept_use=kept_use
        )

    @property
    def scheduler(self) -> Scheduler:
        """The scheduler itself, for questions."""
        return self._scheduler

    @property
    def api(self) -> SchedulerAPI:
        """The interface for resource managers."""
        return self._scheduler

    def now_ns(self) -> int:
        """Return the virtual time, nanoseconds since 1970."""
        return self._scheduler.now_ns()

    def run_until_idle(self) -> int:
        """Deliver and schedule until nothing more happens; return how many cycles gave a result."""
        return self._scheduler.settle()

    def next_deadline_ns(self) -> int | None:
        """Return when something is due next, `None` if nothing is."""
        return self._scheduler.next_deadline_ns()

    def queue_and_user(self, application_id: str, rm_id: str) -> QueueAndUser | None:
        """Return where an application was placed and whose it is, `None` if it is not known."""
        return self._scheduler.queue_and_user(application_id, rm_id=rm_id)

    def queue_bounds(self) -> dict[str, QueueBounds]:
        """Return the guarantee and the maximum of each queue, by its path; of equal paths, one."""
        limits: dict[str, QueueBounds] = {}
        roots = self._scheduler.snapshot()["queues"]
        assert isinstance(roots, dict), "the queues are by partition"
        unread = list(roots.values())
        while unread:
            queue = unread.pop()
            assert isinstance(queue, dict), "a queue is a document"
            children = queue.get("children", [])
            assert isinstance(children, list), "children are documents"
            unread += children
            limits[str(queue["queuename"])] = QueueBounds(
                _quantities(queue.get("guaranteedResource")),
                _quantities(queue.get("maxResource")),
                _fair_terms(queue.get("properties"), is_leaf=queue["isLeaf"] is True),
            )
        return limits

    def advance_to(self, now_ns: int) -> None:
        """Move the clock, firing everything that is due on the way."""
        self._scheduler.advance_to(now_ns)

    def close(self) -> None:
        """End the scheduler."""
        self._scheduler.stop()


def _fair_terms(document: Json, *, is_leaf: bool) -> FairTerms:
    """Return what the properties of a queue say about fair share."""
    properties = document if isinstance(document, dict) else {}
    texts = {name: text for name, text in properties.items() if isinstance(text, str)}
    read = evaluate(texts, is_leaf=is_leaf)
    half_life_ns = None if is_leaf else read.fair_half_life_ns
    return FairTerms(half_life_ns, read.fair_count.counts_all, read.fair_weight or 1)


def _quantities(document: Json) -> dict[str, int]:
    """Return the amounts of a document, none of `None`."""
    amounts = document if isinstance(document, dict) else {}
    return {name: amount for name, amount in amounts.items() if isinstance(amount, int)}
