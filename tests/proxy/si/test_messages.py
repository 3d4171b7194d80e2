"""The names and numbers of `si.v1`, literally: a change here breaks every resource manager there is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from google.protobuf import descriptor_pb2, message_factory

from licorne.proxy.si import si_pb2 as si

FILE: Final = descriptor_pb2.FileDescriptorProto.FromString(si.DESCRIPTOR.serialized_pb)

OWN_CODE = {"string code": 1000}
"""Not of the interface: for programs, beside the reason."""

MESSAGES: Final = {
    "RegisterResourceManagerRequest": {
        "string rmID": 1,
        "string version": 2,
        "string policyGroup": 3,
        "map buildInfo": 4,
        "string config": 5,
        "map extraConfig": 6,
    },
    "RegisterResourceManagerResponse": {},
    "UpdateConfigurationRequest": {
        "string rmID": 2,
        "string policyGroup": 3,
        "string config": 4,
        "map extraConfig": 5,
    },
    "Resource": {"map resources": 1},
    "Quantity": {"int64 value": 1},
    "UserGroupInformation": {"string user": 1, "repeated string groups": 2},
    "PreemptionPolicy": {"bool allowPreemptSelf": 1, "bool allowPreemptOther": 2},
    "AllocationRequest": {
        "repeated AllocationAsk asks": 1,
        "AllocationReleasesRequest releases": 2,
        "string rmID": 3,
        "repeated Allocation allocations": 4,
    },
    "Allocation": {
        "string allocationKey": 1,
        "map allocationTags": 2,
        "string UUID": 3,
        "Resource resourcePerAlloc": 5,
        "int32 priority": 6,
        "string nodeID": 8,
        "string applicationID": 9,
        "string partitionName": 10,
        "string taskGroupName": 11,
        "bool placeholder": 12,
        "bool originator": 14,
        "PreemptionPolicy preemptionPolicy": 15,
    },
    "AllocationAsk": {
        "string allocationKey": 1,
        "string applicationID": 2,
        "string partitionName": 3,
        "Resource resourceAsk": 4,
        "int32 maxAllocations": 5,
        "int32 priority": 6,
        "int64 executionTimeoutMilliSeconds": 7,
        "map tags": 8,
        "string taskGroupName": 9,
        "bool placeholder": 10,
        "bool Originator": 11,
        "PreemptionPolicy preemptionPolicy": 12,
    },
    "AllocationReleasesRequest": {
        "repeated AllocationRelease allocationsToRelease": 1,
        "repeated AllocationAskRelease allocationAsksToRelease": 2,
    },
    "AllocationRelease": {
        "string partitionName": 1,
        "string applicationID": 2,
        "string UUID": 3,
        "TerminationType terminationType": 4,
        "string message": 5,
        "string allocationKey": 6,
    },
    "AllocationAskRelease": {
        "string partitionName": 1,
        "string applicationID": 2,
        "string allocationKey": 3,
        "TerminationType terminationType": 4,
        "string message": 5,
    },
    "AllocationResponse": {
        "repeated Allocation new": 1,
        "repeated AllocationRelease released": 2,
        "repeated AllocationAskRelease releasedAsks": 3,
        "repeated RejectedAllocationAsk rejected": 4,
        "repeated RejectedAllocation rejectedAllocations": 5,
    },
    "RejectedAllocation": {
        "string allocationKey": 1,
        "string applicationID": 2,
        "string reason": 3,
        **OWN_CODE,
    },
    "RejectedAllocationAsk": {
        "string allocationKey": 1,
        "string applicationID": 2,
        "string reason": 3,
        **OWN_CODE,
    },
    "ApplicationRequest": {
        "repeated AddApplicationRequest new": 1,
        "repeated RemoveApplicationRequest remove": 2,
        "string rmID": 3,
    },
    "AddApplicationRequest": {
        "string applicationID": 1,
        "string queueName": 2,
        "string partitionName": 3,
        "UserGroupInformation ugi": 4,
        "map tags": 5,
        "int64 executionTimeoutMilliSeconds": 6,
        "Resource placeholderAsk": 7,
        "string gangSchedulingStyle": 8,
    },
    "RemoveApplicationRequest": {
        "string applicationID": 1,
        "string partitionName": 2,
        "string outcome": 1000,
    },
    "ApplicationResponse": {
        "repeated RejectedApplication rejected": 1,
        "repeated AcceptedApplication accepted": 2,
        "repeated UpdatedApplication updated": 3,
    },
    "RejectedApplication": {"string applicationID": 1, "string reason": 2, **OWN_CODE},
    "AcceptedApplication": {"string applicationID": 1},
    "UpdatedApplication": {
        "string applicationID": 1,
        "string state": 2,
        "int64 stateTransitionTimestamp": 3,
        "string message": 4,
    },
    "NodeRequest": {"repeated NodeInfo nodes": 1, "string rmID": 2},
    "NodeInfo": {
        "string nodeID": 1,
        "ActionFromRM action": 2,
        "map attributes": 3,
        "Resource schedulableResource": 4,
        "Resource occupiedResource": 5,
        "repeated Allocation existingAllocations": 6,
    },
    "NodeResponse": {"repeated RejectedNode rejected": 1, "repeated AcceptedNode accepted": 2},
    "RejectedNode": {"string nodeID": 1, "string reason": 2, **OWN_CODE},
    "AcceptedNode": {"string nodeID": 1},
    "PredicatesArgs": {"string allocationKey": 1, "string nodeID": 2, "bool allocate": 3},
    "PreemptionPredicatesArgs": {
        "string allocationKey": 1,
        "string nodeID": 2,
        "repeated string preemptAllocationKeys": 3,
        "int32 startIndex": 4,
    },
    "PreemptionPredicatesResponse": {"bool success": 1, "int32 index": 2},
    "UpdateContainerSchedulingStateRequest": {
        "string applicationID": 1,
        "string allocationKey": 2,
        "SchedulingState state": 3,
        "string reason": 4,
    },
    "EventRecord": {
        "Type type": 1,
        "string objectID": 2,
        "string message": 5,
        "int64 timestampNano": 6,
        "ChangeType eventChangeType": 7,
        "ChangeDetail eventChangeDetail": 8,
        "string referenceID": 9,
        "Resource resource": 10,
    },
}

MAPS: Final = {
    "RegisterResourceManagerRequest.buildInfo": "string",
    "RegisterResourceManagerRequest.extraConfig": "string",
    "UpdateConfigurationRequest.extraConfig": "string",
    "Resource.resources": "Quantity",
    "Allocation.allocationTags": "string",
    "AllocationAsk.tags": "string",
    "AddApplicationRequest.tags": "string",
    "NodeInfo.attributes": "string",
}

RESERVED: Final = {
    "Allocation": ([7, 13], ["queueName", "allocationID"]),
    "AllocationRelease": ([7], ["allocationID"]),
    "UpdateConfigurationRequest": ([1], ["configs"]),
    "EventRecord": ([3, 4], ["groupID", "reason"]),
}

ENUMS: Final = {
    "TerminationType": {
        "UNKNOWN_TERMINATION_TYPE": 0,
        "STOPPED_BY_RM": 1,
        "TIMEOUT": 2,
        "PREEMPTED_BY_SCHEDULER": 3,
        "PLACEHOLDER_REPLACED": 4,
        "SCHEDULING_FAILED_ON_RM": 5,
    },
    "NodeInfo.ActionFromRM": {
        "UNKNOWN_ACTION_FROM_RM": 0,
        "CREATE": 1,
        "UPDATE": 2,
        "DRAIN_NODE": 3,
        "DECOMISSION": 4,
        "DRAIN_TO_SCHEDULABLE": 5,
        "CREATE_DRAIN": 6,
    },
    "UpdateContainerSchedulingStateRequest.SchedulingState": {
        "UNKNOWN_SCHEDULING_STATE": 0,
        "SKIPPED": 1,
        "SCHEDULED": 2,
        "RESERVED": 3,
        "FAILED": 4,
    },
    "EventRecord.Type": {
        "UNKNOWN_EVENTRECORD_TYPE": 0,
        "REQUEST": 1,
        "APP": 2,
        "NODE": 3,
        "QUEUE": 4,
        "USERGROUP": 5,
    },
    "EventRecord.ChangeType": {"NONE": 0, "SET": 1, "ADD": 2, "REMOVE": 3},
    "EventRecord.ChangeDetail": {
        "DETAILS_NONE": 0,
        "REQUEST_CANCEL": 100,
        "REQUEST_ALLOC": 101,
        "REQUEST_TIMEOUT": 102,
        "APP_ALLOC": 200,
        "APP_REQUEST": 201,
        "APP_REJECT": 202,
        "APP_NEW": 203,
        "APP_ACCEPTED": 204,
        "APP_RUNNING": 206,
        "APP_COMPLETING": 207,
        "APP_COMPLETED": 208,
        "APP_FAILING": 209,
        "APP_FAILED": 210,
        "APP_RESUMING": 211,
        "APP_EXPIRED": 212,
        "APP_CANNOTRUN_QUEUE": 213,
        "APP_RUNNABLE_QUEUE": 214,
        "APP_CANNOTRUN_QUOTA": 215,
        "APP_RUNNABLE_QUOTA": 216,
        "NODE_DECOMISSION": 300,
        "NODE_SCHEDULABLE": 302,
        "NODE_ALLOC": 303,
        "NODE_CAPACITY": 304,
        "NODE_OCCUPIED": 305,
        "NODE_RESERVATION": 306,
        "QUEUE_CONFIG": 400,
        "QUEUE_DYNAMIC": 401,
        "QUEUE_TYPE": 402,
        "QUEUE_MAX": 403,
        "QUEUE_GUARANTEED": 404,
        "QUEUE_APP": 405,
        "QUEUE_ALLOC": 406,
        "QUEUE_PREEMPTION": 407,
        "ALLOC_CANCEL": 500,
        "ALLOC_PREEMPT": 501,
        "ALLOC_TIMEOUT": 502,
        "ALLOC_REPLACED": 503,
        "ALLOC_NODEREMOVED": 504,
        "UG_USER_LIMIT": 600,
        "UG_GROUP_LIMIT": 601,
        "UG_APP_LINK": 602,
        "UG_USER_RESOURCE": 603,
        "UG_GROUP_RESOURCE": 604,
    },
}

RPCS: Final = {
    "RegisterResourceManager": ("RegisterResourceManagerRequest", "RegisterResourceManagerResponse", False),
    "UpdateAllocation": ("AllocationRequest", "AllocationResponse", True),
    "UpdateApplication": ("ApplicationRequest", "ApplicationResponse", True),
    "UpdateNode": ("NodeRequest", "NodeResponse", True),
}


def _type_name(field: descriptor_pb2.FieldDescriptorProto) -> str:
    """Name the type of a field as `si.proto` writes it, without its scope."""
    if field.type_name:
        return field.type_name.rpartition(".")[2]
    return descriptor_pb2.FieldDescriptorProto.Type.Name(field.type).removeprefix("TYPE_").lower()


def _entries(message: descriptor_pb2.DescriptorProto) -> dict[str, descriptor_pb2.DescriptorProto]:
    """Return the types that protoc makes for the maps of a message."""
    return {nested.name: nested for nested in message.nested_type if nested.options.map_entry}


def _declaration(
    field: descriptor_pb2.FieldDescriptorProto, entries: dict[str, descriptor_pb2.DescriptorProto]
) -> str:
    """Write a field as the tables above do."""
    name = _type_name(field)
    if name in entries:
        return f"map {field.name}"
    repeated = field.label == descriptor_pb2.FieldDescriptorProto.LABEL_REPEATED
    return f"{'repeated ' if repeated else ''}{name} {field.name}"


def _enums() -> Iterable[tuple[str, descriptor_pb2.EnumDescriptorProto]]:
    """Return every enum of the file with its scope."""
    for enum in FILE.enum_type:
        yield enum.name, enum
    for message in FILE.message_type:
        for enum in message.enum_type:
            yield f"{message.name}.{enum.name}", enum


def test_every_message_has_exactly_its_fields_of_both_generations() -> None:
    """No message or field is missing, misspelt, of another type, at another number, or too much."""
    actual = {
        message.name: {_declaration(field, _entries(message)): field.number for field in message.field}
        for message in FILE.message_type
    }

    assert actual == MESSAGES


def test_maps_go_from_texts_to_texts_or_quantities() -> None:
    """The key of each map is a text, and its value is of the type that the interface says."""
    actual = {}
    for message in FILE.message_type:
        for field in message.field:
            entry = _entries(message).get(_type_name(field))
            if entry is not None:
                assert _type_name(entry.field[0]) == "string"
                actual[f"{message.name}.{field.name}"] = _type_name(entry.field[1])

    assert actual == MAPS


def test_numbers_that_were_in_use_before_stay_reserved() -> None:
    """A number that some generation between the two used can not be given to anything else."""
    actual = {
        message.name: (
            [n for reserved in message.reserved_range for n in range(reserved.start, reserved.end)],
            list(message.reserved_name),
        )
        for message in FILE.message_type
        if message.reserved_range
    }

    assert actual == RESERVED


def test_every_enum_has_exactly_its_values() -> None:
    """No enum or value is missing, misspelt, at another number, or too much."""
    actual = {name: {value.name: value.number for value in enum.value} for name, enum in _enums()}

    assert actual == ENUMS


def test_change_details_that_were_in_use_before_stay_reserved() -> None:
    """The two gaps in the change details are reserved with their old names."""
    detail = dict(_enums())["EventRecord.ChangeDetail"]

    actual = [(reserved.start, reserved.end) for reserved in detail.reserved_range]

    assert actual == [(205, 205), (301, 301)]
    assert list(detail.reserved_name) == ["APP_STARTING", "NODE_READY"]


def test_the_service_has_four_calls_of_which_three_are_streams_both_ways() -> None:
    """The remote service is `si.v1.Scheduler` with the calls that its clients know."""
    (service,) = FILE.service

    actual = {
        method.name: (
            method.input_type.removeprefix(".si.v1."),
            method.output_type.removeprefix(".si.v1."),
            method.client_streaming and method.server_streaming,
        )
        for method in service.method
    }

    assert f"{FILE.package}.{service.name}" == "si.v1.Scheduler"
    assert actual == RPCS


def test_the_option_for_secret_fields_has_its_number() -> None:
    """`si_secret` is the Boolean field option 1059, and an option can carry it."""
    kind = si.DESCRIPTOR.pool.FindMessageTypeByName("google.protobuf.FieldOptions")
    options: Any = message_factory.GetMessageClass(kind)()
    options.Extensions[si.si_secret] = True

    assert si.SI_SECRET_FIELD_NUMBER == 1059
    assert options.SerializeToString() == b"\x98\x42\x01"
