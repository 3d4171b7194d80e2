"""The life of a resource manager (RM) that is connected from outside: lost, stopped, back again."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from support.proxy.listening import Listener
from support.proxy.manager_requests import application_request, ask_request, node_request
from support.proxy.wire_client import WireClient, refusal_of
from support.proxy.wire_streams import WireStream, WireStreams
from support.waiting import wait_until

from licorne import RemoteScheduler, RequestError
from licorne.model.values.states import ManagerState

if TYPE_CHECKING:
    from .conftest import Served


def _state(served: Served, rm_id: str = "rm") -> ManagerState:
    (status,) = [each for each in served.scheduler.resource_managers() if each.rm_id == rm_id]
    return status.state


def _wait_for_state(served: Served, state: ManagerState, rm_id: str = "rm") -> None:
    wait_until(lambda: _state(served, rm_id) is state, f"{rm_id} is {state.value}")


def _running(served: Served) -> WireStreams:
    """Register an RM with one node and one task that runs, by the streams of `si.v1`."""
    channel = served.channel()
    WireClient(channel).register("rm")
    streams = WireStreams(channel)
    streams.nodes.send(node_request("n1"))
    assert [each.nodeID for each in streams.nodes.next().accepted] == ["n1"]
    streams.applications.send(application_request("app"))
    assert [each.applicationID for each in streams.applications.next().accepted] == ["app"]
    streams.allocations.send(ask_request("task"))
    assert [each.allocationKey for each in streams.allocations.next().new] == ["task"]
    return streams


def test_the_three_streams_carry_requests_and_answers(served: Served) -> None:
    """Nodes, applications and asks, each on its stream."""
    streams = _running(served)

    states = [change.state for change in streams.applications.next().updated]
    assert states[:1] == ["Accepted"]
    assert _state(served) is ManagerState.RUNNING


def test_an_rm_that_closes_all_its_streams_has_shut_down(served: Served) -> None:
    """What is queued is sent, the streams end with OK, and nothing more is placed."""
    streams = _running(served)
    for stream in streams.all:
        stream.half_close()

    for stream in streams.all:
        code, _ = stream.end()
        assert code is grpc.StatusCode.OK
    assert _state(served) is ManagerState.STOPPED


def test_one_closed_stream_is_no_shut_down(served: Served) -> None:
    """An RM that has no more nodes to send still gets placements."""
    streams = _running(served)
    streams.nodes.half_close()
    streams.allocations.send(ask_request("more"))

    assert [each.allocationKey for each in streams.allocations.next().new] == ["more"]
    assert _state(served) is ManagerState.RUNNING


def test_an_rm_whose_streams_break_is_paused_and_then_stopped(serve: Callable[..., Served]) -> None:
    """First it may come back; after the time that the server is set to it is stopped."""
    served = serve(stop_after_seconds=0.2)
    streams = _running(served)
    for stream in streams.all:
        stream.cancel()

    _wait_for_state(served, ManagerState.STOPPED)
    (status,) = served.scheduler.resource_managers()
    assert "its connection was lost" in status.reason
    assert "did not come back within 0.2 s" in status.reason


def test_a_stopped_rm_is_forgotten_in_time(serve: Callable[..., Served]) -> None:
    """After the time that the server is set to; one that registers again before is not."""
    served = serve(stop_after_seconds=0.1, forget_after_seconds=0.2)
    streams = _running(served)
    (status,) = served.scheduler.resource_managers()
    assert status.connection.startswith("si.v1 from ipv4:127.0.0.1:")
    for stream in streams.all:
        stream.cancel()
    wait_until(lambda: not served.scheduler.resource_managers(), "it is forgotten")

    served = serve(forget_after_seconds=600)
    with RemoteScheduler(served.address) as scheduler:
        scheduler.register("mine", Listener())
        (status,) = scheduler.resource_managers()
        assert status.connection.startswith("licorne.v1 from ipv4:127.0.0.1:")
        with pytest.raises(RequestError, match="RM 'mine' is Running: only one that has stopped"):
            scheduler.forget_manager("mine")
    with RemoteScheduler(served.address) as scheduler:
        wait_until(lambda: _state(served, "mine") is ManagerState.STOPPED, "it has stopped")
        scheduler.forget_manager("mine")
        assert () == scheduler.resource_managers()


def test_an_rm_that_comes_back_starts_afresh_and_others_notice_nothing(served: Served) -> None:
    """It registers again, and everything of it is gone."""
    other = Listener()
    with RemoteScheduler(served.address) as scheduler:
        scheduler.register("other", other)
        streams = _running(served)
        for stream in streams.all:
            stream.cancel()
        _wait_for_state(served, ManagerState.PAUSED)
        late = WireStream(served.channel(), "UpdateNode")
        late.send(node_request("n2"))
        code, text = late.end()
        assert code is grpc.StatusCode.FAILED_PRECONDITION
        assert "register again" in text

        again = _running(served)

        again.allocations.send(ask_request("more"))
        assert [each.allocationKey for each in again.allocations.next().new] == ["more"]
        assert _state(served) is ManagerState.RUNNING
        assert _state(served, "other") is ManagerState.RUNNING
        nodes: Any = served.scheduler.snapshot(rm_id="rm")["nodes"]
        assert [node["nodeID"] for node in nodes["default"]] == ["n1"]
    assert other.heard == []


def test_a_registration_on_another_connection_replaces_the_first(served: Served) -> None:
    """The streams of the first one end, with the reason."""
    first, second = _running(served), _running(served)

    for stream in first.all:
        code, text = stream.end()
        assert code is grpc.StatusCode.ABORTED
        assert "registered again" in text
    assert all(stream.stream.is_active() for stream in second.all)
    assert _state(served) is ManagerState.RUNNING


def test_a_refused_registration_leaves_the_first_one_as_it_was(served: Served) -> None:
    """A bad configuration costs the RM nothing."""
    streams = _running(served)
    code, _ = refusal_of(lambda: WireClient(served.channel()).register("rm", "partitions: 7"))
    assert code is grpc.StatusCode.INVALID_ARGUMENT

    streams.allocations.send(ask_request("more"))
    assert [each.allocationKey for each in streams.allocations.next().new] == ["more"]


def test_a_session_that_says_goodbye_has_shut_down(served: Served) -> None:
    """The end of the `with` block stops the RM at once."""
    with RemoteScheduler(served.address) as scheduler:
        scheduler.register("rm", Listener())

    assert _state(served) is ManagerState.STOPPED


def test_several_rms_in_several_ways_live_beside_each_other(served: Served) -> None:
    """One by streams, one by a session: each gets its own."""
    listener = Listener()
    with RemoteScheduler(served.address) as scheduler:
        streams = _running(served)
        scheduler.register("session", listener)
        scheduler.update_node(node_request("m1", rm_id="session"))
        listener.wait_for("accepted m1")
        streams.nodes.send(node_request("n2"))
        assert [each.nodeID for each in streams.nodes.next().accepted] == ["n2"]
    assert listener.heard == ["accepted m1"]
