"""Asks of the older generation that are for several allocations, and releases by UUID."""

from __future__ import annotations

import pytest
from support.model.harness import PARTITION, TEN, Harness, a_resource

from licorne.model.requests.older_asks import ALLOCATIONS_MAX
from licorne.model.resources.resource import EMPTY
from licorne.model.state.quarantine import BrokenKind
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
KEYS = ["k", "k#allocation-2", "k#allocation-3", "k#allocation-4"]
STOPPED = TerminationType.STOPPED_BY_RM


def a_partition(*, nodes: int = 1) -> Harness:
    """Return a partition with nodes of ten, an application, and nothing to say."""
    h = Harness()
    h.nodes(*[f"n{number}" for number in range(nodes)])
    h.submit()
    h.forget()
    return h


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


def test_an_ask_gives_as_many_allocations_as_it_is_for() -> None:
    """Each counts by itself, and each has a key of its own in the model."""
    h = a_partition()

    h.ask("k", resource=TWO, allocations=3)
    pending = h.queue().pending
    h.run_until_idle()

    assert (a_resource(memory=6), KEYS[:3]) == (pending, [*h.placements])
    assert (a_resource(memory=6), a_resource(memory=6)) == (h.node("n0").allocated, h.user_usage())


def test_what_does_not_fit_waits() -> None:
    """The allocations of an ask are placed one by one."""
    h = a_partition()

    h.ask("k", resource=a_resource(memory=4), allocations=4)
    h.run_until_idle()

    assert (KEYS[:2], KEYS[2:]) == ([*h.placements], waiting(h))


def test_the_same_ask_again_changes_nothing() -> None:
    """It is for as many allocations as there are."""
    h = a_partition()
    h.ask("k", resource=a_resource(memory=4), allocations=3)
    h.run_until_idle()

    h.ask("k", resource=a_resource(memory=4), allocations=3)

    assert (KEYS[:2], KEYS[2:3]) == (running(h), waiting(h))


def test_an_ask_for_more_adds_what_is_missing() -> None:
    """Also if it was for one."""
    h = a_partition()
    h.ask("k", resource=TWO, allocations=1)
    h.run_until_idle()

    h.ask("k", resource=TWO, allocations=3)

    assert (["k"], KEYS[1:3]) == (running(h), waiting(h))


@pytest.mark.parametrize("wanted", [1, 2, 3])
def test_an_ask_for_fewer_withdraws_what_waits(wanted: int) -> None:
    """What runs is not ended."""
    h = a_partition()
    h.ask("k", resource=a_resource(memory=4), allocations=4)
    h.run_until_idle()
    h.forget()

    h.ask("k", resource=a_resource(memory=4), allocations=wanted)

    assert (KEYS[:2], KEYS[2:wanted], []) == (running(h), waiting(h), h.announcements)


def test_an_allocation_that_has_ended_counts_no_longer() -> None:
    """The same ask wants another one, with another UUID."""
    h = a_partition()
    h.ask("k", resource=TWO, allocations=3)
    h.run_until_idle()
    say(h, uuid_release("k", "k#allocation-3"))

    h.ask("k", resource=TWO, allocations=3)

    assert (KEYS[:2], ["k#allocation-4"]) == (running(h), waiting(h))


def test_an_ask_whose_allocations_have_all_ended_begins_anew() -> None:
    """Its key is free, as that of any ask."""
    h = a_partition()
    h.ask("k", resource=TWO, allocations=2)
    h.run_until_idle()
    say(h, uuid_release("k", "k"), uuid_release("k", "k#allocation-2"))

    h.ask("k", resource=TWO, allocations=2)

    assert KEYS[:2] == waiting(h)


def test_a_new_size_is_that_of_every_allocation() -> None:
    """Of those that run, and of those that wait."""
    h = a_partition()
    h.ask("k", resource=a_resource(memory=4), allocations=3)
    h.run_until_idle()

    h.ask("k", resource=TWO, allocations=3)

    assert (a_resource(memory=4), TWO) == (h.node("n0").allocated, h.queue().pending)


def test_every_allocation_of_an_ask_has_its_time_limit() -> None:
    """It counts from its own placement."""
    h = a_partition()
    h.ask("k", resource=a_resource(memory=6), allocations=2, limit_seconds=60)
    h.run_until_idle()
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
    h = Harness()
    h.nodes("one")
    h.submit(placeholder_ask=a_resource(memory=6))

    h.ask("k", resource=TWO, allocations=3, placeholder=True, task_group_name="tasks")
    h.run_until_idle()

    assert ["Accepted", "Running"] == h.states()


