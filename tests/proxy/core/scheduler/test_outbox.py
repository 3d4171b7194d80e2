"""The announcements of a stepped scheduler: when they are delivered, and what an interrupt does."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from types import FrameType

import pytest

from licorne.model.values.messages import ApplicationsAnswered
from licorne.proxy.core.scheduler.managers.callbacks import Outbox
from licorne.proxy.si.older_generation import Delivery

FIRST, SECOND = (ApplicationsAnswered((name,), ()) for name in ("first", "second"))


@pytest.fixture(autouse=True)
def raising_handler() -> Iterator[None]:
    """Interrupts raise, as they do in a program, and not in the run of the tests."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, interrupt)
    yield
    signal.signal(signal.SIGINT, before)


def test_all_announcements_are_delivered_in_order_with_those_that_callbacks_cause() -> None:
    """A callback may make the scheduler announce more."""
    outbox = Outbox()
    delivered: list[Delivery] = []

    def deliver(announcement: Delivery) -> None:
        delivered.append(announcement)
        if announcement is FIRST:
            announce(SECOND)

    announce = outbox.announcer(deliver)
    announce(FIRST)

    assert outbox.deliver() == 2
    assert [FIRST, SECOND] == delivered


def test_an_interrupt_comes_between_two_callbacks() -> None:
    """The callback under way ends, the next one does not begin, and nothing is lost."""
    outbox = Outbox()
    steps: list[str] = []

    def deliver(announcement: Delivery) -> None:
        if announcement is FIRST:
            signal.raise_signal(signal.SIGINT)
        assert isinstance(announcement, ApplicationsAnswered)
        steps.extend(announcement.accepted)

    announce = outbox.announcer(deliver)
    announce(FIRST)
    announce(SECOND)
    with pytest.raises(KeyboardInterrupt):
        outbox.deliver()

    assert ["first"] == steps
    assert outbox.deliver() == 1
    assert ["first", "second"] == steps
