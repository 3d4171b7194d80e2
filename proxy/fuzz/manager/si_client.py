"""A client for `si.v1`: one call and three streams, and the messages of the older generation."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final, final

import grpc

from ....model.errors import LicorneError
from ...si import constants
from ...si import si_pb2 as si
from ...si.api import ResourceManagerCallback, SchedulerAPI

_SERVICE: Final = "/si.v1.Scheduler"
_KINDS: Final[dict[str, tuple[str, Any, Any]]] = {
    "update_allocation": ("UpdateAllocation", si.AllocationRequest, si.AllocationResponse),
    "update_application": ("UpdateApplication", si.ApplicationRequest, si.ApplicationResponse),
    "update_node": ("UpdateNode", si.NodeRequest, si.NodeResponse),
}
_RECONNECT_SECONDS: Final = 1.0


@final
class SiClient:
    """A scheduler behind the streams of `si.v1`, as resource managers in any language use it.

    A stream that ends early may have lost messages: the client then ends all of them, and makes the callback
    register again.

    Args:
        address: The address of the server.
    """

    def __init__(self, address: str) -> None:
        self._channel = grpc.insecure_channel(address)
        self._calls: list[Any] = []
        self._requests: dict[str, queue.SimpleQueue[Any]] = {}
        self._registrations = 0
        self._lock = threading.Lock()

    def register_resource_manager(
        self, request: si.RegisterResourceManagerRequest, callback: ResourceManagerCallback
    ) -> si.RegisterResourceManagerResponse:
        """Register, and open the streams.

        Raises:
            LicorneError: The server refuses, or is not reachable.
        """
        self._end_streams()
        register: Any = self._channel.unary_unary(
            f"{_SERVICE}/RegisterResourceManager",
            request_serializer=si.RegisterResourceManagerRequest.SerializeToString,
            response_deserializer=si.RegisterResourceManagerResponse.FromString,
        )
        try:
            response: si.RegisterResourceManagerResponse = register(request)
        except grpc.RpcError as error:
            raise LicorneError(f"the registration of {request.rmID!r} has failed: {error}") from error
        with self._lock:
            self._registrations += 1
            for callback_name in _KINDS:
                self._open(callback_name, callback, self._registrations)
                self._requests[callback_name].put(_KINDS[callback_name][1](rmID=request.rmID))
        return response

    def update_allocation(self, request: si.AllocationRequest) -> None:
        """Send asks, allocations and releases."""
        self._send("update_allocation", request)

    def update_application(self, request: si.ApplicationRequest) -> None:
        """Send new and removed applications."""
        self._send("update_application", request)

    def update_node(self, request: si.NodeRequest) -> None:
        """Send changes of nodes."""
        self._send("update_node", request)

    def update_configuration(self, request: si.UpdateConfigurationRequest) -> None:
        """Refuse: `si.v1` has no such call.

        Raises:
            LicorneError: Always.
        """
        raise LicorneError(f"si.v1 has no call for a configuration of {request.rmID!r}: register again")

    def stop(self) -> None:
        """End the connection."""
        self._end_streams()
        self._channel.close()

    def _send(self, callback_name: str, request: Any) -> None:
        requests = self._requests.get(callback_name)
        if requests is None:
            raise LicorneError(f"the connection of {request.rmID!r} is lost")
        requests.put(request)

    def _open(self, callback_name: str, callback: ResourceManagerCallback, registration: int) -> None:
        method, kind, response = _KINDS[callback_name]
        requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._requests[callback_name] = requests
        call: Any = self._channel.stream_stream(
            f"{_SERVICE}/{method}",
            request_serializer=kind.SerializeToString,
            response_deserializer=response.FromString,
        )(iter(requests.get, None))
        self._calls.append(call)
        threading.Thread(
            target=self._read, args=(call, callback_name, callback, registration), name=method, daemon=True
        ).start()

    def _read(
        self, call: Iterator[Any], callback_name: str, callback: ResourceManagerCallback, registration: int
    ) -> None:
        """Give the callback the messages, until the stream ends."""
        try:
            for response in call:
                with suppress(Exception):  # An exception of a faulty callback ends no stream.
                    getattr(callback, callback_name)(response)
        except grpc.RpcError:
            if self._end_streams(registration):
                time.sleep(_RECONNECT_SECONDS)
                reconnected: Any = getattr(callback, "reconnected", None)
                if reconnected is not None:
                    reconnected()

    def _end_streams(self, registration: int | None = None) -> bool:
        """End the streams of a registration, or the present ones; return whether they were open."""
        with self._lock:
            if registration not in (None, self._registrations) or not self._calls:
                return False
            calls, self._calls = self._calls, []
            requests, self._requests = self._requests, {}
        for each in requests.values():
            each.put(None)
        for call in calls:
            call.cancel()
        return True


class SchedulerDoor:
    """A scheduler behind a door that passes everything on unchanged; subclasses change some of it.

    Args:
        scheduler: The scheduler.
    """

    def __init__(self, scheduler: SchedulerAPI) -> None:
        self._scheduler = scheduler
        self.update_application = scheduler.update_application
        self.update_node = scheduler.update_node
        self.update_configuration = scheduler.update_configuration
        self.stop = scheduler.stop

    def register_resource_manager(
        self, request: si.RegisterResourceManagerRequest, callback: ResourceManagerCallback
    ) -> si.RegisterResourceManagerResponse:
        """Register."""
        return self._scheduler.register_resource_manager(request, callback)

    def update_allocation(self, request: si.AllocationRequest) -> None:
        """Send asks, allocations and releases."""
        self._scheduler.update_allocation(request)


@final
class OlderGeneration(SchedulerDoor):
    """A door that uses the older generation of `si.v1` in all messages."""

    def update_allocation(self, request: si.AllocationRequest) -> None:
        """Send asks in their old form, and name allocations by their UUIDs."""
        older = si.AllocationRequest(rmID=request.rmID)
        for allocation in request.allocations:
            if allocation.nodeID or constants.FOREIGN in allocation.allocationTags:
                older.allocations.add().CopyFrom(allocation)
                if allocation.applicationID:
                    older.allocations[-1].UUID = allocation.allocationKey
            else:
                _add_ask(older, allocation)
        for release in request.releases.allocationsToRelease:
            older.releases.allocationsToRelease.add().CopyFrom(release)
            older.releases.allocationsToRelease[-1].UUID = release.allocationKey
            if release.terminationType == si.STOPPED_BY_RM and release.applicationID:
                older.releases.allocationAsksToRelease.add(
                    partitionName=release.partitionName,
                    applicationID=release.applicationID,
                    allocationKey=release.allocationKey,
                )
        self._scheduler.update_allocation(older)


def _add_ask(request: si.AllocationRequest, allocation: si.Allocation) -> None:
    request.asks.add(
        allocationKey=allocation.allocationKey,
        applicationID=allocation.applicationID,
        partitionName=allocation.partitionName,
        resourceAsk=allocation.resourcePerAlloc,
        priority=allocation.priority,
        taskGroupName=allocation.taskGroupName,
        placeholder=allocation.placeholder,
        preemptionPolicy=allocation.preemptionPolicy,
        tags=allocation.allocationTags,
        maxAllocations=1,
    )
