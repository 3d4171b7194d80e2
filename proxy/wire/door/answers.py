"""The answers to questions to a scheduler whose partitions run on workers.

A question goes to the worker of its partition. A question about all partitions goes to each worker, and the
answers are combined.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, NoReturn, final

from ....model.configuration.extra import parse_extra_config
from ....model.errors import LicorneError, RequestError
from ....model.values.documents import Document
from ....model.values.messages import full_partition_name
from ...core.health import HealthCheck, HealthReport
from ...core.scheduler.answering.answers import given
from ...si import licorne_v1_pb2 as v1
from .link import PartitionLink
from .linked_manager import DoorUse, LinkedManager, ManagerTable, at_each
from .routing import short_name

_LOOK_SECONDS: Final = 0.1
_LOOKS_MAX: Final = 10
"""The number of checks for a worker's report of use; a stopping door asks for it, and has 5 s."""


@final
class DoorAnswers:
    """Answers questions that are messages, like `Scheduler.answers`.

    Args:
        managers: The registered RMs.
        use: The use of the partitions, as their workers last reported it.
    """

    def __init__(self, managers: ManagerTable, use: DoorUse) -> None:
        self._managers = managers
        self.use = use

    def answer(self, question: v1.Question) -> Any:
        """Return the answer to a question.

        Raises:
            RequestError: The question is refused, or a worker for it does not answer now.
            AssertionError: The question was whether every invariant holds, and one does not.
        """
        self._managers.check_running()
        kind = question.WhichOneof("body")
        if kind is None:
            raise RequestError("a question without a body")
        return _ANSWERS[kind](self, question, getattr(question, kind))

    # ------------------------------------------------------------------------- of one partition

    def _of_application(self, question: v1.Question, asked: v1.Explain) -> Any:
        """Ask the partition of an application; for an unknown application ask the first one."""
        links = self._named(asked)
        having = [link for link in links if link.has_application(asked.application_id)]
        if len(having) > 1:
            names = ", ".join(f"[{link.place.rm_id}]{link.partition}" for link in having)
            raise RequestError(
                f"application {asked.application_id!r} is in several partitions: {names}; name one of them"
            )
        found: LicorneError | None = None
        for link in having or links:
            try:
                return _asked(link, question)
            except RequestError as error:
                found = found or error
        raise found or RequestError(f"no partition has application {asked.application_id!r}")

    def _queue_and_user(self, question: v1.Question, asked: v1.Explain) -> Any:
        answers = (_asked(link, question) for link in self._named(asked))
        return next((answer for answer in answers if answer is not None), None)

    def _dry_run(self, question: v1.Question, asked: v1.DryRun) -> Any:
        manager = self._only_manager(given(asked, "rm_id"), "dry run")
        named = asked.application if asked.HasField("application") else asked.ask
        name = short_name(named.partitionName, manager.rm_id)
        link = manager.links.get(name)
        if link is None:
            known = ", ".join(full_partition_name(each, manager.rm_id) for each in manager.links) or "none"
            missing = full_partition_name(name, manager.rm_id)
            raise RequestError(f"there is no partition {missing}; the partitions are: {known}")
        return _asked(link, question)

    # ------------------------------------------------------------------------- of all partitions

    def _of_each(self, question: v1.Question, asked: v1.Explain | v1.NextAsks) -> tuple[Any, ...]:
        """Return the answers of the partitions, one after the other."""
        return tuple(entry for link in self._named(asked) for entry in _asked(link, question))

    def _of_every(self, question: v1.Question, _: v1.Empty) -> tuple[Any, ...]:
        return tuple(entry for link in self._managers.links() for entry in _asked(link, question))

    def _validate(self, question: v1.Question, _: v1.Empty) -> None:
        for link in self._managers.links():
            _asked(link, question)

    def _snapshot(self, _: v1.Question, asked: v1.Snapshot) -> Document:
        rm_id = given(asked, "rm_id")
        links = self._managers.links(rm_id)
        shared = Counter(link.partition for link in links)
        found: dict[str, Any] = {}
        for link in links:
            part: Mapping[str, Any] = _asked(link, v1.Question(snapshot=v1.Snapshot(rm_id=link.place.rm_id)))
            full = full_partition_name(link.partition, link.place.rm_id)
            for name, documents in part.items():
                if isinstance(documents, list):
                    found.setdefault(name, []).extend(documents)
                else:
                    (document,) = documents.values()
                    key = full if shared[link.partition] > 1 else link.partition
                    found.setdefault(name, {})[key] = document
        return found

    def _saved(self, _: v1.Question, asked: v1.Snapshot) -> Document:
        rm_id = given(asked, "rm_id")
        links = self._managers.links(rm_id)
        names = self._managers.ids if rm_id is None else (rm_id,)
        managers = {name: self._managers.known(name, "save").registration().config for name in names}
        parts = (_asked(link, v1.Question(saved=v1.Snapshot(rm_id=link.place.rm_id))) for link in links)
        return {"managers": {**managers}, "partitions": [one for part in parts for one in part["partitions"]]}

    def _kept_use(self, _: v1.Question, asked: v1.Snapshot) -> Document:
        """Return the use; for a partition without a worker, the last report of its last worker."""
        rm_id = given(asked, "rm_id")
        links = self._managers.links(rm_id)
        for link, used in zip(links, at_each(links, _use_of), strict=True):
            if used is not None:
                self.use.take(link.place.rm_id, used)
        return self.use.of_manager(rm_id)

    def _health(self, question: v1.Question, _: v1.Empty) -> HealthReport | None:
        """Return one report: a check succeeds if it does on all workers, and every partition has one."""
        reports: dict[str, HealthReport] = {}
        missing: list[str] = []
        for link in self._managers.links():
            name = full_partition_name(link.partition, link.place.rm_id)
            try:
                report = _asked(link, question)
            except RequestError as error:
                missing.append(str(error))
                continue
            if report is not None:
                reports[name] = report
        if not (reports or missing):
            return None
        made_at_ns = max((report.made_at_ns for report in reports.values()), default=time.time_ns())
        workers = HealthCheck(
            "Workers", "Check that each partition has a worker that runs", not missing, "; ".join(missing)
        )
        return HealthReport(made_at_ns, (workers, *_joined(reports)))

    def _figures(self, _: v1.Question, __: v1.Empty) -> NoReturn:
        raise RequestError("the door itself has no figures: ask each worker, see `places` for its address")

    # ------------------------------------------------------------------------------- of the door

    def _recorded_in(self, _: v1.Question, __: v1.Empty) -> None:
        """Return that the door records nothing; a worker may."""

    def _resource_managers(self, _: v1.Question, __: v1.Empty) -> Any:
        return self._managers.statuses()

    def _configuration_text(self, _: v1.Question, asked: v1.ManagerAsked) -> str:
        return self._managers.known(asked.rm_id, "configuration text").registration().config

    def _extra_configuration(self, _: v1.Question, asked: v1.ExtraConfiguration) -> Any:
        manager = self._managers.known(asked.rm_id, "extra configuration")
        return parse_extra_config(manager.registration().extraConfig)[0]

    def _callbacks_waiting(self, _: v1.Question, asked: v1.ManagerAsked) -> int:
        manager = self._managers.find(asked.rm_id)
        return 0 if manager is None else manager.callbacks_waiting

    # ---------------------------------------------------------------------------------- the links

    def _named(self, asked: v1.Explain | v1.NextAsks) -> list[PartitionLink]:
        """Return the links for a question.

        Raises:
            RequestError: No link matches.
        """
        rm_id, partition = given(asked, "rm_id"), given(asked, "partition")
        found = [
            link
            for link in self._managers.links()
            if rm_id in (None, link.place.rm_id)
            and (partition is None or short_name(partition, link.place.rm_id) == link.partition)
        ]
        if not found:
            raise RequestError(f"there is no partition {partition!r} of RM {rm_id!r}")
        return found

    def _only_manager(self, rm_id: str | None, what: str) -> LinkedManager:
        """Return the RM with an id; without an id, the only RM.

        Raises:
            RequestError: The RM has not registered; or no id was given, and several RMs have registered.
        """
        if rm_id is None:
            ids = self._managers.ids
            if len(ids) != 1:
                known = ", ".join(sorted(ids)) or "none"
                raise RequestError(f"{what}: name the resource manager; registered are: {known}")
            (rm_id,) = ids
        return self._managers.known(rm_id, what)


