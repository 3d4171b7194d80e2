"""Predicates that are coroutines: the event loop runs them, and their answers go back on a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, TypeAlias, final

from ...model.errors import LicorneError, error_text
from ...model.values.messages import PredicateQuestion, PreemptionQuestion
from ..core.scheduler.managers.callbacks import is_fault
from ..si.arguments import check_type
from .async_parts import CallbackInbox, InboxManager

Predicates: TypeAlias = "Callable[[PredicateQuestion], Awaitable[Mapping[str, str] | None]]"
_Answer: TypeAlias = "Callable[[dict[int, Any]], None]"


@final
class PredicateManager(InboxManager):
    """A resource manager whose predicates are answered later, by a coroutine for each question.

    Args:
        inbox: Gets the callbacks.
        disconnected: Gets the error that ends the callbacks.
        on_loop: Calls a function on the loop, from any thread.
        predicates: Returns the nodes that it refuses, with the reasons; if it raises, all are refused.
        seconds: How long a coroutine may take.
    """

    def __init__(
        self,
        inbox: CallbackInbox,
        disconnected: Callable[[LicorneError], object],
        on_loop: Callable[..., object],
        predicates: Predicates,
        seconds: float,
    ) -> None:
        super().__init__(inbox, disconnected)
        self._on_loop = on_loop
        self._predicates, self._seconds = predicates, seconds
        self._tasks: set[asyncio.Task[None]] = set()
        self._answerer = ThreadPoolExecutor(1, "licorne-answers")
        """Sends answers, on a thread: sending may wait."""

    def ask_predicates(self, questions: Sequence[PredicateQuestion], answer: _Answer) -> None:
        """Let the loop answer questions about nodes."""
        self._on_loop(self._begin, questions, answer)

    def ask_preemption_predicates(self, questions: Sequence[PreemptionQuestion], answer: _Answer) -> None:
        """Agree to the first victims that make room."""
        answer({position: question.start_index for position, question in enumerate(questions)})

    def cancel(self) -> None:
        """End all coroutines; on the loop."""
        self._answerer.shutdown(wait=False)
        for task in self._tasks:
            task.cancel()

    def _begin(self, questions: Sequence[PredicateQuestion], answer: _Answer) -> None:
        for position, question in enumerate(questions):
            task = asyncio.create_task(self._answer(position, question, answer))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _answer(self, position: int, question: PredicateQuestion, answer: _Answer) -> None:
        """Run the coroutine, and send its answer; after the time limit send that there is none."""
        timeout, found = asyncio.timeout(self._seconds), None
        try:
            async with timeout:
                found = dict(await self._predicates(question) or {})
            for node_id, reason in found.items():
                check_type(f"the reason against node {node_id!r}", reason, str)
        except Exception as error:  # noqa: BLE001 - whatever it raises is its answer
            if not timeout.expired():
                found = dict.fromkeys(question.node_ids, error_text(error))
            if is_fault(error):
                context = {"message": f"the predicate of ask {question.allocation_key!r}", "exception": error}
                asyncio.get_running_loop().call_exception_handler(context)
        with suppress(RuntimeError):  # It has been shut down.
            self._answerer.submit(partial(answer, {position: found}))
