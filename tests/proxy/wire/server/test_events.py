"""Events over the wire: a resource manager behind a server gets its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from support.proxy.listening import Listener
from support.proxy.manager_requests import ONE, node_request
from support.waiting import wait_until

from licorne import RemoteScheduler
from licorne.proxy.core.events import log
from licorne.proxy.si import si_pb2 as si

from .conftest import Served


class Hearing(Listener):
    """Keeps what its events are about."""

    def __init__(self) -> None:
        super().__init__()
        self.objects: list[str] = []

    def send_event(self, events: Sequence[si.EventRecord]) -> None:
        """Keep them."""
        self.objects += [event.objectID for event in events]


def test_a_remote_resource_manager_gets_its_events(
    serve: Callable[..., Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its callback, as one in the process."""
    monkeypatch.setattr(log, "DELIVERY_SECONDS", 0.001)
    served = serve()
    rm = Hearing()
    with RemoteScheduler(served.address) as scheduler:
        scheduler.register("rm", rm, configuration=ONE)
        scheduler.update_node(node_request("n1"))

        wait_until(lambda: "n1" in rm.objects)

    assert "root" in rm.objects
