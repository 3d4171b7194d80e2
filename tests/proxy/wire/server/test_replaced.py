"""A resource manager (RM) that another connection registers: what the first one hears, and does then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import grpc
import pytest
from support.proxy.listening import Listener
from support.proxy.manager_requests import (
    BROKEN,
    ONE,
    application_request,
    ask_request,
    node_request,
)
from support.proxy.served import StreamManager, channel_to, served
from support.waiting import wait_until

from licorne import CallbackFailure, Recovery, RemoteScheduler, ReplacedError, RequestError, Scheduler
from licorne.proxy.si import licorne_v1_pb2 as v1
from licorne.proxy.si import si_pb2 as si
from licorne.proxy.wire.client.recovery_parts import RecoveryState


class Replaceable(Listener):
    """A listener that may be told that another one has taken its place."""

    def replaced(self, reason: str) -> None:
        self._hear([f"replaced: {reason}"])


class Sender(Listener):
    """A listener without the method `replaced`."""


def running(scheduler: Any, listener: Listener, rm_id: str = "rm") -> None:
    """Register, and have something run."""
    scheduler.register(rm_id, listener, configuration=ONE)
    scheduler.update_node(node_request("n1", rm_id=rm_id))
    scheduler.update_application(application_request("app", rm_id=rm_id))
    scheduler.update_allocation(ask_request("task", rm_id=rm_id))
    listener.wait_for("placed task")


def test_one_that_is_replaced_hears_that_alone_and_by_whom() -> None:
    """Nothing has ended: the other one goes on with it. It does not register again, and its calls say why."""
    first = Replaceable()
    with served() as server, RemoteScheduler(server.address) as scheduler:
        running(scheduler, first)
        heard = [*first.heard]
        with RemoteScheduler(server.address) as other:
            other.register("rm", Listener(), configuration=ONE)
            first.wait_for_count("replaced: ", 1)
            with pytest.raises(ReplacedError, match="'rm' has registered again, from another connection"):
                scheduler.update_allocation(ask_request("late"))
            (status,) = other.resource_managers()
            address = status.connection.removeprefix("licorne.v1 from ")
            other.update_node(node_request("mine"))  # It is still the one.
        assert [*heard, first.heard[-1]] == first.heard
        assert first.heard[-1].endswith(f"another connection: licorne.v1 from {address}")

        wait_until(lambda: scheduler.is_connected, "it has connected again")
        again = Listener()
        running(scheduler, again)


def test_one_that_cannot_be_told_is_reported() -> None:
    """As a callback that fails."""
    failures: list[CallbackFailure] = []
    with served() as server, RemoteScheduler(server.address, on_error=failures.append) as scheduler:
        first = Sender()
        running(scheduler, first)
        with RemoteScheduler(server.address) as other:
            other.register("rm", Listener(), configuration=ONE)
            wait_until(lambda: failures, "it is reported")

    assert [("rm", "replaced", ReplacedError)] == [
        (each.rm_id, each.callback, type(each.error)) for each in failures
    ]
    assert [] == first.all("released ")


def test_another_rm_of_the_same_session_goes_on() -> None:
    """The session stays."""
    first, neighbour = Replaceable(), Listener()
    with served() as server, RemoteScheduler(server.address) as scheduler:
        running(scheduler, first)
        running(scheduler, neighbour, "neighbour")
        with RemoteScheduler(server.address) as other:
            other.register("rm", Listener(), configuration=ONE)
            first.wait_for_count("replaced: ", 1)
            scheduler.update_allocation(ask_request("more", rm_id="neighbour"))
            neighbour.wait_for("placed more")


def test_a_registration_that_is_refused_replaces_nothing() -> None:
    """The first one goes on, and hears nothing."""
    first = Replaceable()
    with served() as server, RemoteScheduler(server.address) as scheduler:
        running(scheduler, first)
        with RemoteScheduler(server.address) as other, pytest.raises(RequestError):
            other.register("rm", Listener(), configuration=BROKEN)
        scheduler.update_allocation(ask_request("more"))
        first.wait_for("placed more")

    assert [] == first.all("replaced: ")


def test_the_streams_of_si_v1_end_with_whom_they_are_replaced_by() -> None:
    """They do not say that what runs has ended."""
    with served() as server, channel_to(server.address) as channel:
        first = StreamManager(channel, "rm")
        first.place("task")
        with RemoteScheduler(server.address) as other:
            other.register("rm", Listener(), configuration=ONE)
            heard: list[si.AllocationResponse] = []

            def read_all() -> None:
                while True:
                    heard.append(si.AllocationResponse.FromString(first.allocations.read()))

            with pytest.raises(grpc.RpcError) as caught:
                read_all()

    error: Any = caught.value
    assert [] == [each for each in heard if each.released]
    assert grpc.StatusCode.ABORTED is error.code()
    assert "registered again, from another connection: licorne.v1 from ipv4:127.0.0.1:" in error.details()


def test_a_recovery_that_is_replaced_fails() -> None:
    """It would wait for ever; the RM hears of it if it can."""
    first = Replaceable()
    with served() as server, RemoteScheduler(server.address) as scheduler:
        recovery = Recovery(scheduler, si.RegisterResourceManagerRequest(rmID="rm", config=ONE), first)
        recovery._send_due = lambda: None  # type: ignore[method-assign] # it is under way
        recovery.start()
        with RemoteScheduler(server.address) as other:
            other.register("rm", Listener(), configuration=ONE)
            first.wait_for_count("replaced: ", 1)

    assert RecoveryState.FAILED is recovery.state
    assert "registered again, from another connection" in recovery.failure


# ------------------------------------------------------------------------------------------------ doors


def door(epoch: int) -> v1.DoorStart:
    """Return a door that was started some nanoseconds after 1970."""
    return v1.DoorStart(epoch=epoch, name=f"door {epoch}")


def test_a_door_that_is_older_than_the_last_one_is_refused() -> None:
    """Also when that is not connected now. The text names both."""
    with served() as server:
        with RemoteScheduler(server.address, door=door(1_000_000_000)) as older:
            running(older, Listener())
            with RemoteScheduler(server.address, door=door(2_000_000_000)) as newer:
                running(newer, Listener())
            wait_until(lambda: older.is_connected, "it has connected again")
            with pytest.raises(ReplacedError) as caught:
                older.register("rm", Listener(), configuration=ONE)
        with RemoteScheduler(server.address, door=door(2_000_000_000)) as newer:
            running(newer, Listener())

    newer_said = "a newer door, door 2000000000, started at 1970-01-01T00:00:02.000+00:00"
    assert newer_said in str(caught.value)
    assert "this one is door 1000000000, started at 1970-01-01T00:00:01.000+00:00" in str(caught.value)


def test_who_is_no_door_is_no_older_one() -> None:
    """An RM may leave a door for its worker."""
    first = Replaceable()
    with served() as server, RemoteScheduler(server.address, door=door(1)) as scheduler:
        running(scheduler, first)
        with RemoteScheduler(server.address) as other:
            running(other, Listener())
        first.wait_for_count("replaced: ", 1)


def test_an_rm_that_comes_back_to_an_older_door_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its client does not try again and again."""
    first = Replaceable()
    with served() as server, RemoteScheduler(server.address, door=door(1)) as older:
        running(older, first)
        monkeypatch.setattr(older, "_receive", lambda _: None)  # What it is told is lost with the connection.
        connection = older._connection
        assert connection is not None
        monkeypatch.setattr(connection, "_receive", lambda _: None)
        with RemoteScheduler(server.address, door=door(2)) as newer:
            running(newer, Listener())
            first.wait_for_count("replaced: ", 1)
            newer.update_allocation(ask_request("more"))
            with pytest.raises(ReplacedError, match="belongs to a newer door, door 2"):
                older.update_allocation(ask_request("late"))


