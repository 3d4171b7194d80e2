"""The calls of a session that ask the scheduler something, or step it; their answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Final, final

import grpc

from ...model.configuration.positions import Position
from ...model.errors import RequestError
from ...model.values.documents import Json
from ..explanation.documents import document_of
from ..explanation.dry_run_text import dry_run_document
from ..explanation.value_trees import value_to_json
from ..si import licorne_v1_pb2 as v1
from .statuses import StatusError

if TYPE_CHECKING:
    from ..scheduler.scheduler import Scheduler
    from .access import Peer

__all__ = ["SessionCalls"]


@final
class SessionCalls:
    """Answers the questions of one peer; one that is bound to an RM gets answers about that RM alone."""

    def __init__(self, scheduler: Scheduler, peer: Peer) -> None:
        self._scheduler = scheduler
        self._peer = peer

    def ask(self, question: v1.Question) -> v1.Answer:
        """Answer a question.

        Raises:
            LicorneError: It is refused.
            AssertionError: The scheduler was asked to check its invariants, and one does not hold.
        """
        kind = question.WhichOneof("body")
        if kind is None:
            raise RequestError("a question without a body")
        value, document = getattr(self, f"_{kind}")(question)
        text = value_to_json(value) if question.as_value else json.dumps(document, ensure_ascii=False)
        return v1.Answer(json=text)

    def _rm_id(self, given: str | None) -> str | None:
        """Return the RM that a question is about, `None` for any.

        Raises:
            StatusError: The peer may not ask about it.
        """
        if given is None:
            return self._peer.rm_id
        self._peer.check_may_speak_for(given)
        return given

    def _explain(self, question: v1.Question) -> tuple[object, Json]:
        asked = question.explain
        where = {
            "rm_id": self._rm_id(asked.rm_id if asked.HasField("rm_id") else None),
            "partition": asked.partition if asked.HasField("partition") else None,
        }
        if asked.HasField("allocation_key"):
            explanation = self._scheduler.explain_ask(asked.application_id, asked.allocation_key, **where)
        else:
            explanation = self._scheduler.explain(asked.application_id, **where)
        return explanation, document_of(explanation, _where)

    def _queue_and_user(self, question: v1.Question) -> tuple[object, Json]:
        asked = question.queue_and_user
        found = self._scheduler.queue_and_user(
            asked.application_id,
            rm_id=self._rm_id(asked.rm_id if asked.HasField("rm_id") else None),
            partition=asked.partition if asked.HasField("partition") else None,
        )
        return found, None if found is None else {**found._asdict(), "groups": [*found.groups]}

    def _dry_run(self, question: v1.Question) -> tuple[object, Json]:
        asked = question.dry_run
        run = self._scheduler.dry_run(
            application=asked.application if asked.HasField("application") else None,
            ask=asked.ask if asked.HasField("ask") else None,
            rm_id=self._rm_id(asked.rm_id if asked.HasField("rm_id") else None),
        )
        return run, dry_run_document(run, _where)

    def _snapshot(self, question: v1.Question) -> tuple[object, Json]:
        asked = question.snapshot
        rm_id = self._rm_id(asked.rm_id if asked.HasField("rm_id") else None)
        document = self._scheduler.snapshot(rm_id=rm_id)
        return document, document

    def _resource_managers(self, _: v1.Question) -> tuple[object, Json]:
        known = self._scheduler.resource_managers()
        shown = tuple(each for each in known if self._peer.rm_id in (None, each.rm_id))
        return shown, [{**asdict(each), "state": each.state.value} for each in shown]

    def _quarantined(self, _: v1.Question) -> tuple[object, Json]:
        self._refuse_bound("what is quarantined")
        found = self._scheduler.quarantined()
        return found, [{**asdict(each), "kind": each.kind.value} for each in found]

    def _validate(self, _: v1.Question) -> tuple[object, Json]:
        self._refuse_bound("the invariants of all partitions")
        self._scheduler.validate()
        return None, None

    def _extra_configuration(self, question: v1.Question) -> tuple[object, Json]:
        rm_id = question.extra_configuration.rm_id
        self._peer.check_may_speak_for(rm_id)
        found = self._scheduler.extra_configuration(rm_id)
        return found, {
            **{field.name: getattr(found, field.name) for field in fields(found)},
            "log_levels": {name: level.name for name, level in found.log_levels.items()},
            "texts": dict(found.texts),
        }

    def _refuse_bound(self, question: str) -> None:
        """Refuse a question about all RMs to a peer that is bound to one.

        Raises:
            StatusError: It is (PERMISSION_DENIED).
        """
        if self._peer.rm_id is not None:
            text = f"a question for {question} is for peers that may speak for all RMs"
            raise StatusError(grpc.StatusCode.PERMISSION_DENIED, text)

    def step(self, step: v1.Step) -> v1.Answer:
        """Step a stepped scheduler, or return its time.

        Raises:
            LicorneError: It is not stepped, or does not know the step.
        """
        argument = step.argument if step.HasField("argument") else None
        if step.method != v1.Step.NOW:
            self._refuse_bound("a step")
        run = _STEPS.get(step.method)
        if run is None:
            raise RequestError(f"unknown step {step.method}")
        if step.method == v1.Step.ADVANCE_TO and argument is None:
            raise RequestError("the step ADVANCE_TO needs a time")
        number = run(self._scheduler, argument)
        return v1.Answer() if number is None else v1.Answer(number=number)


def _where(position: Position) -> str:
    """Return how an answer names a place in the configuration."""
    return f"line {position.line}"


_STEPS: Final[Mapping[int, Callable[[Scheduler, int | None], int | None]]] = {
    v1.Step.NOW: lambda scheduler, _: scheduler.now_ns(),
    v1.Step.DELIVER: lambda scheduler, _: scheduler.deliver(),
    v1.Step.SCHEDULE: lambda scheduler, cycles: scheduler.schedule(cycles),
    v1.Step.RUN_UNTIL_IDLE: lambda scheduler, _: scheduler.run_until_idle(),
    v1.Step.ADVANCE_TO: lambda scheduler, time_ns: scheduler.advance_to(time_ns or 0),
    v1.Step.NEXT_DEADLINE: lambda scheduler, _: scheduler.next_deadline_ns(),
    v1.Step.NEXT_TIMER: lambda scheduler, _: scheduler.next_timer_ns(),
    v1.Step.FIRE_NEXT: lambda scheduler, _: scheduler.fire_next(),
    v1.Step.INSPECT_OUTSTANDING: lambda scheduler, _: scheduler.inspect_outstanding(),
    v1.Step.PREEMPT_OVER_QUOTA: lambda scheduler, _: scheduler.preempt_over_quota(),
}
