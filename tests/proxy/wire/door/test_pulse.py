"""Signs of life of a session: when a worker is asked, when it counts as lost, and how far it has come."""

from __future__ import annotations

from concurrent.futures import Future
from typing import cast, final

import pytest

from licorne.proxy.si import licorne_v1_pb2 as v1
from licorne.proxy.wire.client.connection import Connection
from licorne.proxy.wire.client.errors import ConnectionLostError, NotSentError
from licorne.proxy.wire.door.session import SILENCE_SECONDS, Pulse


@final
class FakeConnection:
    """A session whose worker says what a test lets it say."""

    def __init__(self) -> None:
        self.signs = 0
        self.is_held_up = False
        self.reads = True
        self.ended = ""
        self.asked: list[Future[v1.Answer]] = []

    def ask_sign(self) -> Future[v1.Answer]:
        """Note the question."""
        if not self.reads:
            raise NotSentError("it does not read")
        self.asked.append(Future())
        return self.asked[-1]

    def answer(self) -> None:
        """Answer the last question."""
        self.signs += 1
        self.asked[-1].set_result(v1.Answer())

    def end(self, reason: str) -> None:
        """Note why."""
        self.ended = reason


@pytest.fixture
def connection() -> FakeConnection:
    return FakeConnection()


@pytest.fixture
def pulse(connection: FakeConnection) -> Pulse:
    return Pulse(lambda: cast("Connection", connection))


def tick(pulse: Pulse, seconds: int, sent: int = 0) -> list[int | None]:
    """Let seconds pass."""
    return [pulse.tick(sent) for _ in range(seconds)]


def test_a_worker_that_hangs_is_lost_after_30_s(connection: FakeConnection, pulse: Pulse) -> None:
    """It is asked before, and does not answer."""
    tick(pulse, 1)
    tick(pulse, SILENCE_SECONDS - 1)
    before = connection.ended
    tick(pulse, 1)

    assert ("", 1) == (before, len(connection.asked))
    assert "the worker has given no sign of life for 30 s" == connection.ended


def test_a_worker_that_does_not_even_read_is_lost_as_well(connection: FakeConnection, pulse: Pulse) -> None:
    """The question cannot be sent; which requests it has carried out is not known."""
    connection.reads = False
    tick(pulse, 1 + SILENCE_SECONDS)

    assert connection.ended
    assert pulse.hangs_behind is None


def test_an_idle_worker_is_asked_each_5_s(connection: FakeConnection, pulse: Pulse) -> None:
    """Its answers are signs of life."""
    for _ in range(10 * SILENCE_SECONDS):
        pulse.tick(0)
        if connection.asked and not connection.asked[-1].done():
            connection.answer()

    assert "" == connection.ended
    assert 40 < len(connection.asked) <= 60


def test_a_worker_that_says_anything_is_alive(connection: FakeConnection, pulse: Pulse) -> None:
    """It may have so much to do that the answer takes longer: a recovery on a slow machine does."""
    for _ in range(SILENCE_SECONDS):
        tick(pulse, SILENCE_SECONDS - 1)
        connection.signs += 1

    assert "" == connection.ended


def test_a_worker_that_is_not_read_is_not_blamed(connection: FakeConnection, pulse: Pulse) -> None:
    """The resource manager is slow; what the worker has said waits on this side."""
    connection.is_held_up = True
    tick(pulse, 10 * SILENCE_SECONDS)

    assert "" == connection.ended


def test_what_was_sent_before_a_question_is_carried_out_with_its_answer(
    connection: FakeConnection, pulse: Pulse
) -> None:
    """What was sent meanwhile is asked for next."""
    first = pulse.tick(3)
    connection.answer()
    through = [pulse.tick(5)]
    connection.answer()
    through += tick(pulse, 1, sent=2)

    assert (None, [3, 2]) == (first, through)


def test_a_worker_that_hangs_has_not_carried_out_what_was_sent_before_the_question(
    connection: FakeConnection, pulse: Pulse
) -> None:
    """What was sent later it has not come to."""
    tick(pulse, 1, sent=2)
    tick(pulse, 1 + SILENCE_SECONDS, sent=7)

    assert connection.ended
    assert 2 == pulse.hangs_behind


def test_a_lost_session_has_carried_nothing_out(connection: FakeConnection, pulse: Pulse) -> None:
    """The question ends with it."""
    tick(pulse, 1, sent=2)
    connection.asked[-1].set_exception(ConnectionLostError("it was cut"))

    assert pulse.tick(2) is None