@pytest.mark.parametrize("wanted", [-1, 0, ALLOCATIONS_MAX + 1, 2**31 - 1])
def test_an_ask_for_too_many_or_too_few_is_rejected(wanted: int) -> None:
    """With the number and the bound; others of the message are taken, and what is there stays."""
    h = a_partition()
    h.ask("k", resource=TWO, allocations=2)

    rejections = h.ask("k", "k", resource=TWO, allocations=wanted)

    why = f"ask k has maxAllocations {wanted}: it may be from 1 to 10000, and 0 means 1"
    assert (AllocationRejection("k", "app", why),) * 2 == rejections
    assert KEYS[:2] == waiting(h)


def test_an_ask_may_be_for_as_many_as_the_bound_says() -> None:
    """One more is too many."""
    h = a_partition()

    h.ask("k", resource=TWO, allocations=ALLOCATIONS_MAX)

    assert ALLOCATIONS_MAX == len(waiting(h))


def test_an_ask_that_is_rejected_is_rejected_once() -> None:
    """However many allocations it is for; no part of it stays."""
    h = a_partition()

    rejections = h.ask("k", resource=EMPTY, allocations=3)

    assert (AllocationRejection("k", "app", "allocation contains no resources"),) == rejections
    assert [] == waiting(h)


def test_a_key_of_another_application_is_rejected() -> None:
    """Also if it is for several allocations in both."""
    h = a_partition()
    h.submit("other")
    h.ask("k", resource=TWO, allocations=2)

    rejections = h.ask("k", application_id="other", resource=TWO, allocations=2)

    why = "allocation key k is in use by application app"
    assert (AllocationRejection("k", "other", why),) == rejections


def test_asks_for_one_and_for_several_come_in_one_message() -> None:
    """They are taken in order: the last one with a key counts."""
    h = a_partition()

    for wanted in (1, 3):
        h.ask("k", "l", resource=TWO, allocations=wanted)
    h.ask("k", resource=TWO, allocations=2)

    assert [*KEYS[:2], "l", "l#allocation-2", "l#allocation-3"] == sorted(waiting(h))


# ------------------------------------------------------------------------------------------- releases


def test_a_uuid_ends_one_allocation() -> None:
    """The others of its ask run on, and those that wait go on waiting."""
    h = a_partition()
    h.ask("k", resource=a_resource(memory=4), allocations=3)
    h.run_until_idle()

    say(h, uuid_release("k", "k#allocation-2"))

    assert ([("k#allocation-2", STOPPED)], ["k"]) == (h.releases, running(h))
    assert KEYS[2:3] == waiting(h)


@pytest.mark.parametrize("uuid", ["k", "k#allocation-2"])
def test_a_uuid_alone_is_enough(uuid: str) -> None:
    """It is the name of the allocation."""
    h = a_partition()
    h.ask("k", resource=TWO, allocations=2)
    h.run_until_idle()

    say(h, uuid_release("", uuid))

    assert [(uuid, STOPPED)] == h.releases


def test_a_uuid_that_is_not_known_has_ended_already() -> None:
    """Nothing happens, whatever its key."""
    h = a_partition()
    h.ask("k", resource=TWO, allocations=1)
    h.run_until_idle()

    say(h, uuid_release("k", "u"), uuid_release("", "u"), uuid_release("l"), uuid_release("k", "k", "no"))

    assert (["k"], []) == (running(h), h.releases)


def test_a_key_without_a_uuid_ends_all_of_its_ask() -> None:
    """What runs is confirmed, and what waits is withdrawn; other asks stay."""
    h = a_partition()
    h.ask("other", resource=TWO)
    h.ask("k", resource=a_resource(memory=4), allocations=3)
    h.run_until_idle()

    say(h, uuid_release("k"))

    assert ([("k", STOPPED), ("k#allocation-2", STOPPED)], []) == (h.releases, waiting(h))
    assert ["other"] == running(h)


def test_no_name_at_all_ends_the_allocations_of_the_application() -> None:
    """In the older generation asks have releases of their own: those that wait stay."""
    h = a_partition()
    h.ask("k", resource=a_resource(memory=4), allocations=3)
    h.ask("l", resource=TWO)
    h.run_until_idle()

    say(h, uuid_release())

    assert ["k", "k#allocation-2", "l"] == sorted(key for key, _ in h.releases)
    assert (["k#allocation-3"], []) == (waiting(h), running(h))


