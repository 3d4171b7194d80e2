"""Asks of the older generation that are for several allocations, and releases by UUID."""

from __future__ import annotations

from typing import Final

import pytest
from support.model.builders import PARTITION, TEN, a_resource
from support.model.harness import Harness, a_running_partition

from licorne.model.requests.older_asks import ALLOCATIONS_MAX
from licorne.model.resources.resource import EMPTY, Resource
from licorne.model.state.partition_state import BrokenKind
from licorne.model.values.messages import (
    AllocationRejection,
    AllocationsReleased,
    AskRelease,
    NodeAction,
    Release,
    TerminationType,
    UuidRelease,
)

TWO = a_resource(memory=2)
FOUR = a_resource(memory=4)
KEYS = ["k", "k#allocation-2", "k#allocation-3", "k#allocation-4"]
STOPPED = TerminationType.STOPPED_BY_RM


@pytest.fixture
def h() -> Harness:
    """Return a partition with a node of ten, an application, and nothing to say."""
    return a_running_partition(nodes=("n0",))


def uuid_release(
    key: str = "", uuid: str = "", application_id: str = "app", termination: TerminationType = STOPPED
) -> UuidRelease:
    return UuidRelease(
        partition=PARTITION,
        application_id=application_id,
        allocation_key=key,
        termination=termination,
        uuid=uuid,
    )


def say(h: Harness, *releases: Release) -> None:
    """Have the RM release in one message."""
    h.partition.update_allocations([], releases)
    h.validate()


def waiting(h: Harness) -> list[str]:
    return [record.ask.allocation_key for record in h.application().asks.waiting()]


def running(h: Harness) -> list[str]:
    return [placed.allocation.allocation_key for placed in h.application().allocations.all()]


# ---------------------------------------------------------------------------------- how many there are


def test_an_ask_gives_as_many_allocations_as_it_is_for(h: Harness) -> None:
    """Each counts by itself, and each has a key of its own in the model."""
    h.ask("k", resource=TWO, allocations=3)
    pending = h.queue().pending
    h.run_until_idle()

    assert (a_resource(memory=6), KEYS[:3]) == (pending, [*h.placements])
    assert (a_resource(memory=6), a_resource(memory=6)) == (h.node("n0").allocated, h.user_usage())


# The size of one allocation, for how many the ask is at first and again, which of them end between, which run
# at the end, and which wait.
AGAIN: Final = {
    "what does not fit waits": (FOUR, (4, 4), [], KEYS[:2], KEYS[2:]),
    "the same ask changes nothing": (FOUR, (3, 3), [], KEYS[:2], KEYS[2:3]),
    "an ask for more than one adds what is missing": (TWO, (1, 3), [], KEYS[:1], KEYS[1:3]),
    "an ask for one withdraws what waits": (FOUR, (4, 1), [], KEYS[:2], []),
    "an ask for as many as run withdraws what waits": (FOUR, (4, 2), [], KEYS[:2], []),
    "an ask for fewer withdraws the last that waits": (FOUR, (4, 3), [], KEYS[:2], KEYS[2:3]),
    "one that has ended counts no longer": (TWO, (3, 3), KEYS[2:3], KEYS[:2], KEYS[3:]),
}


@pytest.mark.parametrize(("size", "counts", "ended", "run", "wait"), AGAIN.values(), ids=AGAIN)
def test_an_ask_that_comes_again_is_for_as_many_allocations_as_it_says(
    h: Harness, *, size: Resource, counts: tuple[int, int], ended: list[str], run: list[str], wait: list[str]
) -> None:
    """Nothing that runs is ended, no UUID is used again, and nothing is announced."""
    h.ask_and_run("k", resource=size, allocations=counts[0])
    say(h, *(uuid_release("k", key) for key in ended))
    h.forget()

    h.ask("k", resource=size, allocations=counts[1])

    assert (run, wait, []) == (running(h), waiting(h), h.announcements)


def test_an_ask_whose_allocations_have_all_ended_begins_anew(h: Harness) -> None:
    """Its key is free, as that of any ask."""
    h.ask_and_run("k", resource=TWO, allocations=2)
    say(h, uuid_release("k", "k"), uuid_release("k", "k#allocation-2"))

    h.ask("k", resource=TWO, allocations=2)

    assert KEYS[:2] == waiting(h)


def test_a_new_size_is_that_of_every_allocation(h: Harness) -> None:
    """Of those that run, and of those that wait."""
    h.ask_and_run("k", resource=FOUR, allocations=3)

    h.ask("k", resource=TWO, allocations=3)

    assert (FOUR, TWO) == (h.node("n0").allocated, h.queue().pending)


