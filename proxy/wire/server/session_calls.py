"""The calls of a session that ask the scheduler something, or step it; their answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields
from enum import Enum
from typing import Any, Final, final

import grpc

from ....model.configuration.positions import Position
from ....model.errors import RequestError
from ....model.values.documents import Json
from ...base.files.json_text import JsonError, parse_json
from ...core.explanation.documents import document_of, next_asks_document, prospect_document
from ...core.explanation.dry_run import dry_run_document
from ...core.health.checks import health_document
from ...core.scheduler.answering.questions import TITLES
from ...core.scheduler.answering.sent_values import VALUE_VERSION, value_to_json
from ...si import licorne_v1_pb2 as v1
from .access import Peer
from .served import ServedScheduler
from .statuses import StatusError


@final
class SessionCalls:
    """Answers the questions of one peer; one that is bound to an RM gets answers about that RM alone."""

    def __init__(self, scheduler: ServedScheduler, peer: Peer) -> None:
        self._scheduler = scheduler
        self._peer = peer

    def ask(self, question: v1.Question) -> v1.Answer:
        """Answer a question.

        Raises:
            LicorneError: It is refused.
            AssertionError: The scheduler was asked to check its invariants, and one does not hold.
        """
        if question.as_value or question.value_version not in (0, VALUE_VERSION):
            raise RequestError(
                f"the client reads answers of version {question.value_version}, this server writes "
                f"version {VALUE_VERSION}: use a client of the version of the server"
            )
        kind = question.WhichOneof("body") or ""
        self._limit(kind, question)
        value = self._scheduler.answers.answer(question)
        if kind == "resource_managers":
            value = tuple(each for each in value if self._peer.rm_id in (None, each.rm_id))
        if question.value_version:
            return v1.Answer(json=value_to_json(value))
        document = _DOCUMENTS.get(kind, _plain)(value)
        return v1.Answer(json=json.dumps(document, ensure_ascii=False))

    def _limit(self, kind: str, question: v1.Question) -> None:
        """Limit a question of a peer that is bound to an RM to that RM.

        Raises:
            StatusError: It may not ask that (PERMISSION_DENIED).
        """
        if kind in _OF_ALL:
            self._refuse_bound(TITLES[kind])
            return
        asked = getattr(question, kind) if kind else None
        if asked is None or "rm_id" not in asked.DESCRIPTOR.fields_by_name:
            return
        is_optional = asked.DESCRIPTOR.fields_by_name["rm_id"].has_presence
        if is_optional and not asked.HasField("rm_id"):
            if self._peer.rm_id is not None:
                asked.rm_id = self._peer.rm_id
        else:
            self._peer.check_may_speak_for(asked.rm_id)

    def _refuse_bound(self, question: str) -> None:
        """Refuse a question about all RMs to a peer that is bound to one.

        Raises:
            StatusError: It is (PERMISSION_DENIED).
        """
        if self._peer.rm_id is not None:
            text = f"{question} is for peers that may speak for all RMs"
            raise StatusError(grpc.StatusCode.PERMISSION_DENIED, text)

    def halt(self, change: str, halt: v1.Halt) -> v1.Answer:
        """Pause or stop an RM.

        Raises:
            LicorneError: The peer may not speak for it, or it has not registered.
        """
        self._peer.check_may_speak_for(halt.rm_id)
        method = self._scheduler.pause_manager if change == "pause" else self._scheduler.stop_manager
        return v1.Answer(changed=method(halt.rm_id, halt.reason))

    def take_kept_use(self, kept: v1.KeptUse) -> None:
        """Take what partitions of an RM have used before.

        Raises:
            LicorneError: The peer may not speak for it, or the text is not that.
        """
        self._peer.check_may_speak_for(kept.rm_id)
        try:
            usage = parse_json(kept.json)
        except JsonError as error:
            raise RequestError(f"what RM {kept.rm_id!r} has used is no JSON: {error}") from error
        self._scheduler.take_kept_use(kept.rm_id, usage)

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


_STEPS: Final[Mapping[int, Callable[[ServedScheduler, int | None], int | None]]] = {
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
    v1.Step.DELIVER_EVENTS: lambda scheduler, _: scheduler.deliver_events(),
    v1.Step.RECORD_HISTORY: lambda scheduler, _: scheduler.record_history(),
}
_OF_ALL: Final = frozenset({"quarantined", "validate", "health", "check_health", "recorded_in", "figures"})
"""The questions about all RMs together."""


def _plain(value: Any) -> Json:
    """Return the document of an answer that has none of its own: its fields under their names."""
    document: Json = json.loads(json.dumps(value, default=_known_to_json))
    return document


def _known_to_json(value: Any) -> object:
    """Return what JSON does not know as what it knows."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return dict(value)
    return _by_name(value)


def _by_name(value: Any) -> dict[str, object]:
    return {field.name: getattr(value, field.name) for field in fields(value)}


_DOCUMENTS: Final[Mapping[str, Callable[[Any], object]]] = {
    "explain": lambda explanation: document_of(explanation, _where),
    "dry_run": lambda run: dry_run_document(run, _where),
    "would_preempt": lambda prospects: [prospect_document(each) for each in prospects],
    "next_asks": lambda found: [next_asks_document(each, _where) for each in found],
    "queue_and_user": lambda found: None if found is None else {**found._asdict()},
    "health": lambda report: None if report is None else health_document(report),
    "check_health": health_document,
    "figures": lambda figures: json.loads(value_to_json(figures)),
    "extra_configuration": lambda found: _plain(
        _by_name(found) | {"log_levels": {name: level.name for name, level in found.log_levels.items()}}
    ),
}
"""The documents that the command line prints, of the answers that have their own."""
