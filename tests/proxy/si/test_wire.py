"""The messages of `si.v1` as bytes, copies, and beside other people's."""

from __future__ import annotations

import copy
import pickle
from typing import Final

import pytest
from google.protobuf import message_factory
from google.protobuf.internal import api_implementation
from support.programs import run_python

from licorne.proxy.si import si_pb2 as si

_ANOTHER_COPY: Final = """
from google.protobuf import descriptor_pb2, descriptor_pool
theirs = descriptor_pb2.FileDescriptorProto(name="si.proto", package="si.v1", syntax="proto3")
theirs.message_type.add(name="Allocation").field.add(name="somethingElse", number=1, type=9, label=1)
descriptor_pool.Default().AddSerializedFile(theirs.SerializeToString())
from licorne.proxy.si import si_pb2
print(si_pb2.Allocation(allocationKey="k").allocationKey)
"""


def test_the_older_generation_is_read_from_the_wire() -> None:
    """Bytes as an older resource manager sends them give its asks and releases."""
    ask = b"\x0a\x03ask\x12\x03app\x28\x05\x58\x01"
    release = b"\x0a\x01p\x12\x03app\x1a\x04uuid\x20\x01"
    wire = b"\x0a" + bytes([len(ask)]) + ask
    wire += b"\x12" + bytes([len(release) + 2]) + b"\x0a" + bytes([len(release)]) + release + b"\x1a\x02rm"

    request = si.AllocationRequest.FromString(wire)

    assert request == si.AllocationRequest(
        asks=[si.AllocationAsk(allocationKey="ask", applicationID="app", maxAllocations=5, Originator=True)],
        releases=si.AllocationReleasesRequest(
            allocationsToRelease=[
                si.AllocationRelease(
                    partitionName="p", applicationID="app", UUID="uuid", terminationType=si.STOPPED_BY_RM
                )
            ]
        ),
        rmID="rm",
    )


def test_the_current_generation_is_written_to_the_wire() -> None:
    """An allocation becomes the very bytes that a current scheduler sends."""
    message = si.Allocation(
        allocationKey="k",
        resourcePerAlloc=si.Resource(resources={"vcore": si.Quantity(value=1)}),
        nodeID="n",
        originator=True,
        preemptionPolicy=si.PreemptionPolicy(allowPreemptOther=True),
    )

    expected = b"\x0a\x01k\x2a\x0d\x0a\x0b\x0a\x05vcore\x12\x02\x08\x01\x42\x01n\x70\x01\x7a\x02\x10\x01"

    assert expected == message.SerializeToString()


@pytest.mark.parametrize("name", sorted(si.DESCRIPTOR.message_types_by_name))
def test_a_message_survives_copying_and_pickling(name: str) -> None:
    """Messages can be copied and sent to another process, whichever module made them."""
    message = message_factory.GetMessageClass(si.DESCRIPTOR.message_types_by_name[name])()

    assert getattr(si, name) is type(message)
    assert copy.deepcopy(message) == message
    assert pickle.loads(pickle.dumps(message)) == message  # noqa: S301 - our own bytes


@pytest.mark.skipif(
    api_implementation.Type() == "python", reason="protobuf without C registers every message process-wide"
)
def test_another_copy_of_the_interface_in_the_process_does_no_harm() -> None:
    """A program with its own, different `si.v1` in the default descriptor pool can import ours."""
    outcome = run_python("-W", "error", "-c", _ANOTHER_COPY)

    assert (outcome.returncode, outcome.stdout, outcome.stderr) == (0, "k\n", "")
