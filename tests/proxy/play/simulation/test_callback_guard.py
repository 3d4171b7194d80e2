from __future__ import annotations

import pytest

from licorne.model.values.messages import AllocationsReleased, Announcement
from licorne.proxy.play.simulation.core import (
    AnnouncedManager,
    AnnouncementGuard,
    CallbackGuard,
    PredicateGuard,
)
from licorne.proxy.si import si_pb2 as si
from licorne.proxy.si.api import ResourceManager
from licorne.proxy.si.older_generation import EventsHappened


class _Failing(ResourceManager):
    def update_allocation(self, response: si.AllocationResponse) -> None:  # noqa: ARG002 - it fails anyway
        raise ValueError("first")

    def update_node(self, response: si.NodeResponse) -> None:  # noqa: ARG002 - it fails anyway
        raise ValueError("second")

    def predicates(self, args: si.PredicatesArgs) -> None:
        raise ValueError(f"no to {args.allocationKey}")


class _FailingAtOnce(AnnouncedManager):
    def announced(self, announcement: Announcement | EventsHappened) -> bool:  # noqa: ARG002 - it fails anyway
        raise ValueError("third")


def test_the_first_failure_is_raised_later_and_once() -> None:
    """The scheduler does not see it."""
    guard = CallbackGuard(_Failing())
    guard.update_allocation(si.AllocationResponse())
    guard.update_node(si.NodeResponse())

    with pytest.raises(ValueError, match="first"):
        guard.raise_failure()
    guard.raise_failure()


def test_a_failure_at_an_announcement_is_raised_later() -> None:
    """The announcement counts as taken: a message about it would come twice."""
    guard = AnnouncementGuard(_FailingAtOnce())

    assert guard.announced(AllocationsReleased(()))
    with pytest.raises(ValueError, match="third"):
        guard.raise_failure()


def test_what_a_predicate_raises_is_an_answer() -> None:
    """It passes through, and is no failure."""
    guard = PredicateGuard(_Failing())

    with pytest.raises(ValueError, match="no to k"):
        guard.predicates(si.PredicatesArgs(allocationKey="k"))
    guard.raise_failure()


def test_everything_else_passes_through() -> None:
    """An answer comes back as it was given."""
    answer = PredicateGuard(ResourceManager()).preemption_predicates(
        si.PreemptionPredicatesArgs(startIndex=4)
    )

    assert answer is not None
    assert 4 == answer.index


def test_a_scheduler_asks_no_guard_that_has_no_predicates() -> None:
    """It would ask for each placement, only to be told yes."""
    assert CallbackGuard.predicates is ResourceManager.predicates
    assert PredicateGuard.predicates is not ResourceManager.predicates
