"""Requests as a recording has them: read again, they say the same."""

from __future__ import annotations

import json
from typing import Any

import pytest
from google.protobuf.json_format import ParseDict
from support.transcripts.preemption_transcripts import preemption_transcript
from support.transcripts.simulated_transcripts import simulated_transcript

from licorne.model.resources.resource import EMPTY, Resource
from licorne.model.values.documents import Document
from licorne.model.values.messages import (
    AllocationSubmission,
    AskRelease,
    AskTerms,
    NodeAction,
    NodeUpdate,
    TerminationType,
    UuidRelease,
)
from licorne.proxy.core.recording.turn_documents import (
    allocation_request,
    application_request,
    is_secret,
    node_request,
    short_name,
    without_secrets,
)
from licorne.proxy.play.transcripts.transcript import read_transcript
from licorne.proxy.si import reading
from licorne.proxy.si import si_pb2 as si
from licorne.proxy.si.older_generation import Generation, ask_terms

RM = "rm"
READER = reading.RequestReader()
SECRET_OPTION = b"\x98\x42"
"""The key of the field option `si_secret`, whose number is 1059, on the wire."""


def nodes_in(document: Document) -> list[NodeUpdate]:
    """Return the updates of a request, as a scheduler reads them."""
    request = ParseDict(json.loads(json.dumps(document)), si.NodeRequest())
    return [update for updates in READER.node_updates(request, Generation()).values() for update in updates]


def applications_in(request: si.ApplicationRequest) -> tuple[Any, ...]:
    return READER.application_submissions(request), reading.application_removals(request)


def allocations_in(request: si.AllocationRequest) -> tuple[Any, ...]:
    generation = Generation()
    submissions = READER.allocation_submissions(request, generation)
    return submissions, reading.releases(request, generation), ask_terms(request)


@pytest.mark.parametrize("seed", range(20))
def test_what_random_traffic_says_is_read_again(seed: int) -> None:
    """Nodes, applications and allocations of both generations."""
    text = "\n".join([*simulated_transcript(seed), *preemption_transcript(seed)])
    for line in read_transcript(text, "transcript"):
        match line.verb:
            case "node":
                nodes = line.message(si.NodeRequest)
                updates = [
                    each for of_one in READER.node_updates(nodes, Generation()).values() for each in of_one
                ]
                assert updates == nodes_in(node_request(nodes.rmID, updates))
            case "application":
                applications = line.message(si.ApplicationRequest)
                said = applications_in(applications)
                document = application_request(applications.rmID, *said)
                assert said == applications_in(ParseDict(document, si.ApplicationRequest()))
            case "allocation":
                allocations = line.message(si.AllocationRequest)
                parts = allocations_in(allocations)
                document = allocation_request(allocations.rmID, *parts)
                assert parts == allocations_in(ParseDict(document, si.AllocationRequest()))


@pytest.mark.parametrize("resource", [None, EMPTY, Resource({"memory": 0, "vcore": -(2**63)})])
def test_a_resource_that_is_empty_or_missing_stays_so(resource: Resource | None) -> None:
    """The three mean different things."""
    update = NodeUpdate(
        node_id="n",
        action=NodeAction.UNKNOWN_ACTION_FROM_RM,
        attributes={"si/node-partition": "[rm]default"},
        resource=resource,
        unknown_action=77,
    )

    assert [update] == nodes_in(node_request(RM, [update]))


def an_ask(**changed: Any) -> AllocationSubmission:
    fields: dict[str, Any] = {
        "allocation_key": "key",
        "application_id": "app",
        "partition": "[rm]default",
        "resource": EMPTY,
        "priority": -3,
        "tags": {"a": "b"},
        "node_id": "",
        "task_group_name": "group",
        "placeholder": True,
        "originator": True,
        "allow_preempt_self": True,
        "allow_preempt_other": True,
    }
    return AllocationSubmission(**{**fields, **changed})


def test_every_field_of_an_allocation_is_written() -> None:
    """Also of one of the older generation, with its terms, and of releases."""
    asks = [an_ask(), an_ask(node_id="n", allow_preempt_self=False, partition="[rm]other")]
    terms = (
        AskTerms(
            partition="[rm]default",
            application_id="app",
            allocation_key="key",
            timeout_ms=9,
            allocations=5,
        ),
    )
    releases = (
        UuidRelease(
            partition="[other]x",
            application_id="",
            allocation_key="",
            termination=TerminationType.TIMEOUT,
            message="why",
            uuid="key#allocation-2",
        ),
        AskRelease(
            partition="[rm]default",
            application_id="app",
            allocation_key="key",
            termination=TerminationType.STOPPED_BY_RM,
        ),
    )
    document = allocation_request(RM, asks, releases, terms)

    assert (asks, releases, terms) == allocations_in(ParseDict(document, si.AllocationRequest()))


@pytest.mark.parametrize(
    ("partition", "short"),
    [("[rm]default", ""), ("[rm]gpu", "gpu"), ("[rm][x", "[rm][x"), ("[other]gpu", "[other]gpu")],
)
def test_a_partition_has_a_name_that_is_read_again(partition: str, short: str) -> None:
    """Short where that is possible."""
    assert short == short_name(partition, RM)


SECRETS = ("password", "db-password", "apiKey", "API_KEY", "x/token", "clientSecret", "AWS_SECRET_ACCESS")
NO_SECRETS = ("namespace", "si/hostname", "keyboard", "tokenize", "monkey", "allow")


@pytest.mark.parametrize("name", [*SECRETS, *NO_SECRETS])
def test_a_name_with_a_word_for_secrets_is_one(name: str) -> None:
    """However it is spelled; the word is a whole one."""
    assert (name in SECRETS) == is_secret(name)


def test_a_secret_is_not_written() -> None:
    """Its name is, and all other texts."""
    assert {"token": "", "a": "b"} == without_secrets({"token": "xyz", "a": "b"})
    assert "xyz" not in json.dumps(allocation_request(RM, [an_ask(tags={"x-token": "xyz"})], (), ()))


def test_no_field_of_the_interface_is_marked_as_a_secret_yet() -> None:
    """One that is must be left out of recordings: `si_secret` in `si.proto` says so."""
    marked = [
        field.full_name
        for message in si.DESCRIPTOR.message_types_by_name.values()
        for field in message.fields
        if SECRET_OPTION in field.GetOptions().SerializeToString()
    ]

    assert [] == marked
