"""Since when a gang is as large as it is: a member that restarts does not begin its time anew."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from support.model.builders import START_NS, TEN, an_allocation, an_application, an_ask

from licorne.model.applications.gang import GangSettings
from licorne.model.applications.holdings import Holdings
from licorne.model.values.allocation import Allocation


def a_member(key: str, minute: int, *, placeholder: bool = False, group: str = "w") -> Allocation:
    """Return an allocation of a task group that was bound in that minute."""
    ask = an_ask(key, placeholder=placeholder, task_group_name=group)
    return an_allocation(ask=ask, bound_at_ns=minute)


def a_swapped(key: str, minute: int) -> Allocation:
    """Return a member that has replaced a placeholder in that minute."""
    return a_member(key, minute).in_place_of(a_member("p", 0, placeholder=True), minute)


def two_swapped() -> Holdings:
    """Return a gang of two that was complete in minute 2."""
    holdings = Holdings()
    for key in ("p1", "p2"):
        holdings.add(a_member(key, 0, placeholder=True))
    for number in (1, 2):
        holdings.end(f"p{number}", number)
        holdings.add(a_swapped(f"m{number}", number))
    return holdings


def since(holdings: Holdings) -> dict[str, int | None]:
    """Return since when each allocation counts for its gang."""
    return {key: placed.gang_since_ns for key, placed in holdings.placed.items()}


@dataclass(frozen=True)
class Case:
    """What comes after the end of a member, and since when it counts for the gang."""

    came: Allocation
    since: int | None


CASES = {
    "a member that restarts": Case(a_member("m", 9), 2),
    "one that restarts by way of a placeholder": Case(a_swapped("m", 9), 2),
    "a placeholder for one that restarts": Case(a_member("m", 9, placeholder=True), 2),
    "another kind of work": Case(a_member("m", 9, group="driver"), None),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_comes_for_a_member_that_ended_begins_no_time(case: Case) -> None:
    """The gang is no larger by it than it has been."""
    holdings = two_swapped()
    holdings.end("m2", 8)
    holdings.add(case.came)

    assert {"m1": 1, "m": case.since} == since(holdings)


def test_a_gang_that_grows_begins_its_time_anew() -> None:
    """Also after one member has restarted; what comes beside a complete gang on its own counts alone."""
    holdings = two_swapped()
    holdings.end("m2", 8)
    holdings.add(a_member("m3", 9))
    holdings.add(a_member("beside", 10))
    holdings.add(a_swapped("m4", 11))

    assert {"m1": 1, "m3": 2, "beside": None, "m4": 11} == since(holdings)


def test_a_gang_that_has_ended_begins_anew() -> None:
    """Nothing is left of the time before."""
    holdings = two_swapped()
    holdings.end_all(5)
    holdings.add(a_member("p", 6, placeholder=True))
    holdings.end("p", 7)
    holdings.add(a_swapped("m", 8))

    assert {"m": 8} == since(holdings)


@pytest.mark.parametrize(
    "gang_settings",
    [GangSettings(whole=True, size=2), GangSettings(placeholder_ask=TEN)],
    ids=["placed whole without placeholders", "with placeholders"],
)
def test_members_that_are_recovered_are_a_gang(gang_settings: GangSettings) -> None:
    """From the recovery on, so that one that restarts later begins no time either."""
    application = an_application(gang_settings=gang_settings)
    application.allocations.recover([a_member("m1", START_NS), a_member("m2", START_NS)], START_NS)

    assert [START_NS, START_NS] == [each.gang_since_ns for each in application.allocations.all()]


def test_members_that_are_placed_whole_are_a_gang() -> None:
    """Without placeholders too."""
    application = an_application(gang_settings=GangSettings(whole=True, size=2))
    asks = [an_ask("m1"), an_ask("m2")]
    application.asks.add(asks, START_NS)
    application.allocations.try_place_all([an_allocation(ask=ask) for ask in asks], START_NS)

    assert [START_NS, START_NS] == [each.gang_since_ns for each in application.allocations.all()]
