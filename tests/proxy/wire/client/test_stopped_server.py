"""A server that does not read: its client waits as long as the caller says, and sends whole requests."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from support.proxy.listening import Listener
from support.proxy.manager_requests import ONE, node_request
from support.proxy.processes import ServerProcess, serving
from support.waiting import WAIT_SECONDS, let_time_pass, wait_until

from licorne import LicorneError, NotSentError, RemoteScheduler
from licorne.proxy.si import si_pb2 as si

LARGE = "x" * 30_000
"""An attribute of each node, so that a few hundred requests fill what is between the processes."""
REQUESTS_MAX = 5_000
REFUSED_MAX = 50
"""Where so many are refused in a row, a moment apart, nothing more fits between the processes."""
AT_ONCE_SECONDS = 20.0
"""What does not wait for the server takes less, also on a slow machine; an answer is waited for 30 s."""


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give a server that is stopped up late."""
    monkeypatch.setattr("licorne.proxy.wire.client.connection._SIGN_SECONDS", float(WAIT_SECONDS))


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with serving("--no-rest") as server:
        yield server


@contextmanager
def stopped(server: ServerProcess) -> Iterator[None]:
    """Stop the server's process for a block."""
    os.kill(server.process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(server.process.pid, signal.SIGCONT)


def a_node(name: str) -> si.NodeRequest:
    """Return a request with a large new node."""
    request = node_request(name)
    request.nodes[0].attributes["text"] = LARGE
    return request


def send_until_full(client: RemoteScheduler) -> tuple[list[str], float]:
    """Send nodes until none has been sent for a while.

    Returns:
        The names of those that were sent, and how many seconds the longest call took.
    """
    sent: list[str] = []
    longest, refused = 0.0, 0
    while refused < REFUSED_MAX:
        assert len(sent) < REQUESTS_MAX, "there is no end of what is taken"
        began = time.monotonic()
        try:
            client.update_node(a_node(f"n{len(sent)}"))
        except NotSentError:
            refused += 1
            let_time_pass(0.01)
        else:
            sent.append(f"n{len(sent)}")
            refused = 0
        longest = max(longest, time.monotonic() - began)
    return sent, longest


def answered(listener: Listener, sent: list[str]) -> bool:
    """Return whether the last node that was sent is accepted."""
    return f"accepted {sent[-1]}" in listener.heard


def test_a_client_that_must_not_wait_never_waits_and_sends_requests_whole(server: ServerProcess) -> None:
    """What was taken arrives in order when the server reads again, and what was not taken does not."""
    listener = Listener()
    with RemoteScheduler(server.address, send_timeout_seconds=0) as client:
        client.register("rm", listener, configuration=ONE)
        with stopped(server):
            sent, longest = send_until_full(client)
        wait_until(lambda: answered(listener, sent))
        client.update_node(a_node("after"))
        wait_until(lambda: answered(listener, ["after"]))

    assert longest < AT_ONCE_SECONDS
    assert [f"accepted {name}" for name in [*sent, "after"]] == listener.heard


def test_a_client_waits_as_long_as_the_caller_says(server: ServerProcess) -> None:
    listener = Listener()
    with RemoteScheduler(server.address, send_timeout_seconds=0.5) as client:
        client.register("rm", listener, configuration=ONE)
        with stopped(server):
            sent, _ = send_until_full(client)
            began = time.monotonic()
            with pytest.raises(NotSentError, match=r"256 messages wait to be sent, .* within 0\.5 s"):
                client.update_node(a_node("more"))
            seconds = time.monotonic() - began
        wait_until(lambda: answered(listener, sent))

    assert 0.5 <= seconds < AT_ONCE_SECONDS
    assert "accepted more" not in listener.heard


def test_a_call_and_the_end_of_a_client_wait_for_its_timeout_at_most(
    server: ServerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call has not been made, and a later one gets its own answer."""
    listener = Listener()
    with RemoteScheduler(server.address, send_timeout_seconds=0) as client:
        client.register("rm", listener, configuration=ONE)
        with stopped(server), monkeypatch.context() as hasty:
            sent, _ = send_until_full(client)
            hasty.setattr(client, "_timeout", 1.0)
            with pytest.raises(NotSentError, match="not sent within 1 s"):
                client.configuration_text("rm")
        wait_until(lambda: answered(listener, sent))
        text = client.configuration_text("rm")
        with stopped(server):
            send_until_full(client)
            monkeypatch.setattr(client, "_timeout", 1.0)
            began = time.monotonic()
            client.stop()
            seconds = time.monotonic() - began

    assert ONE == text
    assert seconds < AT_ONCE_SECONDS


@pytest.mark.parametrize("seconds", [-1.0, float("nan")])
def test_a_timeout_below_0_is_refused(seconds: float) -> None:
    """Before anything is connected."""
    with pytest.raises(LicorneError, match="is below 0"):
        RemoteScheduler("127.0.0.1:1", send_timeout_seconds=seconds)