def _asked(link: PartitionLink, question: v1.Question) -> Any:
    """Ask the worker of a partition.

    Raises:
        RequestError: The worker refuses, or the partition has none now.
    """
    return link.scheduler().answers.answer(question)


def _use_of(link: PartitionLink) -> Document | None:
    """Return the use of a partition, `None` if its worker does not answer now: it may hang.

    Waits are counted: a door that was suspended itself has not waited in that time.
    """
    message = v1.ManagerMessage(question=v1.Question(kept_use=v1.Snapshot(rm_id=link.place.rm_id)))
    with suppress(LicorneError):
        answer = link.scheduler().connection.call_later(message, timeout_seconds=_LOOK_SECONDS)
        for _ in range(_LOOKS_MAX):
            with suppress(TimeoutError):
                used: Document = json.loads(answer.result(_LOOK_SECONDS).json)
                return used
    return None


def _joined(reports: Mapping[str, HealthReport]) -> Iterator[HealthCheck]:
    """Yield each check once, with the failures of each worker."""
    checks: dict[str, list[tuple[str, HealthCheck]]] = {}
    for name, report in reports.items():
        for check in report.checks:
            checks.setdefault(check.name, []).append((name, check))
    for entries in checks.values():
        _, first = entries[0]
        wrong = [f"{name}: {check.diagnosis}" for name, check in entries if not check.succeeded]
        yield first._replace(succeeded=not wrong, diagnosis="; ".join(wrong) or first.diagnosis)


