"""A scheduler for programs on asyncio: in this process, or in another one.

Requests are queued, and sent by a thread (`RequestQueue`). Callbacks are put into a bounded inbox, and the
loop handles them for a millisecond at a time. While the inbox is full the calling thread waits, and the
scheduler treats the resource manager as slow.

The scheduler does not confirm the withdrawal of an ask, and may have placed it before. So an invalid ask is
sent after the withdrawal: when it is rejected, no older answer can come, and the key may be used again.
"""

from __future__ import annotations

import asyncio
import copy
import time
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import Any, Final, Self, final

from ...model.errors import LicorneError, RequestError
from ..base.files.input_files import GivenConfiguration, configuration_text
from ..si import si_pb2 as si
from ..si.api import SchedulerAPI
from ..si.arguments import check_message, check_seconds, check_type
from .async_parts import (
    REQUEST_TYPES,
    CallbackInbox,
    Heard,
    InboxManager,
    Placed,
    PredicateManager,
    Predicates,
    Refused,
    Request,
    RequestQueue,
    end_of,
    release_request,
)

_ENDS: Final = frozenset({"Failing", "Failed", "Expired", "Rejected", "Completed"})
"""The states in which an application has no asks."""
_SLICE_SECONDS: Final = 0.001
"""The time for which the loop handles callbacks before it runs other tasks."""
_WAVE: Final = 256
"""The number of entries that are queued before the loop runs other tasks."""
_NO_ID: Final = "\n"
"""A character that no id may contain."""


