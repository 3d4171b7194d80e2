"""Callbacks that come over a connection: each is made on the resource manager (RM) that it is for."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final, final

from ....actors.services.interrupts import start_thread
from ....model.errors import LicorneError, error_text
from ....model.values.messages import PredicateQuestion, PreemptionQuestion
from ...core.scheduler.managers.callbacks import CallbackThreads, is_fault
from ...si import licorne_v1_pb2 as v1
from ...si import si_pb2 as si
from ...si.api import DeferredPredicates, ResourceManagerCallback, StateDumpPlugin
from ...si.arguments import ask_predicate, ask_preemption_predicate
from .errors import ConnectionLostError

WAITING_MAX: Final = 4_096
"""How many callbacks may wait for the RM; then reading from the connection pauses."""


def make_callback(callback: ResourceManagerCallback, message: v1.SchedulerMessage) -> None:
    """Make the callback of a message.

    Raises:
        BaseException: Whatever the callback raises.
    """
    match message.WhichOneof("body"):
        case "update_allocation":
            callback.update_allocation(message.update_allocation)
        case "update_application":
            callback.update_application(message.update_application)
        case "update_node":
            callback.update_node(message.update_node)
        case "update_container_scheduling_state":
            callback.update_container_scheduling_state(message.update_container_scheduling_state)
        case "send_event":
            callback.send_event(message.send_event.events)
        case _:
            pass  # A newer scheduler sends an answer that this client does not know.


def predicate_answers(
    callback: ResourceManagerCallback,
    questions: v1.PredicateQuestions,
    positions: range,
    note: Callable[[str, BaseException], None],
) -> v1.PredicateAnswers:
    """Ask an RM's predicate about each node of questions.

    Args:
        callback: The RM.
        questions: The questions.
        positions: The positions of the answered questions.
        note: Gets a predicate that failed rather than refused, by name, and its error.
    """
    answers = v1.PredicateAnswers(batch=questions.batch, first=positions.start)
    reasons: dict[str, int] = {}
    for position in positions:
        question = questions.questions[position]
        answer = answers.answers.add()
        for index, node_id in enumerate(questions.node_lists[question.node_list].node_ids):
            args = si.PredicatesArgs(
                allocationKey=question.allocation_key, nodeID=node_id, allocate=question.allocate
            )
            try:
                ask_predicate(callback, args)
            except BaseException as error:  # noqa: BLE001 - any error that the RM raises is its answer
                if is_fault(error):
                    note("predicates", error)
                answer.refused.append(index)
                answer.reasons.append(reasons.setdefault(error_text(error), len(reasons)))
    answers.reasons.extend(reasons)
    return answers


def preemption_answers(
    callback: ResourceManagerCallback,
    questions: v1.PreemptionQuestions,
    note: Callable[[str, BaseException], None],
) -> v1.PreemptionAnswers:
    """Ask an RM's predicate of preemption each of the questions; one that fails does not agree."""
    answers = v1.PreemptionAnswers(batch=questions.batch)
    for args in questions.questions:
        try:
            answer = ask_preemption_predicate(callback, args)
        except BaseException as error:  # noqa: BLE001 - an RM whose predicate fails does not agree
            note("preemption_predicates", error)
            answer = None
        answers.answers.append(answer or si.PreemptionPredicatesResponse(success=False))
    return answers


@final
class CallbackQueue:
    """Runs steps in order on its own thread, one at a time, whatever they raise.

    Args:
        name: The name of the thread.
        after: The queue before, which is closed: its last step ends before the first one of this one begins.
    """

    def __init__(self, name: str, after: CallbackQueue | None = None) -> None:
        self._after = after
        self._changed = threading.Condition()
        self._waiting: deque[Callable[[], None]] = deque()
        self._closed = False
        self._thread = start_thread(self._run, name)

    @property
    def count(self) -> int:
        """How many steps wait."""
        return len(self._waiting)

    def put(self, step: Callable[[], None], *, may_wait: Callable[[], bool] = lambda: False) -> None:
        """Queue a step; wait while too many are waiting, as long as the caller may wait."""
        with self._changed:
            while len(self._waiting) >= WAITING_MAX and not self._closed and may_wait():
                self._changed.wait(0.1)
            self._waiting.append(step)
            self._changed.notify_all()

    def close(self) -> None:
        """Run what is queued, then end the thread; in a step of this queue or one before, do not wait."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if not self._waits_for(threading.current_thread()):
            self._join()

    def _join(self) -> None:
        if self._thread is not None:
            self._thread.join()

    def _waits_for(self, thread: threading.Thread) -> bool:
        """Return whether the thread of this queue, or of one that it waits for, is this one."""
        after = self._after
        return self._thread is thread or (after is not None and after._waits_for(thread))  # noqa: SLF001 - its own

    def _run(self) -> None:
        if self._after is not None:
            self._after._join()  # noqa: SLF001 - its own
            self._after = None
        while True:
            with self._changed:
                while not self._waiting and not self._closed:
                    self._changed.wait()
                if not self._waiting:
                    return
                step = self._waiting.popleft()
                self._changed.notify_all()
            step()


TEXT_BYTES_MAX: Final = 8 << 20
"""How long an RM's part is at most. The server ends a session that sends a message of more than 16 MiB."""


