"""The streams of `si.v1` as a resource manager (RM) in another language holds them."""

from __future__ import annotations

from typing import Any, Final, final

import grpc
from support.proxy.served import Call

from licorne.proxy.si import si_pb2 as si

_RESPONSES: Final[dict[str, Any]] = {
    "UpdateAllocation": si.AllocationResponse,
    "UpdateApplication": si.ApplicationResponse,
    "UpdateNode": si.NodeResponse,
}


@final
class WireStream(Call):
    """One open stream with its responses."""

    def __init__(self, channel: grpc.Channel, method: str) -> None:
        super().__init__(channel, f"/si.v1.Scheduler/{method}")
        self._response = _RESPONSES[method]

    def next(self) -> Any:
        """Return the next response.

        Raises:
            grpc.RpcError: The stream has ended with another status than OK.
        """
        return self._response.FromString(self.read())


@final
class WireStreams:
    """The three streams of an RM."""

    def __init__(self, channel: grpc.Channel) -> None:
        self.allocations = WireStream(channel, "UpdateAllocation")
        self.applications = WireStream(channel, "UpdateApplication")
        self.nodes = WireStream(channel, "UpdateNode")
        self.all = (self.allocations, self.applications, self.nodes)