# ------------------------------------------------------------------------------------- in one process


@pytest.mark.parametrize("stepped", [True, False])
def test_a_callback_in_the_same_process_that_is_replaced_hears_that_alone(stepped: bool) -> None:  # noqa: FBT001
    """If it can be told so. Otherwise it hears the end of what it had, as the recorded core tells it."""
    heard = []
    for kind in (Replaceable, Sender):
        first = kind()
        with Scheduler(engine="direct", stepped=True) if stepped else Scheduler() as scheduler:
            step: Callable[[], object] = scheduler.run_until_idle if stepped else lambda: None
            scheduler.register("rm", first, configuration=ONE)
            scheduler.update_node(node_request("n1"))
            scheduler.update_application(application_request("app"))
            scheduler.update_allocation(ask_request("task"))
            step()
            first.wait_for("placed task")
            scheduler.register("rm", Listener(), configuration=ONE)
            step()
        heard.append((first.all("replaced: "), first.all("released ")))

    assert [
        (["RM 'rm' has registered again: another callback"], []),
        ([], ["task STOPPED_BY_RM"]),
    ] == heard


def test_a_callback_that_registers_again_has_not_been_replaced() -> None:
    """It hears the end of what it had."""
    first = Replaceable()
    with Scheduler() as scheduler:
        running(scheduler, first)
        scheduler.register("rm", first, configuration=ONE)
        first.wait_for("released task STOPPED_BY_RM")

    assert [] == first.all("replaced: ")