@final
class StateDumpAnswers:
    """Asks each RM on a separate thread, one question at a time: a slow one holds up no callback.

    Args:
        threads: Knows which threads are inside a callback.
    """

    def __init__(self, threads: CallbackThreads) -> None:
        self._threads = threads
        self._lock = threading.Lock()
        self._asked: set[str] = set()
        """The RMs that work on an answer."""

    def answer(
        self,
        message: v1.SchedulerMessage,
        callback: ResourceManagerCallback,
        send: Callable[[v1.ManagerMessage], None],
    ) -> None:
        """Begin to answer a question, without waiting.

        Args:
            message: The question.
            callback: The RM that it is for.
            send: Sends the answer over the connection on which the question came.
        """
        rm_id, batch = message.rm_id, message.state_dump.batch

        def run() -> None:
            try:
                answer = self._ask(rm_id, callback)
            finally:
                with self._lock:
                    self._asked.discard(rm_id)
            reply(answer)

        def reply(answer: v1.StateDumpAnswer) -> None:
            answer.batch = batch
            with suppress(ConnectionLostError):
                send(v1.ManagerMessage(state_dump=answer))

        with self._lock:
            is_busy = rm_id in self._asked
            self._asked.add(rm_id)
        if is_busy:
            reply(v1.StateDumpAnswer(error=f"RM {rm_id!r} still works on an earlier state dump"))
        else:
            start_thread(run, "licorne-state-dump")

    def _ask(self, rm_id: str, callback: ResourceManagerCallback) -> v1.StateDumpAnswer:
        """Return the answer of an RM, or why there is none that can be sent."""
        try:
            if not isinstance(callback, StateDumpPlugin):
                raise LicorneError(f"RM {rm_id!r} no longer has get_state_dump")  # noqa: TRY301 - shown as others
            with self._threads.callback(rm_id):
                text = callback.get_state_dump()
            size_bytes = len(text.encode())
            if size_bytes > TEXT_BYTES_MAX:
                too_long = (
                    f"the state dump of RM {rm_id!r} has {size_bytes} bytes, more than {TEXT_BYTES_MAX}"
                )
                raise LicorneError(too_long)  # noqa: TRY301 - shown as others
            return v1.StateDumpAnswer(json=text)
        except BaseException as error:  # noqa: BLE001 - whatever it raises is shown
            return v1.StateDumpAnswer(error=error_text(error).encode(errors="replace").decode())


def ask_nodes(
    predicates: DeferredPredicates,
    message: v1.PredicateQuestions,
    reply: Callable[[v1.ManagerMessage], None],
) -> None:
    """Ask an RM about nodes; each answer is sent when it comes."""
    lists = [tuple(each.node_ids) for each in message.node_lists]
    questions = [
        PredicateQuestion(each.allocation_key, lists[each.node_list], each.allocate)
        for each in message.questions
    ]

    def answer(answers: Mapping[int, Mapping[str, str] | None]) -> None:
        for position, value in answers.items():
            written = v1.PredicateAnswers(batch=message.batch, first=position)
            _write(written, questions[position], value)
            reply(v1.ManagerMessage(predicate_answers=written))

    try:
        predicates.ask_predicates(questions, answer)
    except BaseException as error:  # noqa: BLE001 - any error that the RM raises is its answer
        reason = error_text(error)
        answer({index: dict.fromkeys(each.node_ids, reason) for index, each in enumerate(questions)})


def _write(
    written: v1.PredicateAnswers, question: PredicateQuestion, value: Mapping[str, str] | None
) -> None:
    entry = written.answers.add()
    if value is None:
        entry.unanswered = True
        return
    reasons: dict[str, int] = {}
    for position, node_id in enumerate(question.node_ids):
        if node_id in value:
            entry.refused.append(position)
            entry.reasons.append(reasons.setdefault(value[node_id], len(reasons)))
    written.reasons.extend(reasons)


def ask_victims(
    predicates: DeferredPredicates,
    message: v1.PreemptionQuestions,
    reply: Callable[[v1.ManagerMessage], None],
) -> None:
    """Ask an RM about victims; the answers are sent when all have come."""
    questions = [
        PreemptionQuestion(
            each.allocationKey, each.nodeID, tuple(each.preemptAllocationKeys), each.startIndex
        )
        for each in message.questions
    ]
    found: dict[int, int | None] = {}

    def answer(answers: Mapping[int, int | None]) -> None:
        before = len(found)
        found.update(answers)
        if before < len(questions) <= len(found):
            entries = [
                si.PreemptionPredicatesResponse(success=index is not None, index=index or 0)
                for index in (found[position] for position in range(len(questions)))
            ]
            reply(
                v1.ManagerMessage(
                    preemption_answers=v1.PreemptionAnswers(batch=message.batch, answers=entries)
                )
            )

    try:
        predicates.ask_preemption_predicates(questions, answer)
    except BaseException:  # noqa: BLE001 - an RM whose predicate fails does not agree
        answer(dict.fromkeys(range(len(questions))))
