"""The JSON form of the messages is that of the recorded transcripts, field by field."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from google.protobuf.json_format import ParseDict
from google.protobuf.message import Message

from licorne.model.resources.resource import Resource
from licorne.model.values.allocation import Allocation, Ask
from licorne.model.values.messages import (
    AllocationPlaced,
    AllocationRejection,
    AllocationsRejected,
    AllocationsReleased,
    ApplicationChanged,
    ApplicationsAnswered,
    NodesAnswered,
    Rejection,
    Release,
    SchedulingStateChanged,
    TerminationType,
)
from licorne.proxy.core.recording.turn_documents import message_document
from licorne.proxy.si import si_pb2 as si
from licorne.proxy.si.older_generation import Generation
from licorne.proxy.si.reading import RequestReader, application_removals, registration, releases
from licorne.proxy.si.writing import (
    write_allocation_placed,
    write_allocations_rejected,
    write_allocations_released,
    write_application_changed,
    write_applications_answered,
    write_nodes_answered,
    write_scheduling_state_changed,
)

RECORDED: Final = Path(__file__).parents[2] / "conformance"
AREAS: Final = sorted(
    path.name for path in RECORDED.iterdir() if path.is_dir() and list(path.glob("*.expected.jsonl"))
)
REQUESTS: Final = {
    "register": si.RegisterResourceManagerRequest,
    "configuration": si.UpdateConfigurationRequest,
    "node": si.NodeRequest,
    "application": si.ApplicationRequest,
    "allocation": si.AllocationRequest,
}
UNSTABLE: Final = "<unstable>"
TIME: Final = "<time>"
SOME_TIME_NS: Final = 946_684_800_000_000_000


def _lines(area: str, *, expected: bool) -> Iterator[dict[str, Any]]:
    """Return the lines of an area's transcripts, or of what the recorded core answered."""
    for path in sorted((RECORDED / area).glob("*.jsonl")):
        if path.name.endswith(".expected.jsonl") == expected:
            for line in path.read_text(encoding="utf-8").splitlines():
                if line and not line.startswith("#"):
                    yield json.loads(line)


