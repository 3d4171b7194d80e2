"""A server says where its REST interface listens."""

from __future__ import annotations

from collections.abc import Callable

from support.proxy.processes import serving

from licorne import RemoteScheduler

from .conftest import Served


def test_a_client_learns_where_the_rest_interface_listens(serve: Callable[..., Served]) -> None:
    """Empty where there is none."""
    found = []
    for settings in ({"rest_address": "127.0.0.1:9080"}, {}):
        with RemoteScheduler(serve(**settings).address) as client:
            found.append(client.rest_address)

    assert ["127.0.0.1:9080", ""] == found


def test_the_process_names_the_port_that_was_chosen() -> None:
    """It is the one of its REST interface."""
    with serving("--rest-address", "127.0.0.1:0") as server, RemoteScheduler(server.address) as client:
        assert server.rest == client.rest_address
