"""What a kubelet is told: 200 while there is no reason for anything else."""

from __future__ import annotations

import http.client
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass

import pytest
from support.waiting import WAIT_SECONDS

from licorne.model.errors import LicorneError
from licorne.proxy.kubernetes.running.service import HealthServer
from licorne.proxy.wire.server.access import Address

FREE = Address("127.0.0.1", 0)


@dataclass(frozen=True, slots=True)
class Probe:
    """What is asked, what the checks say, and the answer."""

    path: str
    status: int
    text: str
    stuck: str = ""
    not_ready: str = ""
    note: str = ""


CASES: dict[str, Probe] = {
    "a process that works lives": Probe("/livez", 200, "ok\n"),
    "a process that works is ready": Probe("/readyz", 200, "ok\n"),
    "one that leaves something out says so": Probe("/readyz", 200, "ok\n1 Node\n", note="1 Node"),
    "what is left out does not concern the other": Probe("/livez", 200, "ok\n", note="1 Node"),
    "one that is stuck says why": Probe("/livez", 503, "it hangs\n", stuck="it hangs"),
    "one that waits says for what": Probe("/readyz", 503, "no list\n", not_ready="no list"),
    "one that waits lives": Probe("/livez", 200, "ok\n", not_ready="no list"),
    "other paths name those that there are": Probe("/", 404, "there is /livez and /readyz\n"),
}


def answer(port: int, path: str) -> tuple[int, str]:
    """Ask a server; return status and text."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT_SECONDS)) as connection:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read().decode()


def always(text: str) -> Callable[[], str]:
    """Return a check that says the same at any time."""
    return lambda: text


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_probe_gets_its_answer(case: Probe) -> None:
    """Over HTTP, in plain text."""
    checks = {"why_stuck": always(case.stuck), "why_not_ready": always(case.not_ready)}

    with HealthServer(FREE, **checks, ready_note=always(case.note)) as server:
        assert (case.status, case.text) == answer(server.port, case.path)


def test_an_address_that_is_taken_is_refused_in_words() -> None:
    """A second process on the host does not answer in the place of the first."""
    checks = {"why_stuck": always(""), "why_not_ready": always("")}
    with HealthServer(FREE, **checks) as server, pytest.raises(LicorneError, match="cannot listen on 127"):
        HealthServer(FREE.with_port(server.port), **checks)


def test_nobody_listens_after_the_end() -> None:
    """The port is free for the next process."""
    checks = {"why_stuck": always(""), "why_not_ready": always("")}
    with HealthServer(FREE, **checks) as server:
        port = server.port

    with pytest.raises(ConnectionRefusedError):
        answer(port, "/livez")