def _requests(area: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return the messages of an area's transcripts, with their verbs."""
    for line in _lines(area, expected=False):
        ((verb, body),) = line.items()
        if verb in REQUESTS:
            yield verb, body


def _answers(area: str, kind: str, part: str) -> Iterator[Any]:
    """Return the elements of one list in the recorded core's answers that were the same in every run."""
    for line in _lines(area, expected=True):
        answer = line.get(kind, {})
        for element in [] if answer == UNSTABLE else answer.get(part, []):
            if element != UNSTABLE and UNSTABLE not in element.values():
                yield element


def _written(message: Message) -> dict[str, Any]:
    return message_document(message)


def _significant(body: Any) -> Any:
    """Drop what is empty or zero: such a field may as well be absent."""
    if isinstance(body, dict):
        entries = {name: _significant(value) for name, value in body.items()}
        return {name: value for name, value in entries.items() if value not in ("", {}, [], 0, False)}
    if isinstance(body, list):
        return [_significant(element) for element in body]
    return 0 if body in ("0", "UNKNOWN_ACTION_FROM_RM", "UNKNOWN_TERMINATION_TYPE") else body


def _read_all(verb: str, message: Any) -> None:
    """Read every part of a request."""
    reader = RequestReader()
    match verb:
        case "register":
            registration(message)
        case "node":
            assert sum(map(len, reader.node_updates(message, Generation()).values())) == len(message.nodes)
        case "application":
            assert len(reader.application_submissions(message)) == len(message.new)
            assert len(application_removals(message)) == len(message.remove)
        case "allocation":
            assert len(reader.allocation_submissions(message, Generation())) == len(message.allocations)
            assert len(releases(message, Generation())) == len(message.releases.allocationsToRelease)


def _placed(body: dict[str, Any]) -> AllocationPlaced:
    """Build the announcement that a recorded placement stands for."""
    quantities = body["resourcePerAlloc"].get("resources", {})
    policy = body["preemptionPolicy"]
    ask = Ask(
        allocation_key=body["allocationKey"],
        application_id=body["applicationID"],
        resource=Resource({name: int(quantity.get("value", 0)) for name, quantity in quantities.items()}),
        created_at_ns=0,
        task_group_name=body.get("taskGroupName", ""),
        placeholder=body.get("placeholder", False),
        originator=body.get("originator", False),
        allow_preempt_self=policy.get("allowPreemptSelf", False),
        allow_preempt_other=policy.get("allowPreemptOther", False),
    )
    return AllocationPlaced(Allocation(ask, body["nodeID"], 0))


def test_there_are_recordings_to_compare_with() -> None:
    """The tests below are not empty."""
    assert len(AREAS) >= 20
    assert {verb for area in AREAS for verb, _ in _requests(area)} == set(REQUESTS)


@pytest.mark.parametrize("area", AREAS)
def test_every_recorded_request_reads_and_is_written_again_as_it_was(area: str) -> None:
    """No name is unknown, no value is lost, names are kept as they are spelt on the wire."""
    for verb, body in _requests(area):
        message = ParseDict(body, REQUESTS[verb]())

        assert _significant(_written(message)) == _significant(body)
        _read_all(verb, message)


def _released(body: dict[str, Any]) -> Release:
    """Build the release that a recorded one stands for."""
    return Release(
        partition=body["partitionName"],
        application_id=body["applicationID"],
        allocation_key=body["allocationKey"],
        termination=TerminationType[body["terminationType"]],
        message=body["message"],
    )


def _rejected(body: dict[str, Any]) -> AllocationRejection:
    """Build the rejection that a recorded one stands for."""
    return AllocationRejection(body["allocationKey"], body.get("applicationID", ""), body["reason"])


WRITERS: Final[dict[tuple[str, str], Callable[[dict[str, Any]], Message]]] = {
    ("allocationResponse", "new"): lambda body: write_allocation_placed(_placed(body)),
    ("allocationResponse", "released"): lambda body: write_allocations_released(
        AllocationsReleased((_released(body),))
    ),
    ("allocationResponse", "rejectedAllocations"): lambda body: write_allocations_rejected(
        AllocationsRejected((_rejected(body),))
    ),
    ("applicationResponse", "accepted"): lambda body: write_applications_answered(
        ApplicationsAnswered((body["applicationID"],), ())
    ),
    ("applicationResponse", "rejected"): lambda body: write_applications_answered(
        ApplicationsAnswered((), (Rejection(body["applicationID"], body["reason"]),))
    ),
    ("nodeResponse", "accepted"): lambda body: write_nodes_answered(NodesAnswered((body["nodeID"],), ())),
}
"""What writes the elements of each list of an answer."""


@pytest.mark.parametrize("area", AREAS)
@pytest.mark.parametrize(("kind", "part"), WRITERS)
def test_every_recorded_answer_is_written_as_it_was(area: str, kind: str, part: str) -> None:
    """The same fields are there, empty ones too, and no others; partitions have their full names."""
    for body in _answers(area, kind, part):
        assert _written(WRITERS[kind, part](body)) == {part: [body]}


@pytest.mark.parametrize("area", AREAS)
def test_every_recorded_change_of_state_is_written_as_it_was(area: str) -> None:
    """Only the time is another: recordings leave it open."""
    for body in _answers(area, "applicationResponse", "updated"):
        changed = ApplicationChanged(body["applicationID"], body["state"], SOME_TIME_NS, body["message"])
        (actual,) = _written(write_application_changed(changed))["updated"]

        assert actual == body | {"stateTransitionTimestamp": str(SOME_TIME_NS)}
        assert body["stateTransitionTimestamp"] == TIME


@pytest.mark.parametrize("area", AREAS)
def test_every_recorded_scheduling_state_is_written_as_it_was(area: str) -> None:
    """Hints to an autoscaler name the application by the current generation's spelling."""
    for line in _lines(area, expected=True):
        for body in line.get("schedulingState", []):
            if body == UNSTABLE:
                continue
            changed = SchedulingStateChanged(body["applicationID"], body["allocationKey"], body["reason"])

            assert _written(write_scheduling_state_changed(changed)) == body
