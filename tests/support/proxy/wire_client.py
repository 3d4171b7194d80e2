"""A client that knows only the wire: it calls `si.v1` and `licorne.v1` over a channel of gRPC."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

import grpc
from support.waiting import WAIT_SECONDS

from licorne.proxy.si import licorne_v1_pb2 as v1
from licorne.proxy.si import si_pb2 as si

from .manager_requests import ONE

_SI: Final = "/si.v1.Scheduler/"


@final
class WireClient:
    """Calls of a resource manager (RM); a call that is refused raises `grpc.RpcError`."""

    def __init__(self, channel: grpc.Channel, *, authorization: str | None = None) -> None:
        self._channel = channel
        self._metadata: tuple[tuple[str, str | bytes], ...] = ()
        if authorization is not None:
            self._metadata = (("authorization", authorization),)

    def register(self, rm_id: str, configuration: str = ONE) -> si.RegisterResourceManagerResponse:
        """Register an RM by the unary call of `si.v1`."""
        call = self._channel.unary_unary(
            f"{_SI}RegisterResourceManager",
            request_serializer=si.RegisterResourceManagerRequest.SerializeToString,
            response_deserializer=si.RegisterResourceManagerResponse.FromString,
        )
        request = si.RegisterResourceManagerRequest(rmID=rm_id, policyGroup="queues", config=configuration)
        return call(request, timeout=WAIT_SECONDS, metadata=self._metadata)

    def update_node(self, *requests: si.NodeRequest) -> list[si.NodeResponse]:
        """Send requests on a stream of `si.v1`, and return what has come when as many answers have."""
        call = self._channel.stream_stream(
            f"{_SI}UpdateNode",
            request_serializer=si.NodeRequest.SerializeToString,
            response_deserializer=si.NodeResponse.FromString,
        )
        answers = call(iter(requests), timeout=WAIT_SECONDS, metadata=self._metadata)
        return [next(answers) for _ in requests]

    def session(self, *messages: v1.ManagerMessage) -> list[v1.SchedulerMessage]:
        """Say hello and send messages in a session; return the answers to the messages."""
        call = self._channel.stream_stream(
            "/licorne.v1.Session/Open",
            request_serializer=v1.ManagerMessage.SerializeToString,
            response_deserializer=v1.SchedulerMessage.FromString,
        )
        sent = [v1.ManagerMessage(call=1, hello=v1.Hello()), *messages]
        answers = call(iter(sent), timeout=WAIT_SECONDS, metadata=self._metadata)
        return [next(answers) for _ in sent][1:]


def refusal_of(call: Callable[[], object]) -> tuple[grpc.StatusCode, str]:
    """Return status and text of a call that is refused.

    Raises:
        AssertionError: It is not refused.
    """
    try:
        answer = call()
    except grpc.RpcError as error:
        return error.code(), error.details() or ""
    raise AssertionError(f"the call was answered: {answer}")
