"""A resource manager that is far behind with its callbacks: placing pauses for it, and for no other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest
from support.proxy.listening import Gate, Listener
from support.proxy.manager_requests import TWO, application_request, ask_request, keys
from support.proxy.running_scheduler import begin, placed_in
from support.waiting import WAIT_SECONDS

from licorne import Scheduler
from licorne.actors.services import rm_link

BACKLOG: Final = 8
"""A bound on what waits for an RM that a test can reach."""


@pytest.fixture
def congested(
    scheduler: Scheduler, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Gate, int]]:
    """Have 500 asks for an RM that takes in one placement and no more; give its gate and what is placed."""
    monkeypatch.setattr(rm_link, "BACKLOG_MAX", BACKLOG)
    gate = Gate("placed")
    begin(scheduler, listener, configuration=TWO)
    listener.react = gate.hold
    scheduler.update_allocation(ask_request("first"))
    assert gate.reached.wait(WAIT_SECONDS)
    scheduler.update_allocation(ask_request(*keys(500)))
    # Each look lets the partition have another turn, and twenty turns would be enough for all asks.
    *_, placed = [placed_in(scheduler) for _ in range(20)]
    yield gate, placed
    gate.open()
    if not scheduler._stopped:
        listener.wait_for_count("placed ", 501)  # So that the end does not meet it at work.


def test_placing_pauses_while_the_manager_is_far_behind(congested: tuple[Gate, int]) -> None:
    """Once more waits for it than the bound allows, nothing is placed for it beyond one turn's worth."""
    _, placed = congested

    assert BACKLOG <= placed < 500


def test_placing_goes_on_when_the_manager_has_caught_up(
    congested: tuple[Gate, int], scheduler: Scheduler, listener: Listener
) -> None:
    """No request is needed for it."""
    gate, _ = congested
    gate.open()
    listener.wait_for_count("placed ", 501)

    assert ["first", *keys(500)] == listener.all("placed ")
    assert 501 == placed_in(scheduler)


def test_requests_of_a_manager_that_is_far_behind_are_taken(
    congested: tuple[Gate, int], scheduler: Scheduler, listener: Listener
) -> None:
    """And answered, when it listens again."""
    gate, placed = congested
    scheduler.update_application(application_request("late"))

    assert placed == placed_in(scheduler)
    gate.open()
    listener.wait_for("accepted late")


@pytest.mark.usefixtures("congested")
def test_another_manager_does_not_notice_the_congestion(scheduler: Scheduler) -> None:
    """Its own asks are placed at once."""
    other = Listener()
    begin(scheduler, other, rm_id="other")
    scheduler.update_allocation(ask_request(*keys(20), rm_id="other"))

    other.wait_for_count("placed ", 20)


def test_a_congestion_may_end_after_the_partitions_have(
    congested: tuple[Gate, int], scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The link delivers the rest and ends as usual."""
    gate, _ = congested
    link = scheduler._managers.get("rm", "test").link
    assert link is not None
    close = link.close

    def open_and_close() -> None:
        gate.open()
        close()

    monkeypatch.setattr(link, "close", open_and_close)
    scheduler.stop()
