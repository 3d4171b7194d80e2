"""The parts of an `AsyncScheduler`: its results, its inbox of callbacks, its requests and predicates.

Predicates may be coroutines: the event loop runs them, and a thread sends their answers.
"""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias, final

from ...model.errors import LicorneError, ReplacedError, error_text
from ...model.values.messages import PredicateQuestion, PreemptionQuestion
from ..core.scheduler.managers.callbacks import is_fault
from ..si import si_pb2 as si
from ..si.api import ResourceManager
from ..si.arguments import check_type
from ..si.messages import merges_into

CALLBACKS: Final = (
    *("update_node", "update_application", "update_allocation"),
    *("update_container_scheduling_state", "send_event"),
)
_INBOX_MAX: Final = 256
"""The number of callbacks that may wait for the loop before the calling thread has to wait."""


class Refused(LicorneError):  # noqa: N818 - it is not a fault
    """A node, an application or an ask was rejected; `docs/embedding.md` lists the values of `code`."""

    def __init__(self, what: str, reason: str, code: str = "") -> None:
        super().__init__(f"{what} was rejected: {reason}")
        self.reason, self.code = reason, code


@final
class Placed:
    """An allocation of an ask, on the node `node_id`."""

    def __init__(self, ask: si.Allocation, ending: asyncio.Future[si.AllocationRelease]) -> None:
        self.ask, self.key, self.node_id = ask, ask.allocationKey, ""
        self.release: si.AllocationRelease | None = None
        """The end that the scheduler has requested or reported, `None` so far."""
        self.is_ended = False
        """Whether the program has ended the allocation, or confirmed its end."""
        self.ending = ending
        """The future that gets `release`."""

    @property
    def released(self) -> asyncio.Future[si.AllocationRelease]:
        """A future of `release`; each access returns a new one, and cancelling it affects no other wait."""
        future = asyncio.shield(self.ending)
        future.add_done_callback(
            lambda done: done.cancelled() or done.exception()
        )  # The error is not logged if no task waits.
        return future


class Heard(NamedTuple):
    """A callback: its name and its message; for `send_event` the message is a list of events."""

    callback: str
    message: Any


def end_of(ask: si.Allocation) -> si.AllocationRelease:
    """Return the release that ends an allocation or withdraws an ask."""
    release = si.AllocationRelease(applicationID=ask.applicationID, allocationKey=ask.allocationKey)
    release.partitionName, release.terminationType = ask.partitionName, si.STOPPED_BY_RM
    return release


def release_request(release: si.AllocationRelease) -> si.AllocationRequest:
    """Return a request with one release."""
    return si.AllocationRequest(releases={"allocationsToRelease": [release]})


@final
class CallbackInbox:
    """Callbacks that wait for the loop; while there are too many, the calling thread waits.

    Args:
        wake: Makes the loop call `take`; called once between two such calls.
    """

    def __init__(self, wake: Callable[[], object]) -> None:
        self._wake = wake
        self._changed = threading.Condition()
        self._heard: list[Heard] = []
        self._woken = self._closed = False

    def put(self, callback: str, message: object) -> None:
        """Add a callback, on the calling thread of the scheduler."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._heard) < _INBOX_MAX or self._closed)
            if self._closed:
                return
            self._heard.append(Heard(callback, message))
            woken, self._woken = self._woken, True
        if not woken:
            self._wake()

    def take(self) -> list[Heard]:
        """Remove and return all callbacks, in order; called on the loop."""
        with self._changed:
            heard, self._heard, self._woken = self._heard, [], False
            self._changed.notify_all()
        return heard

    def close(self) -> None:
        """Drop later callbacks, and let the thread that waits continue."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()


class InboxManager(ResourceManager):
    """A resource manager that puts callbacks into an inbox; `disconnected` gets the error that ends them."""

    def __init__(self, inbox: CallbackInbox, disconnected: Callable[[LicorneError], object]) -> None:
        for callback in CALLBACKS:
            setattr(self, callback, lambda message, callback=callback: inbox.put(callback, message))
        self.disconnected = disconnected

    def replaced(self, reason: str) -> None:
        """End all waits: the resource manager has registered elsewhere."""
        self.disconnected(ReplacedError(reason))

    def reconnected(self) -> None:
        """Do not register again: the scheduler would not have the earlier nodes and applications."""


Predicates: TypeAlias = "Callable[[PredicateQuestion], Awaitable[Mapping[str, str] | None]]"
_Answer: TypeAlias = "Callable[[dict[int, Any]], None]"