@final
class AsyncScheduler:
    """A scheduler for one event loop: `async with AsyncScheduler(QUEUES) as scheduler`.

    It registers a resource manager, and stops the scheduler on exit. When the connection to a remote
    scheduler is lost, each wait and each later call raises a `ConnectionLostError`.

    Args:
        configuration: The queues, as for `Scheduler.register`.
        rm_id: The id of the resource manager.
        scheduler: A `Scheduler` that is not stepped, a `RemoteScheduler`, or a function that returns one; the
            function is called on another thread, since connecting takes time. Default: a new `Scheduler`.
        predicates: A coroutine function; it gets a question with `allocation_key` and `node_ids`, and returns
            the nodes that it refuses, each with the reason. If it raises, it refuses all nodes.
        predicate_timeout_seconds: After this time the coroutine is cancelled, and its question has no answer.
        settings: Arguments for the new `Scheduler`, such as `engine="threads"`.

    Raises:
        LicorneError: The scheduler is stepped, or an argument is invalid.
    """

    def __init__(
        self,
        configuration: GivenConfiguration = "",
        *,
        rm_id: str = "rm",
        scheduler: SchedulerAPI | Callable[[], SchedulerAPI] | None = None,
        predicates: Predicates | None = None,
        predicate_timeout_seconds: float = 2.0,
        **settings: Any,
    ) -> None:
        check_type("rm_id", rm_id, str)
        check_seconds("predicate_timeout_seconds", predicate_timeout_seconds)
        if scheduler is not None and settings:
            raise LicorneError(f"expected no {', '.join(settings)} where a scheduler is given")
        self.rm_id = rm_id
        self._configuration, self._given, self._settings = configuration, scheduler, settings
        self._predicates, self._predicate_seconds = predicates, predicate_timeout_seconds
        self.scheduler: Any = scheduler if hasattr(scheduler, "update_node") else None
        """The scheduler, for all other methods; call methods that wait on a thread (`asyncio.to_thread`)."""
        _check_runs(self.scheduler)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._failure: LicorneError | None = None
        """The reason why calls are refused, `None` while they are accepted."""
        self._requests = RequestQueue(lambda: self.scheduler)
        self._predicate_manager: PredicateManager | None = None
        self._inbox = CallbackInbox(lambda: self._on_loop(self._hear))
        self._steps = self._take_in()
        self._waits: defaultdict[tuple[str, str], dict[str, asyncio.Future[None]]] = defaultdict(dict)
        """The pending answers, by kind and application, then by name."""
        self._placed: dict[tuple[str, str], Placed] = {}
        """Allocations and waiting asks, by application and key."""
        self._withdrawals: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._readers: dict[asyncio.Queue[Heard | LicorneError | None], int] = {}
        """The unread callbacks of each iteration over `events`, with its limit."""

    # -------------------------------------------------------------------------------- begin and end

    async def __aenter__(self) -> Self:
        if self._loop is not None:
            raise LicorneError(
                f"the AsyncScheduler of RM {self.rm_id!r} was entered before: create another one"
            )
        self._loop = asyncio.get_running_loop()
        begun = asyncio.ensure_future(asyncio.to_thread(self._begin))
        try:
            await asyncio.shield(begun)
        except BaseException:
            await asyncio.wait({begun})
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        self._fail(LicorneError(f"the AsyncScheduler of RM {self.rm_id!r} is closed"), is_end=True)
        await asyncio.to_thread(self._end)

    def _begin(self) -> None:
        if self._given is None:
            from ..core.scheduler.scheduler import Scheduler  # noqa: PLC0415 - not for a remote one

            self.scheduler = Scheduler(predicate_timeout_seconds=self._predicate_seconds, **self._settings)
        elif self.scheduler is None:
            self.scheduler = self._given()  # type: ignore[operator] # it is not a scheduler
        _check_runs(self.scheduler)
        text, lost = configuration_text(self._configuration), partial(self._on_loop, self._fail)
        if self._predicates is not None:
            given = (self._on_loop, self._predicates, self._predicate_seconds)
            self._predicate_manager = PredicateManager(self._inbox, lost, *given)
        manager = self._predicate_manager or InboxManager(self._inbox, lost)
        request = si.RegisterResourceManagerRequest(rmID=self.rm_id, policyGroup="queues", config=text)
        self.scheduler.register_resource_manager(request, manager)

    def _end(self) -> None:
        self._inbox.close()
        if self.scheduler is not None:
            self.scheduler.stop()
        self._requests.close()

    def _fail(self, error: LicorneError, *, is_end: bool = False) -> None:
        """End all waits with an error."""
        if self._failure is None or is_end:
            self._failure = error
        waits: list[asyncio.Future[Any]] = [
            *self._requests.unfinished(),
            *(each.ending for each in self._placed.values()),
        ]
        for future in chain(waits, *(futures.values() for futures in self._waits.values())):
            if not future.done():
                future.set_exception(copy.copy(error))
                future.exception()  # The error is not logged if no task waits for it.
        self._requests.clear()
        for unread in self._readers:
            unread.put_nowait(None if is_end else error)
        if self._predicate_manager is not None:
            self._predicate_manager.cancel()

    def _check(self) -> asyncio.AbstractEventLoop:
        """Return the loop.

        Raises:
            LicorneError: The call is outside of `async with` or on another loop, or the scheduler was lost.
        """
        what = f"the AsyncScheduler of RM {self.rm_id!r}"
        if self._loop is None:
            raise LicorneError(f"{what} is used outside of `async with`")
        running = None
        with suppress(RuntimeError):
            running = asyncio.get_running_loop()
        if running is not self._loop:
            raise LicorneError(f"{what} belongs to {self._loop!r}, and is used on {running!r}")
        if self._failure is not None:
            raise copy.copy(self._failure)
        return self._loop

    def _on_loop(self, call: Callable[..., object], *args: Any) -> None:
        """Call a function on the loop, from any thread; do nothing once the loop is closed."""
        with suppress(RuntimeError):
            if self._loop is not None:
                self._loop.call_soon_threadsafe(call, *args)

    # ------------------------------------------------------------------------------------- requests

    async def add_nodes(self, *nodes: si.NodeInfo) -> None:
        """Create nodes, and wait until they are accepted.

        Raises:
            Refused: A node is rejected; others may have been accepted.
            LicorneError: A node with that id is being added, or the action does not create a node.
        """
        for node in nodes:
            check_message("add_nodes", node, si.NodeInfo)
            if node.action not in (si.NodeInfo.CREATE, si.NodeInfo.CREATE_DRAIN):
                action = si.NodeInfo.ActionFromRM.Name(node.action)
                raise RequestError(
                    f"node {node.nodeID!r}: expected CREATE or CREATE_DRAIN, got {action}: use send"
                )
        for start in range(0, len(nodes), _WAVE):
            request = si.NodeRequest(nodes=nodes[start : start + _WAVE])
            await self._answers("node", "", [node.nodeID for node in request.nodes], request)

    async def add_applications(self, *applications: si.AddApplicationRequest) -> None:
        """Add applications, and wait until they are accepted.

        Raises:
            Refused: An application is rejected; others may have been accepted.
            LicorneError: An application with that id is being added.
        """
        for new in applications:
            check_message("add_applications", new, si.AddApplicationRequest)
        for start in range(0, len(applications), _WAVE):
            request = si.ApplicationRequest(new=applications[start : start + _WAVE])
            await self._answers("application", "", [new.applicationID for new in request.new], request)

    async def place(self, ask: si.Allocation) -> Placed:
        """Ask for an allocation, and wait for its node; cancelling the wait withdraws the ask.

        Raises:
            Refused: The ask is rejected, or its application has ended.
            LicorneError: An ask with that key is waiting or running.
        """
        loop = self._check()
        check_message("place", ask, si.Allocation)
        application_id, key = ask.applicationID, ask.allocationKey
        if not application_id:
            raise RequestError(f"ask {key!r}: expected an applicationID: use send for foreign allocations")
        while (withdrawal := self._withdrawals.get((application_id, key))) is not None:
            await asyncio.wait({withdrawal})
        if (other := self._placed.get((application_id, key))) is not None:
            what = f"runs on node {other.node_id!r}" if other.node_id else "waits"
            raise RequestError(f"ask {key!r} of application {application_id!r} {what} already")
        placed = self._placed[application_id, key] = Placed(ask, loop.create_future())
        request = si.AllocationRequest(allocations=[ask])
        try:
            await self._answers("ask", application_id, [key], request, partial(self._withdraw, ask))
        except BaseException:
            self._placed.pop((application_id, key), None)
            raise
        return placed

    async def place_many(self, asks: Iterable[si.Allocation]) -> list[asyncio.Task[Placed]]:
        """Send many asks; return a task for each, which withdraws its ask if it is cancelled."""
        loop, tasks = self._check(), list[asyncio.Task[Placed]]()
        try:
            for ask in asks:
                tasks.append(loop.create_task(self.place(ask)))
                if not len(tasks) % _WAVE:
                    await asyncio.sleep(0)
        except BaseException:
            for task in tasks:
                task.cancel()
            raise
        return tasks

    async def end(self, placed: Placed) -> None:
        """End an allocation, or confirm an end that the scheduler has requested; it cannot be cancelled."""
        self._check()
        if placed.is_ended or (placed.release and placed.release.terminationType == si.STOPPED_BY_RM):
            return
        placed.is_ended = True
        if placed.release is not None:
            self._placed.pop((placed.ask.applicationID, placed.key), None)
        await asyncio.shield(self._put(release_request(placed.release or end_of(placed.ask))))

    async def send(self, request: Request) -> None:
        """Send any request, and wait until the scheduler has accepted it.

        Raises:
            LicorneError: The request is refused as a whole, or cannot be sent.
        """
        self._check()
        if type(request) not in REQUEST_TYPES:
            names = ", ".join(kind.__name__ for kind in REQUEST_TYPES)
            raise RequestError(f"send: expected one of {names}, got {type(request).__name__}")
        if request.rmID not in ("", self.rm_id):
            raise RequestError(f"expected a request of RM {self.rm_id!r}, got one of RM {request.rmID!r}")
        for removal in request.remove if isinstance(request, si.ApplicationRequest) else ():
            for _ in self._drop_asks(removal.applicationID, "it is removed"):
                pass
        await self._answers("request", "", [], copy.deepcopy(request))

    async def _answers(
        self,
        kind: str,
        application_id: str,
        names: list[str],
        request: Request,
        withdraw: Callable[[], object] | None = None,
    ) -> None:
        """Send a request, and wait for its answers; on the first error withdraw the rest, and raise it."""
        loop, waits, new = self._check(), self._waits[kind, application_id], dict[str, asyncio.Future[None]]()
        for name in names:
            if name in waits or name in new:
                raise RequestError(f"{kind} {name!r} waits already")
            new[name] = loop.create_future()
        waits |= new
        sent = self._put(request)
        try:
            await sent
            for error in filter(None, await asyncio.gather(*new.values(), return_exceptions=True)):
                raise error  # noqa: TRY301 - it is one of the answers
        except BaseException as error:
            is_queued = self._requests.take_back(sent)
            is_over = is_queued or self._failure is not None or (isinstance(error, Refused) and error.code)
            if withdraw is not None and not is_over:
                withdraw()
            raise
        finally:
            for name in names:
                del waits[name]
            if not waits:
                self._waits.pop((kind, application_id), None)

    def _withdraw(self, ask: si.Allocation) -> None:
        """Start to withdraw an ask, or to end its allocation."""
        name = (ask.applicationID, ask.allocationKey)
        self._withdrawals[name] = task = asyncio.create_task(self._withdrawn(ask))
        task.add_done_callback(lambda _: self._withdrawals.pop(name))

    async def _withdrawn(self, ask: si.Allocation) -> None:
        """Withdraw an ask, and wait until the scheduler cannot answer it any longer."""
        behind = si.Allocation(allocationKey=ask.allocationKey, partitionName=ask.partitionName)
        behind.applicationID = ask.applicationID + _NO_ID
        request = si.AllocationRequest(allocations=[behind])
        try:
            await self._put(release_request(end_of(ask)))
            await self._answers("ask", behind.applicationID, [behind.allocationKey], request)
        except LicorneError as error:
            if not isinstance(error, Refused) and self._failure is None:
                raise

    def _drop_asks(self, application_id: str, reason: str) -> Iterator[bool]:
        """End the wait for each ask of an application that has ended."""
        for key, future in [*self._waits.get(("ask", application_id), {}).items()]:
            _finish(future, Refused(f"ask {key!r} of {application_id!r}", reason))
            yield True

    def _put(self, request: Request) -> asyncio.Future[None]:
        """Queue a request of this resource manager; see `RequestQueue.put`."""
        self._check()
        request.rmID = self.rm_id
        return self._requests.put(request)

    # ------------------------------------------------------------------------------------ callbacks

    async def events(self, limit: int = 1024) -> AsyncGenerator[Heard, None]:
        """Iterate over all callbacks that arrive after the first step of the iteration.

        While `limit` of them are unread, no callbacks are handled, no wait gets its answer, and the scheduler
        stops placing. So wait for answers in another task, not inside the iteration.
        """
        loop, unread = self._check(), asyncio.Queue[Heard | LicorneError | None]()
        check_type("limit", limit, int)
        if limit < 1:
            raise RequestError(f"expected a limit above 0, got {limit}")
        self._readers[unread] = limit
        try:
            while (heard := await unread.get()) is not None:
                if isinstance(heard, LicorneError):
                    raise copy.copy(heard)
                if unread.qsize() == limit - 1:
                    loop.call_soon(self._hear)
                yield heard
        finally:
            del self._readers[unread]
            loop.call_soon(self._hear)

    def _hear(self) -> None:
        """Handle callbacks for a millisecond; leave the rest for after the other tasks of the loop."""
        ends = time.perf_counter() + _SLICE_SECONDS
        for goes_on in self._steps:
            if not goes_on:
                return
            if time.perf_counter() > ends:
                self._on_loop(self._hear)
                return

    def _take_in(self) -> Iterator[bool]:
        """Handle callbacks one entry at a time; yield whether more may be available now."""
        while True:
            for heard in (batch := self._inbox.take()):
                match heard.message:
                    case si.AllocationResponse() as response:
                        yield from self._take_allocations(response)
                        readers = self._readers if response.ListFields() else {}
                    case si.ApplicationResponse() | si.NodeResponse() as answers:
                        yield from self._take_answers(answers)
                        readers = self._readers
                    case _:
                        readers = self._readers
                for unread in readers:
                    unread.put_nowait(heard)
                while any(unread.qsize() >= limit for unread, limit in self._readers.items()):
                    yield False
            if not batch:  # Callbacks that arrived while a reader was behind have not woken the loop.
                yield False

    def _take_allocations(self, response: si.AllocationResponse) -> Iterator[bool]:
        for new in response.new:
            if (placed := self._placed.get((new.applicationID, new.allocationKey))) is not None:
                placed.node_id = new.nodeID
                _finish(self._waits.get(("ask", new.applicationID), {}).get(new.allocationKey))
            yield True
        rejections = list(response.rejectedAllocations)
        shown = [each for each in rejections if not each.applicationID.endswith(_NO_ID)]
        if len(shown) < len(rejections):
            del response.rejectedAllocations[:]
            response.rejectedAllocations.extend(shown)
        for rejected in rejections:
            what = f"ask {rejected.allocationKey!r} of {rejected.applicationID!r}"
            error = Refused(what, rejected.reason, rejected.code)
            _finish(self._waits.get(("ask", rejected.applicationID), {}).get(rejected.allocationKey), error)
            yield True
        for release in response.released:
            placed = self._placed.get((release.applicationID, release.allocationKey))
            if placed is not None and placed.node_id:
                if not placed.ending.done():
                    placed.release = release
                    placed.ending.set_result(release)
                if (
                    release.terminationType == si.STOPPED_BY_RM
                ):  # Otherwise the allocation runs until its end is confirmed.
                    del self._placed[release.applicationID, release.allocationKey]
            yield True

    def _take_answers(self, response: si.ApplicationResponse | si.NodeResponse) -> Iterator[bool]:
        kind = "node" if isinstance(response, si.NodeResponse) else "application"
        for answer in (*response.accepted, *response.rejected):
            name, reason = getattr(answer, f"{kind}ID"), getattr(answer, "reason", None)
            error = (
                None if reason is None else Refused(f"{kind} {name!r}", reason, getattr(answer, "code", ""))
            )
            _finish(self._waits.get((kind, ""), {}).get(name), error)
            yield True
        for change in response.updated if isinstance(response, si.ApplicationResponse) else ():
            if change.state in _ENDS:
                yield from self._drop_asks(change.applicationID, f"the application is {change.state}")


def _check_runs(scheduler: Any) -> None:
    """Refuse a scheduler that is stepped.

    Raises:
        LicorneError: The scheduler is stepped.
    """
    if getattr(scheduler, "stepped", False):
        name = getattr(scheduler, "engine_name", "of the server")
        raise LicorneError(f"expected an engine that runs by itself, got {name}, which is stepped")


def _finish(future: asyncio.Future[None] | None, error: Refused | None = None) -> None:
    """Finish a wait with its answer, unless it is finished already."""
    if future is not None and not future.done():
        future.set_result(None) if error is None else future.set_exception(error)