def test_every_allocation_of_an_ask_has_its_time_limit(h: Harness) -> None:
    """It counts from its own placement."""
    h.ask_and_run("k", resource=a_resource(memory=6), allocations=2, limit_seconds=60)
    h.advance(30)
    h.nodes("later")
    h.run_until_idle()

    h.advance(30)
    first = list(h.releases)
    h.advance(30)

    assert [("k", TerminationType.TIMEOUT)] == first
    assert [("k", TerminationType.TIMEOUT), ("k#allocation-2", TerminationType.TIMEOUT)] == h.releases


def test_placeholders_of_one_ask_make_a_gang() -> None:
    """It is complete with the last one."""
    h = a_running_partition(nodes=("one",), placeholder_ask=a_resource(memory=6))

    h.ask_and_run("k", resource=TWO, allocations=3, placeholder=True, task_group_name="tasks")

    assert ["Accepted", "Running"] == h.states()


@pytest.mark.parametrize("wanted", [-1, 0, ALLOCATIONS_MAX + 1, 2**31 - 1])
def test_an_ask_for_too_many_or_too_few_is_rejected(h: Harness, wanted: int) -> None:
    """With the number and the bound; others of the message are taken, and what is there stays."""
    h.ask("k", resource=TWO, allocations=2)

    rejections = h.ask("k", "k", resource=TWO, allocations=wanted)

    why = f"ask k has maxAllocations {wanted}: it may be from 1 to 10000, and 0 means 1"
    assert (AllocationRejection("k", "app", why),) * 2 == rejections
    assert KEYS[:2] == waiting(h)


def test_an_ask_may_be_for_as_many_as_the_bound_says(h: Harness) -> None:
    """One more is too many."""
    h.ask("k", resource=TWO, allocations=ALLOCATIONS_MAX)

    assert ALLOCATIONS_MAX == len(waiting(h))


def test_an_ask_that_is_rejected_is_rejected_once(h: Harness) -> None:
    """However many allocations it is for; no part of it stays."""
    rejections = h.ask("k", resource=EMPTY, allocations=3)

    assert (AllocationRejection("k", "app", "allocation contains no resources"),) == rejections
    assert [] == waiting(h)


def test_a_key_of_another_application_is_rejected(h: Harness) -> None:
    """Also if it is for several allocations in both."""
    h.submit("other")
    h.ask("k", resource=TWO, allocations=2)

    rejections = h.ask("k", application_id="other", resource=TWO, allocations=2)

    why = "allocation key k is in use by application app"
    assert (AllocationRejection("k", "other", why),) == rejections


def test_asks_for_one_and_for_several_come_in_one_message(h: Harness) -> None:
    """They are taken in order: the last one with a key counts."""
    for wanted in (1, 3):
        h.ask("k", "l", resource=TWO, allocations=wanted)
    h.ask("k", resource=TWO, allocations=2)

    assert [*KEYS[:2], "l", "l#allocation-2", "l#allocation-3"] == sorted(waiting(h))


# ------------------------------------------------------------------------------------------- releases


def test_a_uuid_ends_one_allocation(h: Harness) -> None:
    """The others of its ask run on, and those that wait go on waiting."""
    h.ask_and_run("k", resource=FOUR, allocations=3)

    say(h, uuid_release("k", "k#allocation-2"))

    assert ([("k#allocation-2", STOPPED)], ["k"]) == (h.releases, running(h))
    assert KEYS[2:3] == waiting(h)


@pytest.mark.parametrize("uuid", ["k", "k#allocation-2"])
def test_a_uuid_alone_is_enough(h: Harness, uuid: str) -> None:
    """It is the name of the allocation."""
    h.ask_and_run("k", resource=TWO, allocations=2)

    say(h, uuid_release("", uuid))

    assert [(uuid, STOPPED)] == h.releases


def test_a_uuid_that_is_not_known_has_ended_already(h: Harness) -> None:
    """Nothing happens, whatever its key."""
    h.ask_and_run("k", resource=TWO, allocations=1)

    say(h, uuid_release("k", "u"), uuid_release("", "u"), uuid_release("l"), uuid_release("k", "k", "no"))

    assert (["k"], []) == (running(h), h.releases)


def test_a_key_without_a_uuid_ends_all_of_its_ask(h: Harness) -> None:
    """What runs is confirmed, and what waits is withdrawn; other asks stay."""
    h.ask("other", resource=TWO)
    h.ask_and_run("k", resource=FOUR, allocations=3)

    say(h, uuid_release("k"))

    assert ([("k", STOPPED), ("k#allocation-2", STOPPED)], []) == (h.releases, waiting(h))
    assert ["other"] == running(h)