@final
class PredicateManager(InboxManager):
    """A resource manager that answers predicates later, with one coroutine for each question.

    Args:
        inbox: The inbox for callbacks.
        disconnected: Called with the error that ends the callbacks.
        on_loop: Calls a function on the loop, from any thread.
        predicates: Returns the refused nodes with the reasons; an error refuses all nodes.
        seconds: The time limit of a coroutine.
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
        """Sends answers, on a thread, since sending may wait."""

    def ask_predicates(self, questions: Sequence[PredicateQuestion], answer: _Answer) -> None:
        """Start a coroutine on the loop for each question about nodes."""
        self._on_loop(self._begin, questions, answer)

    def ask_preemption_predicates(self, questions: Sequence[PreemptionQuestion], answer: _Answer) -> None:
        """Agree to the first victims that free enough resources."""
        answer({position: question.start_index for position, question in enumerate(questions)})

    def cancel(self) -> None:
        """Cancel all coroutines; called on the loop."""
        self._answerer.shutdown(wait=False)
        for task in self._tasks:
            task.cancel()

    def _begin(self, questions: Sequence[PredicateQuestion], answer: _Answer) -> None:
        for position, question in enumerate(questions):
            task = asyncio.create_task(self._answer(position, question, answer))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _answer(self, position: int, question: PredicateQuestion, answer: _Answer) -> None:
        """Run the coroutine, and send its answer; after the time limit report a missing answer."""
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
        with suppress(RuntimeError):  # The executor has been shut down.
            self._answerer.submit(partial(answer, {position: found}))


Request: TypeAlias = "si.NodeRequest | si.ApplicationRequest | si.AllocationRequest"
REQUEST_TYPES: Final = (si.NodeRequest, si.ApplicationRequest, si.AllocationRequest)
_CALLS: Final[Mapping[type, str]] = {
    si.NodeRequest: "update_node",
    si.ApplicationRequest: "update_application",
    si.AllocationRequest: "update_allocation",
}
_MERGED_MAX: Final = 128
"""The number of requests that are sent as one; merging them takes a millisecond."""


@final
class RequestQueue:
    """Sends requests in order; adjacent requests of one type are merged. All methods run on the loop.

    Args:
        scheduler: Returns the scheduler; its calls run on a thread, since they may wait.
    """

    def __init__(self, scheduler: Callable[[], Any]) -> None:
        self._scheduler = scheduler
        self._queued: OrderedDict[asyncio.Future[None], Request] = OrderedDict()
        self._being_sent: list[asyncio.Future[None]] = []
        self._sending: asyncio.Task[None] | None = None
        self._caller = ThreadPoolExecutor(1, "licorne-calls")

    def put(self, request: Request) -> asyncio.Future[None]:
        """Queue a request.

        Returns:
            A future that ends when the scheduler has taken the request; if the whole request
            was refused it raises the error.
        """
        future = asyncio.get_running_loop().create_future()
        self._queued[future] = request
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._send_all())
        return future

    def take_back(self, sent: asyncio.Future[None]) -> bool:
        """Remove a request that is still queued; return whether it was still there."""
        return self._queued.pop(sent, None) is not None

    def unfinished(self) -> list[asyncio.Future[None]]:
        """Return the futures of all requests that the scheduler has not taken."""
        return [future for future in (*self._queued, *self._being_sent) if not future.done()]

    def clear(self) -> None:
        """Remove all requests that are still queued."""
        self._queued.clear()

    def close(self) -> None:
        """End the thread after its current call."""
        self._caller.shutdown()

    async def _send_all(self) -> None:
        while self._queued:
            request, futures = self._next()
            self._being_sent = futures
            call = getattr(self._scheduler(), _CALLS[type(request)])
            error: Exception | None = None
            try:
                await asyncio.get_running_loop().run_in_executor(self._caller, call, request)
            except Exception as raised:  # noqa: BLE001 - it is raised where the requests are awaited
                error = raised
            for future in futures:
                if not future.done():
                    future.set_result(None) if error is None else future.set_exception(error)

    def _next(self) -> tuple[Request, list[asyncio.Future[None]]]:
        """Remove the first request and those that can be merged into it; return it, and all futures."""
        future, request = self._queued.popitem(last=False)
        futures = [future]
        while self._queued and len(futures) < _MERGED_MAX:
            future, following = next(iter(self._queued.items()))
            if type(following) is not type(request) or not merges_into(following, request):
                break
            request.MergeFrom(following)  # type: ignore[arg-type] # it is of the same type
            futures.append(future)
            del self._queued[future]
        return request, futures
