"""The services by which tools check a server and read its interface, called as those tools call them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Final

import grpc
import pytest
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.json_format import ParseDict
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from support.proxy.manager_requests import BROKEN, ONE
from support.proxy.wire_client import WireClient, refusal_of
from support.waiting import WAIT_SECONDS

from licorne import Scheduler
from licorne.proxy.si import licorne_v1_pb2, si_pb2
from licorne.proxy.wire.server.access import AccessRules
from licorne.proxy.wire.server.server import ServerSettings, ServerThread

SERVICES: Final = ("si.v1.Scheduler", "licorne.v1.Session")
SERVING: Final = int(health_pb2.HealthCheckResponse.SERVING)
NOT_SERVING: Final = int(health_pb2.HealthCheckResponse.NOT_SERVING)


@pytest.fixture(scope="module")
def channel() -> Iterator[grpc.Channel]:
    """Run a server, and return a channel to it."""
    with ServerThread(Scheduler()) as server, grpc.insecure_channel(server.address) as connected:
        yield connected


@pytest.fixture
def reflected(channel: grpc.Channel) -> DescriptorPool:
    """Return a pool that knows what the server tells of itself, and nothing else."""
    return DescriptorPool(ProtoReflectionDescriptorDatabase(channel))


def checked(channel: grpc.Channel, service: str) -> int:
    """Return what a health check says."""
    call = channel.unary_unary(
        "/grpc.health.v1.Health/Check",
        request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
        response_deserializer=health_pb2.HealthCheckResponse.FromString,
    )
    answer = call(health_pb2.HealthCheckRequest(service=service), timeout=WAIT_SECONDS)
    return int(answer.status)


def watched(channel: grpc.Channel) -> Iterator[int]:
    """Yield the health of the server, and each change of it."""
    call = channel.unary_stream(
        "/grpc.health.v1.Health/Watch",
        request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
        response_deserializer=health_pb2.HealthCheckResponse.FromString,
    )
    for answer in call(health_pb2.HealthCheckRequest(), timeout=WAIT_SECONDS):
        yield int(answer.status)


# --------------------------------------------------------------------------------------------- health


@pytest.mark.parametrize("service", ["", *SERVICES])
def test_a_server_that_listens_is_healthy(channel: grpc.Channel, service: str) -> None:
    """The empty name stands for the server as a whole."""
    assert SERVING == checked(channel, service)


def test_the_health_of_an_unknown_service_is_not_found(channel: grpc.Channel) -> None:
    """As the protocol of health checks has it."""
    code, _ = refusal_of(lambda: checked(channel, "si.v2.Scheduler"))

    assert grpc.StatusCode.NOT_FOUND == code


def test_who_watches_the_health_hears_that_the_server_stops() -> None:
    """Before its streams end: a load balancer sends nobody there any more."""
    with ExitStack() as running:
        server = running.enter_context(ServerThread(Scheduler()))
        with grpc.insecure_channel(server.address) as channel:
            health = watched(channel)
            before = next(health)
            running.close()

            assert [SERVING, NOT_SERVING] == [before, next(health)]


# ----------------------------------------------------------------------------------------- reflection


def test_reflection_lists_the_services(channel: grpc.Channel) -> None:
    """Ours, and the two of gRPC."""
    listed = ProtoReflectionDescriptorDatabase(channel).get_services()

    assert {*SERVICES, "grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection"} == {*listed}


@pytest.mark.parametrize("service", SERVICES)
def test_reflection_describes_the_methods_of_a_service(reflected: DescriptorPool, service: str) -> None:
    """Names, types and streams: the same that our sources have."""
    module = si_pb2 if service.startswith("si.") else licorne_v1_pb2
    ours = module.DESCRIPTOR.services_by_name[service.rpartition(".")[2]]
    told = reflected.FindServiceByName(service)

    assert [
        (each.name, each.input_type.full_name, each.output_type.full_name, each.client_streaming)
        for each in ours.methods
    ] == [
        (each.name, each.input_type.full_name, each.output_type.full_name, each.client_streaming)
        for each in told.methods
    ]


@pytest.mark.parametrize("module", [si_pb2, licorne_v1_pb2], ids=["si.v1", "licorne.v1"])
def test_reflection_describes_every_message(reflected: DescriptorPool, module: object) -> None:
    """Each field with its number."""
    messages = module.DESCRIPTOR.message_types_by_name.values()  # type: ignore[attr-defined]
    told = [reflected.FindMessageTypeByName(each.full_name) for each in messages]

    assert [{field.name: field.number for field in each.fields} for each in messages] == [
        {field.name: field.number for field in each.fields} for each in told
    ]


def test_reflection_knows_no_symbol_that_is_not_there(reflected: DescriptorPool) -> None:
    """The tool hears that it is unknown, and the stream goes on."""
    with pytest.raises(KeyError, match=r"si\.v1\.Nothing"):
        reflected.FindMessageTypeByName("si.v1.Nothing")

    assert "si.v1.NodeInfo" == reflected.FindMessageTypeByName("si.v1.NodeInfo").full_name


def called(channel: grpc.Channel, pool: DescriptorPool, configuration: str) -> Message:
    """Register with a message that is made from JSON and from what reflection tells, as `grpcurl` does."""
    method = pool.FindServiceByName("si.v1.Scheduler").methods_by_name["RegisterResourceManager"]
    request = ParseDict({"rmID": "tool", "config": configuration}, GetMessageClass(method.input_type)())
    call = channel.unary_unary(
        f"/{method.containing_service.full_name}/{method.name}",
        request_serializer=type(request).SerializeToString,
        response_deserializer=GetMessageClass(method.output_type).FromString,
    )
    return call(request, timeout=WAIT_SECONDS)


def test_a_tool_can_call_by_reflection_alone(channel: grpc.Channel, reflected: DescriptorPool) -> None:
    """It reads answers and errors."""
    assert "si.v1.RegisterResourceManagerResponse" == called(channel, reflected, ONE).DESCRIPTOR.full_name

    code, text = refusal_of(lambda: called(channel, reflected, BROKEN))
    assert (grpc.StatusCode.INVALID_ARGUMENT, True) == (code, "no.dots" in text)


def test_health_and_reflection_need_no_token() -> None:
    """They say nothing of a resource manager; its services say no."""
    rules = AccessRules([("the-token-of-anybody", None)])
    with (
        ServerThread(Scheduler(), ServerSettings(access=rules)) as server,
        grpc.insecure_channel(server.address) as channel,
    ):
        listed = ProtoReflectionDescriptorDatabase(channel).get_services()
        code, _ = refusal_of(lambda: WireClient(channel).register("rm"))

        assert (SERVING, True) == (checked(channel, ""), "si.v1.Scheduler" in listed)
        assert grpc.StatusCode.UNAUTHENTICATED == code
