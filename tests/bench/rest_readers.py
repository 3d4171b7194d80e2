"""How much readers over REST slow the scheduler, and how long a long list takes.

`python tests/bench/rest_readers.py` runs the workload `u1000` without readers and with 200 of them and 50
streams of events in another process, in turns, and prints the pace of both; then the time for a list of 5,000
applications. Each reader has a connection of its own, and asks again as soon as it is answered.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import statistics
import subprocess
import sys
import time
from contextlib import nullcontext

from driver import SelfRunning
from figures import Gauges
from measurement import measure
from workloads import workload_named

from licorne import ResourceManager, Scheduler
from licorne.proxy.si import si_pb2 as si
from licorne.proxy.views.rest.running import RestServer

READERS = 200
STREAMS = 50
STREAMS_PER_HOST = 15
ROUNDS = 5
APPLICATIONS = 5_000
PATHS = (
    "/ws/v1/clusters",
    "/ws/v1/partitions",
    "/ws/v1/partition/default/queues",
    "/ws/v1/partition/default/nodes",
    "/ws/v1/partition/default/applications/active",
    "/ws/v1/scheduler/node-utilizations",
)


def main() -> None:
    """Run both measurements."""
    if sys.argv[1:]:
        asyncio.run(_read(int(sys.argv[1])))
        return
    sys.setswitchinterval(0.001)  # As `licorne serve` does.
    paces: dict[bool, list[float]] = {False: [], True: []}
    answers: list[dict[str, int]] = []
    for _ in range(ROUNDS):
        for with_readers, found in paces.items():
            found.append(_pace(answers, with_readers=with_readers))
    alone, read = (statistics.median(paces[key]) for key in (False, True))
    print(f"u1000 alone {alone:.0f}/s, with readers {read:.0f}/s: {read / alone:.2f}")
    print(f"answers by status, and events that streams had at the end of a round: {answers}")
    print(f"a list of {APPLICATIONS} applications: {_list_seconds():.2f} s")


def _pace(answers: list[dict[str, int]], *, with_readers: bool) -> float:
    """Return how many asks are placed a second."""
    gauges = Gauges()
    with Scheduler() as scheduler, RestServer(scheduler) as server:
        command = [sys.executable, __file__, str(server.port)]
        readers = None
        if with_readers:
            readers = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603 - our own
            assert readers.stdout is not None
            readers.stdout.readline()  # All are connected.
        with nullcontext() if readers is None else readers:
            figures = measure(workload_named("u1000"), SelfRunning(scheduler, gauges), gauges)
            if readers is not None:
                out, _ = readers.communicate(b"stop\n")
                answers.append(json.loads(out))
    assert figures.pace_per_second is not None
    return figures.pace_per_second


async def _read(port: int) -> None:
    """Ask until a line comes on standard input; then print the number of answers by status, and of events."""
    counts: dict[str, int] = {"events": 0}
    stopping = asyncio.Event()
    connections = [await asyncio.open_connection("127.0.0.1", port) for _ in range(READERS)]
    streams = [await _opened_stream(port, number) for number in range(STREAMS)]
    print("connected", flush=True)
    asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline).add_done_callback(
        lambda _: stopping.set()
    )
    tasks = [
        asyncio.create_task(_read_on(number, *pair, counts, stopping))
        for number, pair in enumerate(connections)
    ]
    following = [asyncio.create_task(_follow(*pair, counts)) for pair in streams]
    await asyncio.gather(*tasks)
    for task in following:
        task.cancel()
    await asyncio.gather(*following, return_exceptions=True)
    print(json.dumps(counts))


async def _opened_stream(port: int, number: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Open a stream of events; one host may have some of them only."""
    host = f"127.0.0.{2 + number // STREAMS_PER_HOST}"
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(host, 0))
    writer.write(b"GET /ws/v1/events/stream HTTP/1.1\r\nHost: a\r\n\r\n")
    head = await reader.readuntil(b"\r\n\r\n")
    assert b" 200 " in head, head
    return reader, writer


async def _follow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, counts: dict[str, int]) -> None:
    """Count the events of a stream until it is cancelled."""
    try:
        while part := await reader.read(1 << 16):
            counts["events"] += part.count(b'"timestampNano"')
    finally:
        writer.close()


async def _read_on(
    number: int,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    counts: dict[str, int],
    stopping: asyncio.Event,
) -> None:
    while not stopping.is_set():
        path = PATHS[number % len(PATHS)]
        number += 1
        writer.write(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        answer = asyncio.create_task(_answer(reader))
        waiting = asyncio.create_task(stopping.wait())
        await asyncio.wait([answer, waiting], return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if not answer.done():
            answer.cancel()
            break
        status = answer.result()
        counts[status] = counts.get(status, 0) + 1
    writer.close()


async def _answer(reader: asyncio.StreamReader) -> str:
    """Read one answer; return its status."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    if "transfer-encoding: chunked" in head:
        while size := int((await reader.readline()).strip(), 16):
            await reader.readexactly(size + 2)
        await reader.readline()
    else:
        await reader.readexactly(int(head.partition("content-length: ")[2].partition("\r\n")[0]))
    return head.split(" ", 2)[1]


def _list_seconds() -> float:
    """Return how long a list of many applications takes, with one ask each."""
    with Scheduler() as scheduler, RestServer(scheduler) as server:
        scheduler.register("rm", ResourceManager())
        for begin in range(0, APPLICATIONS, 500):
            names = [f"app-{number}" for number in range(begin, begin + 500)]
            applications, asks = si.ApplicationRequest(rmID="rm"), si.AllocationRequest(rmID="rm")
            for name in names:
                new = applications.new.add(applicationID=name, queueName="root.default")
                new.ugi.user = "bob"
                new.tags["namespace"] = "default"
                ask = asks.allocations.add(allocationKey=f"ask-{name}", applicationID=name)
                ask.resourcePerAlloc.resources["memory"].value = 1
            scheduler.update_application(applications)
            scheduler.update_allocation(asks)
        path = "/ws/v1/partition/default/applications/active"
        while len(scheduler.views.listed_applications("[rm]default").active) < APPLICATIONS:
            time.sleep(0.1)
        times = []
        for _ in range(ROUNDS):
            connection = http.client.HTTPConnection("127.0.0.1", server.port)
            start = time.perf_counter()
            connection.request("GET", path)
            body = connection.getresponse().read()
            times.append(time.perf_counter() - start)
            assert len(json.loads(body)) == APPLICATIONS
        return statistics.median(times)


if __name__ == "__main__":
    main()