_ANSWERS: Final[Mapping[str, Callable[[DoorAnswers, v1.Question, Any], Any]]] = {
    "explain": DoorAnswers._of_application,  # noqa: SLF001 - of this module
    "queue_and_user": DoorAnswers._queue_and_user,  # noqa: SLF001 - as above
    "would_preempt": DoorAnswers._of_each,  # noqa: SLF001 - as above
    "next_asks": DoorAnswers._of_each,  # noqa: SLF001 - as above
    "dry_run": DoorAnswers._dry_run,  # noqa: SLF001 - as above
    "snapshot": DoorAnswers._snapshot,  # noqa: SLF001 - as above
    "saved": DoorAnswers._saved,  # noqa: SLF001 - as above
    "quarantined": DoorAnswers._of_every,  # noqa: SLF001 - as above
    "validate": DoorAnswers._validate,  # noqa: SLF001 - as above
    "resource_managers": DoorAnswers._resource_managers,  # noqa: SLF001 - as above
    "configuration_text": DoorAnswers._configuration_text,  # noqa: SLF001 - as above
    "extra_configuration": DoorAnswers._extra_configuration,  # noqa: SLF001 - as above
    "callbacks_waiting": DoorAnswers._callbacks_waiting,  # noqa: SLF001 - as above
    "kept_use": DoorAnswers._kept_use,  # noqa: SLF001 - as above
    "health": DoorAnswers._health,  # noqa: SLF001 - as above
    "check_health": DoorAnswers._health,  # noqa: SLF001 - as above
    "figures": DoorAnswers._figures,  # noqa: SLF001 - as above
    "recorded_in": DoorAnswers._recorded_in,  # noqa: SLF001 - as above
}
