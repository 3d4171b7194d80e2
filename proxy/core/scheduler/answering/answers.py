"""The answers to the questions of `QuestionSide`.

A question changes nothing. The partitions that it is about answer it; they ask their applications and nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeAlias, final

from .....actors.engines.engine import Engine
from .....model.cluster import Cluster
from .....model.configuration.names import did_you_mean
from .....model.errors import RequestError
from .....model.explanation import Explanation
from .....model.explanation import explain as explaining
from .....model.explanation.asks import RefusedNodes
from .....model.explanation.dry_run import (
    NEXT_ASKS_MAX,
    DryRun,
    NextAsks,
    Prospect,
    dry_run_application,
    dry_run_ask,
    next_asks,
    prospects,
)
from .....model.explanation.shared_summaries import SharedSummaries
from .....model.partition import Partition
from .....model.state.invariants import validate_partition
from .....model.state.partition_state import BrokenKind, Quarantined
from .....model.values.allocation import FOREIGN_TAG
from .....model.values.documents import Document
from .....model.values.messages import AllocationSubmission
from .....model.views.shown import application_ids, quarantined_entries
from ....si import licorne_v1_pb2 as v1
from ....si import si_pb2 as si
from ....si.api import ExplainsRefusals
from ....si.older_generation import Generation
from ....si.reading import RequestReader
from ...health import AskAll
from ...resolvers.resolver import with_groups
from ..managers.extra_configurations import ExtraConfigurations
from ..managers.managers import Manager, Managers
from ..managers.predicates import refused_nodes
from .monitoring import Monitoring
from .questions import TITLES, NotKnownError, QueueAndUser, ask_each, matching
from .state_documents import saved

_Refused: TypeAlias = "Callable[[str, Callable[[], Sequence[str]]], RefusedNodes]"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """The answers to the questions of one scheduler."""

    ask_all: AskAll
    check_running: Callable[[], None]
    cluster: Cluster
    engine: Engine
    managers: Managers
    reader: RequestReader
    extra: ExtraConfigurations
    monitoring: Monitoring
    recorded_in: str | None
    summaries: SharedSummaries = field(default_factory=SharedSummaries)
    """The summaries of nodes that explanations share."""

    def answer(self, question: v1.Question) -> Any:
        """Return the answer to a question.

        Raises:
            RequestError: It is refused, it is empty, the scheduler has been stopped, or a predicate asks.
            AssertionError: The question was whether every invariant holds, and one does not.
        """
        kind = question.WhichOneof("body")
        if kind is None:
            raise RequestError("a question without a body")
        asked = getattr(question, kind)
        of_partitions = _OF_PARTITIONS.get(kind)
        if of_partitions is None:
            return _OF_SCHEDULER[kind](self, asked)
        return self.ask_all(TITLES[kind], lambda known: of_partitions(self, known, asked))


def given(message: Any, field: str) -> Any:
    """Return an optional field of a message, `None` where it is not given."""
    return getattr(message, field) if message.HasField(field) else None


def _named(known: Sequence[Partition], asked: v1.Explain | v1.NextAsks) -> list[Partition]:
    return matching(known, given(asked, "rm_id"), given(asked, "partition"))


def _explain(answers: Answers, known: Sequence[Partition], asked: v1.Explain) -> Explanation:
    partitions, key = _named(known, asked), given(asked, "allocation_key")
    refused = partial(_refused_nodes, answers.managers)
    if key is None:
        return explain(partitions, asked.application_id, refused, answers.summaries)
    return explain_ask(partitions, asked.application_id, key, refused, answers.summaries)


def _refused_nodes(managers: Managers, rm_id: str, keys: Callable[[], Sequence[str]]) -> RefusedNodes:
    """Return the nodes that an RM refuses to asks, as far as it gives reasons for explanations."""
    manager = managers.find(rm_id)
    if manager is None or not isinstance(manager.callback, ExplainsRefusals):
        return {}
    note = partial(managers.failures.note, rm_id)
    return refused_nodes(manager.callback, keys(), managers.callback_threads, note, manager.generation)


def _would_preempt(_: Answers, known: Sequence[Partition], asked: v1.Explain) -> tuple[Prospect, ...]:
    found = ask_each(_named(known, asked), lambda each: each.read(prospects, asked.application_id))
    return tuple(prospect for _, prospects in found for prospect in prospects)


def _queue_and_user(_: Answers, known: Sequence[Partition], asked: v1.Explain) -> QueueAndUser | None:
    return queue_and_user(_named(known, asked), asked.application_id)


def _dry_run(answers: Answers, _: Sequence[Partition], asked: v1.DryRun) -> DryRun:
    managers, rm_id = answers.managers, given(asked, "rm_id")
    manager = managers.get(managers.only_id() if rm_id is None else rm_id, "dry run")
    application, ask = given(asked, "application"), given(asked, "ask")
    return dry_run(manager, answers.reader, answers.engine.blocking, application, ask)


def _next_asks(_: Answers, known: Sequence[Partition], asked: v1.NextAsks) -> tuple[NextAsks, ...]:
    if not 1 <= asked.count <= NEXT_ASKS_MAX:
        raise RequestError(f"count={asked.count} is not from 1 to {NEXT_ASKS_MAX}")
    found = ask_each(_named(known, asked), lambda each: each.read(next_asks, asked.count))
    return tuple(asks for _, asks in found)


def _snapshot(_: Answers, known: Sequence[Partition], asked: v1.Snapshot) -> Document:
    from .state_documents import snapshot  # noqa: PLC0415 - the documents of the REST interface need Pydantic

    named = sorted(known, key=lambda partition: (partition.rm_id, partition.name))
    rm_id = given(asked, "rm_id")
    return snapshot([each for each in named if rm_id in (None, each.rm_id)])


def _saved(answers: Answers, known: Sequence[Partition], asked: v1.Snapshot) -> Document:
    rm_id = given(asked, "rm_id")
    if rm_id is not None:
        answers.managers.get(rm_id, TITLES["saved"])
    return saved([each for each in known if rm_id in (None, each.rm_id)], answers.cluster.configuration_text)


def _kept_use(answers: Answers, asked: v1.Snapshot) -> Document:
    from .state_documents import of_manager, use_document  # noqa: PLC0415 - it needs Pydantic

    kept = of_manager(answers.monitoring.keep_use(), given(asked, "rm_id"))
    return use_document(kept, answers.monitoring.now_ns())


def _quarantined_in(_: Answers, known: Sequence[Partition], __: v1.Empty) -> tuple[Quarantined, ...]:
    return quarantined(known)


def _configuration_text(answers: Answers, _: Sequence[Partition], asked: v1.ManagerAsked) -> str:
    return answers.cluster.configuration_text(asked.rm_id)


def _validate(_: Answers, known: Sequence[Partition], __: v1.Empty) -> None:
    ask_each(known, lambda each: each.read(validate_partition))


def _resource_managers(answers: Answers, _: v1.Empty) -> object:
    answers.check_running()
    return answers.managers.statuses()


def _extra_configuration(answers: Answers, asked: v1.ExtraConfiguration) -> object:
    answers.check_running()
    return answers.extra.of(answers.managers.get(asked.rm_id, TITLES["extra_configuration"]).rm_id)


def _callbacks_waiting(answers: Answers, asked: v1.ManagerAsked) -> int:
    manager = answers.managers.find(asked.rm_id)
    return 0 if manager is None or manager.link is None else manager.link.backlog


_OF_PARTITIONS: Final[Mapping[str, Callable[[Answers, Sequence[Partition], Any], object]]] = {
    "explain": _explain,
    "would_preempt": _would_preempt,
    "queue_and_user": _queue_and_user,
    "dry_run": _dry_run,
    "next_asks": _next_asks,
    "snapshot": _snapshot,
    "saved": _saved,
    "quarantined": _quarantined_in,
    "configuration_text": _configuration_text,
    "validate": _validate,
}
_OF_SCHEDULER: Final[Mapping[str, Callable[[Answers, Any], object]]] = {
    "resource_managers": _resource_managers,
    "extra_configuration": _extra_configuration,
    "callbacks_waiting": _callbacks_waiting,
    "health": lambda answers, _: answers.monitoring.report,
    "check_health": lambda answers, _: answers.monitoring.check_health(),
    "recorded_in": lambda answers, _: answers.recorded_in,
    "figures": lambda answers, _: answers.monitoring.figures(),
    "kept_use": _kept_use,
}


def quarantined(partitions: Sequence[Partition]) -> tuple[Quarantined, ...]:
    """Return the broken entities, by partition."""
    return tuple(entry for _, entries in ask_each(partitions, _quarantined) for entry in entries)


def explain(
    partitions: Sequence[Partition],
    application_id: str,
    refused: _Refused,
    summaries: SharedSummaries,
    *,
    only_key: str | None = None,
) -> Explanation:
    """Return the explanation of an application, or of one ask of it.

    Args:
        partitions: The partitions that may know it.
        application_id: The application.
        refused: Asks an RM which nodes it refuses to asks; no partition waits for the answer.
        summaries: The summaries of nodes of earlier explanations.
        only_key: The only ask to explain, `None` for all.

    Raises:
        RequestError: None of the partitions knows it, or more than one do.
    """

    def explained(partition: Partition) -> Explanation | None:
        def keys() -> Sequence[str]:
            return partition.read(explaining.first_keys, application_id, only_key)

        nodes = refused(partition.rm_id, keys)
        return partition.read(
            explaining.explain, application_id, only_key=only_key, refused=nodes, summaries=summaries
        )

    return _only(partitions, explained, application_id)


def explain_ask(
    partitions: Sequence[Partition],
    application_id: str,
    allocation_key: str,
    refused: _Refused,
    summaries: SharedSummaries,
) -> Explanation:
    """Return the explanation of one ask, or of an allocation that was a victim and is gone.

    Raises:
        RequestError: None of the partitions knows the application, more than one do, or it has no such ask.
    """
    explanation = explain(partitions, application_id, refused, summaries, only_key=allocation_key)
    if explanation.ask(allocation_key) is None and not explanation.preemptions_of(allocation_key):
        keys = [ask.allocation_key for ask in explain(partitions, application_id, refused, summaries).asks]
        hint = did_you_mean(allocation_key, keys)
        raise NotKnownError(f"application {application_id} has no ask or allocation {allocation_key!r}{hint}")
    return explanation


def queue_and_user(partitions: Sequence[Partition], application_id: str) -> QueueAndUser | None:
    """Return where an application is and whose, `None` if no partition has it."""
    for _, found in ask_each(
        partitions, lambda each: each.read(explaining.queue_and_user_of, application_id)
    ):
        if found is not None and found[0]:
            queue_path, user = found
            return QueueAndUser(queue_path, user.name, user.groups)
    return None


def dry_run(
    manager: Manager,
    reader: RequestReader,
    blocking: Callable[[], AbstractContextManager[None]],
    application: si.AddApplicationRequest | None,
    ask: si.Allocation | None,
) -> DryRun:
    """Put an application, or an ask, to the partition that it would go to.

    Raises:
        RequestError: Neither is given, they do not belong together, or no partition knows them.
    """
    wanted = _read_ask(manager, reader, ask) if ask is not None else None
    if application is None:
        if wanted is None:
            raise RequestError("a dry run needs an application, an ask, or both")
        run = _partition_of(manager, wanted.partition).read(dry_run_ask, wanted)
        if run is None:
            raise RequestError(f"application {wanted.application_id!r} is not active in {wanted.partition}")
        return run
    (submission,) = reader.application_submissions(
        si.ApplicationRequest(rmID=manager.rm_id, new=[application])
    )
    if wanted is not None and wanted.application_id != submission.application_id:
        raise RequestError(
            f"ask {wanted.allocation_key!r} is of application {wanted.application_id!r}, "
            f"not of {submission.application_id!r}"
        )
    partition = _partition_of(manager, submission.partition)
    (submission,) = with_groups((submission,), manager.resolver(submission.partition), blocking)
    return partition.read(dry_run_application, submission, wanted)


def _read_ask(manager: Manager, reader: RequestReader, ask: si.Allocation) -> AllocationSubmission:
    request = si.AllocationRequest(rmID=manager.rm_id, allocations=[ask])
    (wanted,) = reader.allocation_submissions(request, Generation())
    if wanted.node_id or FOREIGN_TAG in wanted.tags:
        raise RequestError(f"a dry run is for asks: {wanted.allocation_key!r} is on a node already")
    return wanted


def _partition_of(manager: Manager, name: str) -> Partition:
    partition = manager.partitions.get(name)
    if partition is None:
        known = ", ".join(manager.partitions) or "none"
        raise RequestError(f"there is no partition {name}; the partitions are: {known}")
    return partition


def _only(
    partitions: Sequence[Partition], question: Callable[[Partition], Explanation | None], application_id: str
) -> Explanation:
    """Return the one explanation that there is."""
    answers = ask_each(partitions, question)
    for broken in quarantined(partitions):
        # Before all others: the partition may know an earlier application of that id.
        if (broken.kind, broken.name) == (BrokenKind.APPLICATION, application_id):
            raise RequestError(
                f"application {application_id!r} is quarantined: {broken.reason}; it broke by a bug "
                "of Licorne, and nothing is scheduled with it any longer: "
                "please report it, and remove it to let it go"
            )
    found = [explanation for _, explanation in answers if explanation is not None]
    if not found:
        known = [name for _, names in ask_each(partitions, _application_ids) for name in names]
        hint = did_you_mean(application_id, known)
        raise NotKnownError(
            f"application {application_id!r} is not known: it was never submitted, was removed, "
            f"or ended more than three days ago{hint}"
        )
    if len(found) > 1:
        names = ", ".join(explanation.partition for explanation in found)
        raise RequestError(f"application {application_id!r} is in several partitions, name one: {names}")
    return found[0]


def _quarantined(partition: Partition) -> tuple[Quarantined, ...]:
    return partition.read(quarantined_entries)


def _application_ids(partition: Partition) -> tuple[str, ...]:
    return partition.read(application_ids)
