"""The questions to a remote scheduler, and its steps if it is stepped, as `Scheduler` has them."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from ...model.configuration.extra import ExtraConfig
from ...model.explanation import Explanation
from ...model.explanation.dry_run import DryRun
from ...model.state.quarantine import Quarantined
from ...model.values.documents import Document
from ..explanation.value_trees import value_from_json
from ..scheduler.callback_threads import CallbackThreads
from ..si import licorne_v1_pb2 as v1
from ..si import si_pb2 as si

if TYPE_CHECKING:
    from ..scheduler.questions import QueueAndUser

__all__ = ["RemoteQuestions"]


class RemoteSteps(ABC):
    """The steps of a stepped scheduler; one that runs by itself refuses them. See `Stepping`."""

    @abstractmethod
    def _call(self, message: v1.ManagerMessage) -> v1.Answer:
        """Make a call and wait for its answer."""

    def _step(self, method: v1.Step.Method, argument: int | None = None) -> int | None:
        answer = self._call(v1.ManagerMessage(step=v1.Step(method=method, argument=argument)))
        return answer.number if answer.HasField("number") else None

    def now_ns(self) -> int:
        """Return the scheduler's time, nanoseconds since 1970."""
        return self._step(v1.Step.NOW) or 0

    def deliver(self) -> int:
        """Deliver all announcements; return how many callbacks there were."""
        return self._step(v1.Step.DELIVER) or 0

    def schedule(self, cycles: int | None = None) -> int:
        """Run cycles until one gives no result in any partition, at most so many; return how many did."""
        return self._step(v1.Step.SCHEDULE, cycles) or 0

    def run_until_idle(self) -> int:
        """Deliver and schedule until nothing more happens; return how many cycles gave a result."""
        return self._step(v1.Step.RUN_UNTIL_IDLE) or 0

    def next_deadline_ns(self) -> int | None:
        """Return when the next timer or check is due on the virtual clock, `None` if none is."""
        return self._step(v1.Step.NEXT_DEADLINE)

    def next_timer_ns(self) -> int | None:
        """Return when the next timer is due on the virtual clock, `None` if none runs."""
        return self._step(v1.Step.NEXT_TIMER)

    def fire_next(self) -> None:
        """Move the virtual clock to the next timer and fire it, without delivering what follows."""
        self._step(v1.Step.FIRE_NEXT)

    def advance_to(self, time_ns: int) -> None:
        """Move the virtual clock, firing everything that is due on the way, and deliver after each."""
        self._step(v1.Step.ADVANCE_TO, time_ns)

    def inspect_outstanding(self) -> None:
        """Look for asks that wait for room in the cluster, and report them to the RMs."""
        self._step(v1.Step.INSPECT_OUTSTANDING)

    def preempt_over_quota(self) -> None:
        """Enforce maxima that were lowered and are due, where a partition is configured to."""
        self._step(v1.Step.PREEMPT_OVER_QUOTA)


class RemoteQuestions(RemoteSteps):
    """The questions of `Scheduler`; a predicate must not ask them, since its partition waits for it."""

    _callback_threads: CallbackThreads

    def _ask_question(self, name: str, question: v1.Question) -> Any:
        self._callback_threads.refuse(name)
        return value_from_json(self._ask_raw(question, as_value=True))

    def _ask_raw(self, question: v1.Question, *, as_value: bool) -> str:
        question.as_value = as_value
        return self._call(v1.ManagerMessage(question=question)).json

    def explain(
        self, application_id: str, *, rm_id: str | None = None, partition: str | None = None
    ) -> Explanation:
        """Explain why an application waits; see `Scheduler.explain`.

        Raises:
            RequestError: No such application is known, or more than one.
        """
        asked = v1.Explain(application_id=application_id, rm_id=rm_id, partition=partition)
        explanation: Explanation = self._ask_question("an explanation", v1.Question(explain=asked))
        return explanation

    def explain_ask(
        self,
        application_id: str,
        allocation_key: str,
        *,
        rm_id: str | None = None,
        partition: str | None = None,
    ) -> Explanation:
        """Explain one ask of an application, waiting or placed; the explanation has this ask only.

        Raises:
            RequestError: No such application or ask is known, or more than one application.
        """
        asked = v1.Explain(
            application_id=application_id, allocation_key=allocation_key, rm_id=rm_id, partition=partition
        )
        explanation: Explanation = self._ask_question("an explanation", v1.Question(explain=asked))
        return explanation

    def queue_and_user(
        self, application_id: str, *, rm_id: str | None = None, partition: str | None = None
    ) -> QueueAndUser | None:
        """Return the queue that placement put an application in, and its user; `None` if it is not known.

        Raises:
            RequestError: There is no such partition.
        """
        asked = v1.Explain(application_id=application_id, rm_id=rm_id, partition=partition)
        found: QueueAndUser | None = self._ask_question(
            "a look at an application", v1.Question(queue_and_user=asked)
        )
        return found

    def dry_run(
        self,
        *,
        application: si.AddApplicationRequest | None = None,
        ask: si.Allocation | None = None,
        rm_id: str | None = None,
    ) -> DryRun:
        """Find out where a new application, or a new ask, would go if it came now; nothing changes.

        Raises:
            RequestError: Neither is given, they do not belong together, or no partition knows them.
        """
        asked = v1.DryRun(application=application, ask=ask, rm_id=rm_id)
        run: DryRun = self._ask_question("a dry run", v1.Question(dry_run=asked))
        return run

    def snapshot(self, *, rm_id: str | None = None) -> Document:
        """Return the documents of all partitions, or of those of one RM, as the REST interface shows them.

        Raises:
            RequestError: There is no connection, or a predicate asks.
        """
        self._callback_threads.refuse("a snapshot")
        asked = v1.Snapshot(rm_id=rm_id)
        document: Document = json.loads(self._ask_raw(v1.Question(snapshot=asked), as_value=False))
        return document

    def resource_managers(self) -> Any:
        """Return the resource managers that have registered, with their states."""
        return self._ask_question("a list of resource managers", v1.Question(resource_managers=v1.Empty()))

    def forget_manager(self, rm_id: str) -> None:
        """Forget a resource manager that has stopped, with its partitions and all that is counted of it.

        Raises:
            RequestError: It has not stopped, or no such one has registered.
        """
        self._callback_threads.refuse("the end of a resource manager")
        self._call(v1.ManagerMessage(forget=v1.Forget(rm_id=rm_id)))

    def quarantined(self) -> tuple[Quarantined, ...]:
        """Return the applications and nodes that broke and are excluded from scheduling, by partition."""
        found: tuple[Quarantined, ...] = self._ask_question(
            "a question for what is quarantined", v1.Question(quarantined=v1.Empty())
        )
        return found

    def extra_configuration(self, rm_id: str) -> ExtraConfig:
        """Return the settings of a resource manager that are not in its queues, as they are in effect.

        Raises:
            RequestError: No such resource manager has registered.
        """
        asked = v1.ExtraConfiguration(rm_id=rm_id)
        found: ExtraConfig = self._ask_question(
            "a question for the extra configuration", v1.Question(extra_configuration=asked)
        )
        return found

    def validate(self) -> None:
        """Have the scheduler assert every invariant of every partition.

        Raises:
            AssertionError: One does not hold; the message says which.
        """
        self._ask_question("a validation", v1.Question(validate=v1.Empty()))