def test_a_release_without_an_application_is_of_a_foreign_allocation() -> None:
    """By its key, or by its UUID where it has no other name."""
    h = a_partition()
    for key in ("f", "g"):
        h.ask(key, application_id="", node_id="n0", resource=TWO, tags={"foreign": "default"})

    say(h, uuid_release("f", "u", application_id=""), uuid_release("", "g", application_id=""))

    assert EMPTY == h.node("n0").occupied


def test_a_swap_is_confirmed_by_uuid() -> None:
    """The member takes the place of its placeholder."""
    h = Harness()
    h.nodes("one")
    h.submit(placeholder_ask=a_resource(memory=4))
    h.ask("p", resource=TWO, allocations=2, placeholder=True, task_group_name="tasks")
    h.run_until_idle()
    h.ask("m", resource=TWO, allocations=2, task_group_name="tasks")
    h.run_until_idle()

    for key in ("p", "p#allocation-2"):
        say(h, uuid_release("p", key, termination=TerminationType.PLACEHOLDER_REPLACED))

    assert ["m", "m#allocation-2"] == running(h)


def test_a_release_of_an_ask_withdraws_all_that_waits_of_it() -> None:
    """With its application or without; what runs stays."""
    h = a_partition()
    h.ask("k", resource=a_resource(memory=4), allocations=4)
    h.run_until_idle()
    h.release("k")

    for application_id in ("app", ""):
        h.ask("k", resource=a_resource(memory=4), allocations=4)
        ask = AskRelease(
            partition=PARTITION, application_id=application_id, allocation_key="k", termination=STOPPED
        )
        say(h, ask)

        assert ["k#allocation-2"] == running(h)
        assert [] == waiting(h)


def test_all_of_a_quarantined_application_ends_by_any_name() -> None:
    """A broken application is never in the way of its RM."""
    h = a_partition()
    h.ask("k", resource=TWO, allocations=4)
    h.run_until_idle()
    h.partition.quarantine(BrokenKind.APPLICATION, "app", "broke")

    say(h, uuid_release("k", "k#allocation-2"))
    first = list(h.releases)
    say(h, uuid_release())

    assert [("k#allocation-2", STOPPED)] == first
    assert {"k", "k#allocation-2", "k#allocation-3", "k#allocation-4"} == {key for key, _ in h.releases}


# ------------------------------------------------------------------------------- named by an earlier one


def test_existing_allocations_of_one_ask_are_told_apart_by_their_uuids() -> None:
    """Each is recovered, counted and released by itself."""
    h = a_partition()

    h.ask("k#allocation:u", "k#allocation:v", "k", node_id="n0", resource=TWO)
    say(h, uuid_release("k", "u"), uuid_release("", "v"))

    assert [("k#allocation:u", STOPPED), ("k#allocation:v", STOPPED)] == h.releases
    assert ["k"] == running(h)


def test_existing_allocations_count_for_their_ask() -> None:
    """An RM that asks again after a restart gets what is missing."""
    h = a_partition()
    h.ask("k#allocation:u", "k#allocation-2", node_id="n0", resource=TWO)

    h.ask("k", resource=TWO, allocations=3)

    assert ["k#allocation-3"] == waiting(h)


def test_an_allocation_that_the_rm_has_placed_itself_takes_the_place_of_one_that_waits() -> None:
    """The ask is for as many allocations as before."""
    h = a_partition()
    h.update_node("n0", NodeAction.DRAIN_NODE)
    h.ask("k", resource=TWO, allocations=2)

    h.ask("k#allocation:u", node_id="n0", resource=TWO)

    assert (["k#allocation:u"], ["k"]) == (running(h), waiting(h))


def test_the_parts_of_an_application_that_has_ended_are_forgotten() -> None:
    """The next one of that name begins anew."""
    h = a_partition()
    h.ask("k#allocation:u", node_id="n0", resource=TWO)
    h.ask("k", resource=TWO, allocations=3)
    h.withdraw()
    h.submit()

    h.ask("k", resource=TEN, allocations=1)
    say(h, uuid_release("", "u"))

    assert (["k"], 1) == (waiting(h), len([*h.heard(AllocationsReleased)]))
