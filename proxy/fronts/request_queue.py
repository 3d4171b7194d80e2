"""The requests of an `AsyncScheduler` on their way to its scheduler: one call at a time, on a thread."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeAlias, final

from ..si import si_pb2 as si
from ..si.messages import merges_into

Request: TypeAlias = "si.NodeRequest | si.ApplicationRequest | si.AllocationRequest"
REQUEST_TYPES: Final = (si.NodeRequest, si.ApplicationRequest, si.AllocationRequest)
_CALLS: Final[Mapping[type, str]] = {
    si.NodeRequest: "update_node",
    si.ApplicationRequest: "update_application",
    si.AllocationRequest: "update_allocation",
}
_MERGED_MAX: Final = 128
"""How many requests are sent as one: merging them takes a millisecond."""


@final
class RequestQueue:
    """Sends requests in order; neighbours of one type go in one request. All methods run on the loop.

    Args:
        scheduler: Returns the scheduler. Its calls may wait, so they run on a thread.
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
            A future that ends when the scheduler has taken the request; it has the error if all was refused.
        """
        future = asyncio.get_running_loop().create_future()
        self._queued[future] = request
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._send_all())
        return future

    def take_back(self, sent: asyncio.Future[None]) -> bool:
        """Remove a request that is still queued; return whether it was."""
        return self._queued.pop(sent, None) is not None

    def unfinished(self) -> list[asyncio.Future[None]]:
        """Return the futures of all requests that the scheduler has not taken."""
        return [future for future in (*self._queued, *self._being_sent) if not future.done()]

    def clear(self) -> None:
        """Remove all requests that are still queued."""
        self._queued.clear()

    def close(self) -> None:
        """End the thread, after the call that it makes now."""
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
        """Remove the first request and those behind it that merge into it; return it, and their futures."""
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
