"""The older generation is read and answered; what may be said in neither generation is refused by name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from licorne.model.errors import RequestError
from licorne.model.resources.resource import Resource
from licorne.model.values.allocation import Allocation, Ask
from licorne.model.values.messages import (
    AllocationPlaced,
    AllocationRejection,
    AllocationsRejected,
    AllocationsReleased,
    AllocationSubmission,
    Announcement,
    ApplicationChanged,
    AskRelease,
    AskTerms,
    Release,
    SchedulingStateChanged,
    TerminationType,
    UuidRelease,
)
from licorne.proxy.si import si_pb2 as si
from licorne.proxy.si.api import ResourceManager
from licorne.proxy.si.older_generation import Generation, ask_terms
from licorne.proxy.si.reading import RequestReader, releases
from licorne.proxy.si.writing import dispatch


def _older(*asks: si.AllocationAsk) -> si.AllocationRequest:
    return si.AllocationRequest(rmID="rm", asks=asks)


def test_an_ask_of_the_older_generation_is_read_whole() -> None:
    """It says what an ask of the current one says, but for the limit of its allocation."""
    ask = si.AllocationAsk(
        allocationKey="k",
        applicationID="app",
        partitionName="gpu",
        resourceAsk=si.Resource(resources={"vcore": si.Quantity(value=1000)}),
        maxAllocations=1,
        priority=-7,
        executionTimeoutMilliSeconds=5_000,
        tags={"z": "1", "a": "2"},
        taskGroupName="tg",
        placeholder=True,
        Originator=True,
        preemptionPolicy=si.PreemptionPolicy(allowPreemptSelf=True, allowPreemptOther=True),
    )

    expected = AllocationSubmission(
        allocation_key="k",
        application_id="app",
        partition="[rm]gpu",
        resource=Resource({"vcore": 1000}),
        priority=-7,
        tags={"a": "2", "z": "1"},
        node_id="",
        task_group_name="tg",
        placeholder=True,
        originator=True,
        allow_preempt_self=True,
        allow_preempt_other=True,
    )
    assert [expected] == RequestReader().allocation_submissions(_older(ask), Generation())
    assert (
        AskTerms(partition="[rm]gpu", application_id="app", allocation_key="k", timeout_ms=5_000),
    ) == ask_terms(_older(ask))


@pytest.mark.parametrize(("count", "wanted"), [(0, 1), (1, 1), (7, 7), (-1, -1)])
def test_an_older_ask_says_how_many_allocations_it_is_for(count: int, wanted: int) -> None:
    """One that does not say how many is for one: on the wire that is zero."""
    request = _older(si.AllocationAsk(allocationKey="k", maxAllocations=count))

    (submission,) = RequestReader().allocation_submissions(request, Generation())
    (terms,) = ask_terms(request)

    assert ("k", "[rm]default", 0) == (submission.allocation_key, submission.partition, len(submission.tags))
    assert wanted == terms.allocations


def test_every_older_ask_says_how_long_its_allocation_may_run() -> None:
    """Also where that is for ever: a limit that was there is taken away by it."""
    request = _older(
        si.AllocationAsk(allocationKey="k"),
        si.AllocationAsk(allocationKey="l", executionTimeoutMilliSeconds=-1),
    )

    assert [0, -1] == [terms.timeout_ms for terms in ask_terms(request)]


def test_an_older_placeholder_without_a_task_group_is_a_plain_ask() -> None:
    """As that generation says; in the current one it is rejected."""
    request = _older(si.AllocationAsk(allocationKey="k", placeholder=True))

    (submission,) = RequestReader().allocation_submissions(request, Generation())

    assert not submission.placeholder


def test_asks_of_both_generations_come_in_one_request() -> None:
    """The older ones first."""
    request = _older(si.AllocationAsk(allocationKey="old"))
    request.allocations.add(allocationKey="new")

    keys = [entry.allocation_key for entry in RequestReader().allocation_submissions(request, Generation())]

    assert ["old", "new"] == keys


def test_a_uuid_is_read_beside_the_key() -> None:
    """It shows the generation of its resource manager, in which the other releases are meant, too."""
    request, generation = si.AllocationRequest(rmID="rm"), Generation()
    request.releases.allocationsToRelease.add(allocationKey="k", applicationID="app")
    request.releases.allocationsToRelease.add(allocationKey="k", UUID="u", terminationType=si.TIMEOUT)

    first, second = releases(request, generation)

    expected = UuidRelease(
        partition="[rm]default",
        application_id="",
        allocation_key="k",
        termination=TerminationType.TIMEOUT,
        uuid="u",
    )
    assert (UuidRelease, expected, True) == (type(first), second, generation.is_older)


@pytest.mark.parametrize(("is_older", "kind"), [(False, Release), (True, UuidRelease)])
def test_a_release_without_a_uuid_is_meant_in_the_generation_of_its_sender(
    is_older: bool,  # noqa: FBT001 - a table
    kind: type[Release],
) -> None:
    """An empty key means all asks as well in the current one, and allocations alone in the older one."""
    request, generation = si.AllocationRequest(rmID="rm"), Generation()
    generation.is_older = is_older
    request.releases.allocationsToRelease.add(applicationID="app")

    (read,) = releases(request, generation)

    assert (kind, "", is_older) == (type(read), read.allocation_key, generation.is_older)


@pytest.mark.parametrize(
    ("key", "uuid", "expected"),
    [
        ("k", "", "k"),
        ("k", "k", "k"),
        ("k", "k#allocation-2", "k#allocation-2"),
        ("k", "u", "k#allocation:u"),
        ("", "u", "u"),
    ],
)
def test_an_existing_allocation_keeps_its_uuid(key: str, uuid: str, expected: str) -> None:
    """By it the allocation is released later."""
    message = si.Allocation(allocationKey=key, UUID=uuid, nodeID="n")
    generation = Generation()

    (read,) = RequestReader().allocation_submissions(si.AllocationRequest(allocations=[message]), generation)

    assert (expected, bool(uuid)) == (read.allocation_key, generation.is_older)


def test_a_foreign_allocation_is_known_by_its_key() -> None:
    """Nobody is answered about it."""
    message = si.Allocation(allocationKey="k", UUID="u", nodeID="n", allocationTags={"foreign": "static"})

    (read,) = RequestReader().allocation_submissions(
        si.AllocationRequest(allocations=[message]), Generation()
    )

    assert "k" == read.allocation_key


NAMELESS = si.AllocationAskRelease(partitionName="gpu")
PART = "k#allocation-2"


def _read(request: si.AllocationRequest, generation: Generation) -> None:
    RequestReader().allocation_submissions(request, generation)
    releases(request, generation)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        pytest.param(
            {"allocations": [si.Allocation(allocationKey="k", UUID="u")]},
            "'rm' sends the ask 'k' with the UUID 'u': only an allocation",
            id="an ask has no UUID",
        ),
        *(
            pytest.param(
                body,
                "uses the allocation key 'k#allocation-2': in the older",
                id=f"{name} has a key like those that the scheduler gives: two would have one name",
            )
            for name, body in (
                ("an ask", {"asks": [si.AllocationAsk(allocationKey=PART)]}),
                ("an allocation", {"allocations": [si.Allocation(allocationKey=PART, UUID="u", nodeID="n")]}),
            )
        ),
        pytest.param(
            {"releases": si.AllocationReleasesRequest(allocationAsksToRelease=[NAMELESS])},
            "with neither allocationKey nor applicationID",
            id="a release of asks that names nothing would end everything",
        ),
    ],
)
def test_a_request_that_means_nothing_is_refused(body: dict[str, Any], text: str) -> None:
    """The resource manager and what it says are named."""
    request, generation = si.AllocationRequest(rmID="rm", **body), Generation()

    with pytest.raises(RequestError, match=text):
        _read(request, generation)


def test_releases_of_asks_are_read_after_those_of_allocations() -> None:
    """In the full name of their partition; their resource manager is one of the older generation."""
    request, generation = si.AllocationRequest(rmID="rm"), Generation()
    request.releases.allocationAsksToRelease.add(applicationID="app", allocationKey="k", partitionName="gpu")
    request.releases.allocationsToRelease.add(applicationID="app", allocationKey="l")

    first, second = releases(request, generation)

    expected = AskRelease(
        partition="[rm]gpu",
        application_id="app",
        allocation_key="k",
        termination=TerminationType.STOPPED_BY_RM,
    )
    assert ("l", expected, True) == (first.allocation_key, second, generation.is_older)


def test_existing_allocations_are_read_with_their_node() -> None:
    """Where they name no node or partition they mean its own; they are of the older generation."""
    node = si.NodeInfo(nodeID="n", action="CREATE", attributes={"si/node-partition": "gpu"})
    node.existingAllocations.add(allocationKey="k", applicationID="app", UUID="u", placeholder=True)
    node.existingAllocations.add(allocationKey="l", nodeID="m", partitionName="other", taskGroupName="tg")
    generation = Generation()

    ((update,),) = RequestReader().node_updates(si.NodeRequest(rmID="rm", nodes=[node]), generation).values()

    first, second = update.existing
    assert ("k#allocation:u", "[rm]gpu", "n") == (first.allocation_key, first.partition, first.node_id)
    assert ("l", "[rm]other", "m") == (second.allocation_key, second.partition, second.node_id)
    assert (True, False) == (generation.is_older, first.placeholder)


def test_a_placeholder_that_exists_has_its_task_group() -> None:
    """Without one it would be a plain allocation."""
    node = si.NodeInfo(nodeID="n")
    node.existingAllocations.add(allocationKey="k", placeholder=True, taskGroupName="tg")

    ((update,),) = RequestReader().node_updates(si.NodeRequest(nodes=[node]), Generation()).values()

    assert (True, "tg") == (update.existing[0].placeholder, update.existing[0].task_group_name)


# -------------------------------------------------------------------------------------------- callbacks


RELEASE = Release(
    partition="[rm]default", application_id="app", allocation_key="k", termination=TerminationType.TIMEOUT
)


class Ear(ResourceManager):
    """Keeps its callbacks."""

    def __init__(self) -> None:
        self.heard: list[si.AllocationResponse | si.ApplicationResponse] = []
        self.hints: list[str] = []

    def update_allocation(self, response: si.AllocationResponse) -> None:
        self.heard.append(response)

    def update_application(self, response: si.ApplicationResponse) -> None:
        self.heard.append(response)

    def update_container_scheduling_state(self, request: si.UpdateContainerSchedulingStateRequest) -> None:
        self.hints.append(request.allocationKey)


def answers_of(announcement: Announcement, *, older: bool = True) -> list[si.AllocationResponse]:
    """Return what a resource manager hears."""
    ear = Ear()
    dispatch(announcement, ear, older=older)
    return [entry for entry in ear.heard if isinstance(entry, si.AllocationResponse)]


def placed(key: str) -> AllocationPlaced:
    ask = Ask(allocation_key=key, application_id="app", resource=Resource({"vcore": 1}), created_at_ns=0)
    return AllocationPlaced(Allocation(ask, "n1", 0))


@pytest.mark.parametrize(
    ("key", "uuid"), [("k", "k"), ("k#allocation-2", "k#allocation-2"), ("k#allocation:u", "u")]
)
def test_an_allocation_has_the_key_of_its_ask_and_a_uuid(key: str, uuid: str) -> None:
    """When it is placed, and when it ends; by the UUID it is released. The current generation hears none."""
    ended = AllocationsReleased((replace(RELEASE, allocation_key=key),))
    (new,) = answers_of(placed(key))[0].new
    (released,) = answers_of(ended)[0].released
    (current,) = answers_of(placed(key), older=False)[0].new

    assert ("k", uuid) == (new.allocationKey, new.UUID) == (released.allocationKey, released.UUID)
    assert (key, "") == (current.allocationKey, current.UUID)


@pytest.mark.parametrize("key", ["k", "k#allocation:u"])
def test_a_rejection_is_sent_in_both_generations(key: str) -> None:
    """With the same words, and the key of the ask."""
    (response,) = answers_of(AllocationsRejected((AllocationRejection(key, "app", "because"),)))

    (older,), (current,) = response.rejected, response.rejectedAllocations
    words = ("k", "app", "because")
    assert words == (older.allocationKey, older.applicationID, older.reason)
    assert words == (current.allocationKey, current.applicationID, current.reason)


@pytest.mark.parametrize(
    "announcement",
    [
        AllocationsReleased(()),
        AllocationsRejected(()),
        ApplicationChanged("app", "Running", 1, "runApplication"),
    ],
)
def test_what_both_generations_read_alike_is_sent_alike(announcement: Announcement) -> None:
    """What answers nothing is not sent, and applications have one form."""
    older, current = Ear(), Ear()
    dispatch(announcement, older, older=True)
    dispatch(announcement, current)

    assert current.heard == older.heard


def given_up(key: str) -> AskRelease:
    return AskRelease(
        partition="[rm]default",
        application_id="app",
        allocation_key=key,
        termination=TerminationType.TIMEOUT,
        message="why",
    )


def test_an_ask_that_was_given_up_is_no_allocation() -> None:
    """The older generation has a list for it; the current one has it among the allocations that end."""
    announcement = AllocationsReleased((given_up("ask"), RELEASE))
    (older,), (current,) = answers_of(announcement), answers_of(announcement, older=False)

    expected = si.AllocationAskRelease(
        partitionName="[rm]default",
        applicationID="app",
        allocationKey="ask",
        terminationType=si.TIMEOUT,
        message="why",
    )
    assert [expected] == list(older.releasedAsks)
    assert ["k"] == [entry.allocationKey for entry in older.released]
    assert ["ask", "k"] == [entry.allocationKey for entry in current.released]
    assert [] == list(current.releasedAsks)


def test_an_ask_that_was_given_up_is_named_once() -> None:
    """However many of its allocations were still wanted."""
    keys = ("k", "k#allocation-2", "k#allocation:u", "other")

    (answer,) = answers_of(AllocationsReleased(tuple(map(given_up, keys))))

    assert ["k", "other"] == [entry.allocationKey for entry in answer.releasedAsks]


@pytest.mark.parametrize(("older", "key"), [(True, "k"), (False, "k#allocation-2")])
def test_a_hint_for_an_autoscaler_names_the_ask(older: bool, key: str) -> None:  # noqa: FBT001 - a table
    """A key of the current generation is the resource manager's own, whatever is in it."""
    ear = Ear()

    dispatch(SchedulingStateChanged("app", "k#allocation-2", "no room"), ear, older=older)

    assert [key] == ear.hints
