"""`licorne top` on a door: where the partition runs, and what has no worker."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import anyio
import pytest
from support.proxy.door_views import LiveWorkers

from licorne.proxy.views.top.client import RestClient, ServerReadError
from licorne.proxy.views.top.details import heading_lines
from licorne.proxy.views.top.reading import ServerReader, ServerReading
from licorne.proxy.views.top.views import View
from licorne.proxy.wire.door.view.application import DoorRest


@pytest.fixture(scope="module")
def workers() -> Iterator[LiveWorkers]:
    with ExitStack() as stack:
        yield LiveWorkers(stack)


def _read(workers: LiveWorkers, wanted: str | None) -> ServerReading:
    with DoorRest(workers.door) as server:

        async def read() -> ServerReading:
            client = RestClient(f"http://127.0.0.1:{server.port}")
            try:
                return await ServerReader(client).read(View.NODES, wanted)
            finally:
                await client.close()

        return anyio.run(read)


def test_the_heading_says_where_the_partition_runs(workers: LiveWorkers) -> None:
    """Its nodes and the count of allocations are those behind the door."""
    reading = _read(workers, "second")
    lines = heading_lines(reading, "memory", "http://door")

    assert ["second-1"] == [each["nodeID"] for each in reading.nodes]
    assert 0 == reading.allocated
    assert "on worker 127.0.0.1:3333, number 1, 0 requests waiting" == lines[2]


def test_a_partition_without_a_worker_is_said_to_be(workers: LiveWorkers) -> None:
    """Beside another one in the heading; as an error if it is the one that is wanted."""
    places = workers.door.standing
    try:
        workers.lose_second()
        lines = heading_lines(_read(workers, None), "memory", "http://door")
        with pytest.raises(ServerReadError, match=r"^partition \[rm\]second is starting since .*: killed$"):
            _read(workers, "second")
        workers.door.standing = workers.door.standing[1:]
        with pytest.raises(ServerReadError, match=r": partition \[rm\]second is starting since .*: killed$"):
            _read(workers, None)
    finally:
        workers.door.standing = places

    assert lines[3].startswith("partition [rm]second is starting since ")