def test_no_name_at_all_ends_the_allocations_of_the_application(h: Harness) -> None:
    """In the older generation asks have releases of their own: those that wait stay."""
    h.ask("k", resource=FOUR, allocations=3)
    h.ask_and_run("l", resource=TWO)

    say(h, uuid_release())

    assert ["k", "k#allocation-2", "l"] == sorted(key for key, _ in h.releases)
    assert (["k#allocation-3"], []) == (waiting(h), running(h))


def test_a_release_without_an_application_is_of_a_foreign_allocation(h: Harness) -> None:
    """By its key, or by its UUID where it has no other name."""
    for key in ("f", "g"):
        h.ask(key, application_id="", node_id="n0", resource=TWO, tags={"foreign": "default"})

    say(h, uuid_release("f", "u", application_id=""), uuid_release("", "g", application_id=""))

    assert EMPTY == h.node("n0").occupied


def test_a_swap_is_confirmed_by_uuid() -> None:
    """The member takes the place of its placeholder."""
    h = a_running_partition(nodes=("one",), placeholder_ask=FOUR)
    h.ask_and_run("p", resource=TWO, allocations=2, placeholder=True, task_group_name="tasks")
    h.ask_and_run("m", resource=TWO, allocations=2, task_group_name="tasks")

    for key in ("p", "p#allocation-2"):
        say(h, uuid_release("p", key, termination=TerminationType.PLACEHOLDER_REPLACED))

    assert ["m", "m#allocation-2"] == running(h)


def test_a_release_of_an_ask_withdraws_all_that_waits_of_it(h: Harness) -> None:
    """With its application or without; what runs stays."""
    h.ask_and_run("k", resource=FOUR, allocations=4)
    h.release("k")

    for application_id in ("app", ""):
        h.ask("k", resource=FOUR, allocations=4)
        ask = AskRelease(
            partition=PARTITION, application_id=application_id, allocation_key="k", termination=STOPPED
        )
        say(h, ask)

        assert ["k#allocation-2"] == running(h)
        assert [] == waiting(h)


def test_all_of_a_quarantined_application_ends_by_any_name(h: Harness) -> None:
    """A broken application is never in the way of its RM."""
    h.ask_and_run("k", resource=TWO, allocations=4)
    h.partition.quarantine(BrokenKind.APPLICATION, "app", "broke")

    say(h, uuid_release("k", "k#allocation-2"))
    first = list(h.releases)
    say(h, uuid_release())

    assert [("k#allocation-2", STOPPED)] == first
    assert {"k", "k#allocation-2", "k#allocation-3", "k#allocation-4"} == {key for key, _ in h.releases}


# ------------------------------------------------------------------------------- named by an earlier one


def test_existing_allocations_of_one_ask_are_told_apart_by_their_uuids(h: Harness) -> None:
    """Each is recovered, counted and released by itself."""
    h.ask("k#allocation:u", "k#allocation:v", "k", node_id="n0", resource=TWO)
    say(h, uuid_release("k", "u"), uuid_release("", "v"))

    assert [("k#allocation:u", STOPPED), ("k#allocation:v", STOPPED)] == h.releases
    assert ["k"] == running(h)


def test_existing_allocations_count_for_their_ask(h: Harness) -> None:
    """An RM that asks again after a restart gets what is missing."""
    h.ask("k#allocation:u", "k#allocation-2", node_id="n0", resource=TWO)

    h.ask("k", resource=TWO, allocations=3)

    assert ["k#allocation-3"] == waiting(h)


def test_an_allocation_that_the_rm_has_placed_itself_takes_the_place_of_one_that_waits(h: Harness) -> None:
    """The ask is for as many allocations as before."""
    h.update_node("n0", NodeAction.DRAIN_NODE)
    h.ask("k", resource=TWO, allocations=2)

    h.ask("k#allocation:u", node_id="n0", resource=TWO)

    assert (["k#allocation:u"], ["k"]) == (running(h), waiting(h))


def test_the_parts_of_an_application_that_has_ended_are_forgotten(h: Harness) -> None:
    """The next one of that name begins anew."""
    h.ask("k#allocation:u", node_id="n0", resource=TWO)
    h.ask("k", resource=TWO, allocations=3)
    h.withdraw()
    h.submit()

    h.ask("k", resource=TEN, allocations=1)
    say(h, uuid_release("", "u"))

    assert (["k"], 1) == (waiting(h), len([*h.heard(AllocationsReleased)]))
