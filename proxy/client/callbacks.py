"""Callbacks that come over a connection: each is made on the resource manager (RM) that it is for."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Final, final

from ...actors.interrupts import start_thread
from ..scheduler.callback_failures import is_fault, text_of
from ..si import licorne_v1_pb2 as v1
from ..si import si_pb2 as si

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..si.api import ResourceManagerCallback

__all__ = ["WAITING_MAX", "CallbackQueue", "make_callback", "predicate_answers", "preemption_answers"]

WAITING_MAX: Final = 4_096
"""How many callbacks wait for the RM before no more are read from the connection."""


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
            pass  # A newer scheduler says what this client does not know.


def predicate_answers(
    callback: ResourceManagerCallback,
    questions: v1.PredicateQuestions,
    positions: range,
    note: Callable[[str, BaseException], None],
) -> v1.PredicateAnswers:
    """Ask an RM's predicate about each node of questions.

    Args:
        callback: The RM.
        questions: What is asked.
        positions: Which of the questions are answered.
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
                callback.predicates(args)
            except BaseException as error:  # noqa: BLE001 - any error that the RM raises is its answer
                if is_fault(error):
                    note("predicates", error)
                answer.refused.append(index)
                answer.reasons.append(reasons.setdefault(text_of(error), len(reasons)))
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
            answer = callback.preemption_predicates(args)
        except BaseException as error:  # noqa: BLE001 - an RM whose predicate fails does not agree
            note("preemption_predicates", error)
            answer = None
        answers.answers.append(answer or si.PreemptionPredicatesResponse(success=False))
    return answers


@final
class CallbackQueue:
    """Runs steps in order on a thread of its own, one at a time, whatever they raise."""

    def __init__(self, name: str) -> None:
        self._changed = threading.Condition()
        self._waiting: deque[Callable[[], None]] = deque()
        self._closed = False
        self._thread = start_thread(self._run, name)

    def put(self, step: Callable[[], None], *, may_wait: Callable[[], bool] = lambda: False) -> None:
        """Queue a step; wait while too many are waiting, as long as the caller may wait."""
        with self._changed:
            while len(self._waiting) >= WAITING_MAX and not self._closed and may_wait():
                self._changed.wait(0.1)
            self._waiting.append(step)
            self._changed.notify_all()

    def close(self) -> None:
        """Run what is queued, then end the thread; on that thread itself, do not wait."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and not self._closed:
                    self._changed.wait()
                if not self._waiting:
                    return
                step = self._waiting.popleft()
                self._changed.notify_all()
            step()
