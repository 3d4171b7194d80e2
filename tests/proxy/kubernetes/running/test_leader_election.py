"""Which process schedules: a lease on a stub of an API server, and a clock that tests move."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Final

import pytest
from support.kubernetes.stub_clients import client_of
from support.kubernetes.stub_server import StubApiServer
from support.waiting import WAIT_SECONDS

from licorne.proxy.kubernetes.client.api_calls import ApiCalls
from licorne.proxy.kubernetes.running.service import LEASE_SECONDS, LeaderElection, lease_name

LEASE: Final = "/apis/coordination.k8s.io/v1/namespaces/default/leases/licorne"


class Elections:
    """Processes that take part in one election, and what they were told."""

    def __init__(self, stub: StubApiServer, calls: ApiCalls) -> None:
        self.stub = stub
        self.now = 100.0
        self.told: list[str] = []
        self.leads = threading.Event()
        """Whether any process leads, or has."""
        self._calls = calls

    def process(self, name: str) -> LeaderElection:
        """Return one more process."""
        return LeaderElection(
            self._calls,
            namespace="default",
            name="licorne",
            identity=name,
            on_lead=lambda: self._lead(name),
            on_lost=lambda: self.told.append(f"{name} has lost"),
            clock=lambda: self.now,
        )

    def _lead(self, name: str) -> None:
        self.told.append(f"{name} leads")
        self.leads.set()

    def holder(self) -> str:
        """Return who holds the lease, as the API server has it."""
        return str(self.stub.get(LEASE)["spec"].get("holderIdentity", ""))


@pytest.fixture
def elections() -> Iterator[Elections]:
    with StubApiServer() as stub, client_of(stub) as client:
        yield Elections(stub, ApiCalls(client))


def test_the_first_process_leads_and_the_second_waits(elections: Elections) -> None:
    """However often they try."""
    first, second = elections.process("first"), elections.process("second")

    for _ in range(20):
        first.step()
        second.step()
        elections.now += 2

    assert ["first leads"] == elections.told
    assert "first" == elections.holder()
    assert (True, False) == (first.leads(), second.leads())


def test_a_process_takes_the_lease_that_was_not_renewed_for_its_time(elections: Elections) -> None:
    """Not earlier, by its own clock: it counts from when it has seen the last renewal."""
    first, second = elections.process("first"), elections.process("second")
    first.step()
    second.step()

    elections.now += LEASE_SECONDS - 0.1
    second.step()
    assert "first" == elections.holder()

    elections.now += 0.2
    second.step()
    assert ["first leads", "second leads"] == elections.told
    assert "second" == elections.holder()


def test_a_holder_stops_leading_before_another_may_take_the_lease(elections: Elections) -> None:
    """Also while it only waits for an answer: two never lead at once."""
    first, second = elections.process("first"), elections.process("second")
    first.step()
    second.step()
    leading = []
    for _ in range(120):
        elections.now += 0.1
        second.step()
        leading.append((first.leads(), second.leads()))

    assert (True, True) not in leading
    assert (True, False) == leading[0]
    assert (False, True) == leading[-1]


def test_a_holder_that_cannot_renew_loses_and_says_so_once(elections: Elections) -> None:
    """The API server is away: the process has to end, since another may schedule by now."""
    first = elections.process("first")
    first.step()
    elections.stub.fail("PUT", LEASE, status=500, times=None)

    for _ in range(5):
        elections.now += 2
        first.step()

    assert ["first leads", "first has lost"] == elections.told


def test_a_holder_whose_program_fails_loses_too(
    elections: Elections, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever was raised, the lease was not renewed: nobody may bind without it."""
    first = elections.process("first")
    first.step()

    def fail(*_: object) -> None:
        raise ValueError("a fault of the program")

    monkeypatch.setattr(ApiCalls, "get_lease", fail)
    for _ in range(5):
        elections.now += 2
        first.step()

    assert ["first leads", "first has lost"] == elections.told


def test_a_holder_whose_lease_another_has_taken_loses(elections: Elections) -> None:
    """For example after its machine has slept."""
    first = elections.process("first")
    first.step()
    lease = elections.stub.get(LEASE)
    elections.stub.change(LEASE, {"spec": {**lease["spec"], "holderIdentity": "thief"}})

    elections.now += 2
    first.step()

    assert ["first leads", "first has lost"] == elections.told
    assert "thief" == elections.holder()


def test_a_lost_answer_to_a_renewal_is_made_up_for_by_the_next_one(elections: Elections) -> None:
    """The version has changed, which the next step reads."""
    first = elections.process("first")
    first.step()
    elections.stub.lose_answer("PUT", LEASE)

    for _ in range(3):
        elections.now += 2
        first.step()

    assert ["first leads"] == elections.told
    assert first.leads()


def test_a_process_that_ends_gives_the_lease_back(elections: Elections) -> None:
    """So that the next one need not wait."""
    first, second = elections.process("first"), elections.process("second")
    first.start()
    assert elections.leads.wait(WAIT_SECONDS)
    first.stop()
    assert "" == elections.holder()

    second.step()
    assert second.leads()


def test_a_new_process_with_the_name_of_the_holder_waits_for_its_time(elections: Elections) -> None:
    """The earlier one may still run."""
    elections.process("first").step()
    again = elections.process("first")

    again.step()
    assert not again.leads()

    elections.now += LEASE_SECONDS + 1
    again.step()
    assert again.leads()


def test_each_name_of_a_scheduler_has_a_lease() -> None:
    """Two schedulers in one namespace lead both, each for its own pods."""
    assert ["licorne", "licorne-yunikorn"] == [lease_name(name) for name in ("licorne", "yunikorn")]
