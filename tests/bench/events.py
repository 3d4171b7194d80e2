"""Measure what events or a history cost, and how many events one reader can follow.

`python tests/bench/events.py cost` runs a workload of `make bench` with events on and off, in turns in one
process, each time on a fresh scheduler, and prints the paces and their ratio; `--of history` with a history
on and off. The clock is processor time, that of all threads, so that other work of the machine matters
little. `python tests/bench/events.py rate` reports events at a
given rate for some seconds while one stream is read and written as JSON, and prints what was lost.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final

from driver import SelfRunning, Stepped
from figures import Gauges
from measurement import measure
from workloads import BenchWorkload, workload_named

from licorne import Scheduler
from licorne.model.configuration.extra import ExtraConfig
from licorne.model.resources.resource import Resource
from licorne.model.values.allocation import Allocation, Ask
from licorne.model.values.facts import PlacedFact
from licorne.proxy.core.events.log import EventLog
from licorne.proxy.si import si_pb2 as si
from licorne.proxy.si.api import ResourceManagerCallback
from licorne.proxy.views.history.recorder import HistoryWriter
from licorne.proxy.views.rest.responses import LoggedEvents

_TICKS_PER_SECOND: Final = 100


def _pace(workload: BenchWorkload, engine: str, *, events: bool, history: bool) -> float:
    """Return allocations per second of processor time."""
    gauges = Gauges(clock_seconds=time.process_time)
    with ExitStack() as stack:
        scheduler = stack.enter_context(Scheduler(engine=engine))  # type: ignore[arg-type] # argparse has checked it
        register = scheduler.register_resource_manager

        def register_so(
            request: si.RegisterResourceManagerRequest,
            callback: ResourceManagerCallback,
            *,
            partitions: Collection[str] | None = None,
        ) -> si.RegisterResourceManagerResponse:
            request.extraConfig["event.trackingEnabled"] = str(events).lower()
            return register(request, callback, partitions=partitions)

        scheduler.register_resource_manager = register_so  # type: ignore[method-assign]
        if history:
            path = Path(stack.enter_context(TemporaryDirectory())) / "history.db"
            stack.enter_context(HistoryWriter(scheduler, path, lambda *_: "the bench"))
        driver = Stepped(scheduler, gauges) if scheduler.stepped else SelfRunning(scheduler, gauges)
        pace = measure(workload, driver, gauges).pace_per_second
        assert scheduler.events.enabled is events
    assert pace is not None, f"{workload.name} places nothing"
    return pace


def cost(of: str, name: str, engine: str, rounds: int) -> None:
    """Print what events or a history cost."""
    workload = workload_named(name)
    paces: dict[bool, list[float]] = {True: [], False: []}
    for number in range(rounds):
        for is_on in (number % 2 == 0, number % 2 == 1):
            history = of == "history" and is_on
            paces[is_on].append(_pace(workload, engine, events=of == "events" and is_on, history=history))
        on, off = paces[True][-1], paces[False][-1]
        print(f"{of} {name} {engine}: on {on:,.0f}, off {off:,.0f}, ratio {on / off:.3f}")
    ratio = median(on / off for on, off in zip(paces[True], paces[False], strict=True))
    fastest = max(paces[True]) / max(paces[False])
    print(f"{of} {name} {engine}: the ratio in the middle {ratio:.3f}, of the fastest runs {fastest:.3f}")


def rate(per_second: int, seconds: float) -> None:
    """Print what one reader gets of events that come at a rate."""
    log = EventLog()
    sink = log.new_sink("rm")
    log.configure("rm", ExtraConfig())
    stream = LoggedEvents(log).stream(0, start=0, host="here")
    read = [0, 0]

    def follow() -> None:
        while not stream.is_over:
            texts = stream.take(1000)
            read[1] += sum(map(len, texts))
            read[0] += len(texts)
            if not texts:
                time.sleep(0.01)

    reader = threading.Thread(target=follow)
    reader.start()
    ask = Ask(
        allocation_key="ask",
        application_id="app",
        resource=Resource({"vcore": 10, "memory": 7}),
        created_at_ns=0,
    )
    allocation = Allocation(ask, "node-1", 0, "")
    assert sink.report is not None
    start = time.monotonic()
    reported = 0
    for tick in range(int(seconds * _TICKS_PER_SECOND)):
        due = (tick + 1) * per_second // _TICKS_PER_SECOND
        while reported < due:
            sink.report(PlacedFact(3, "rm", time.time_ns(), allocation, "root.leaf", "user", None))
            reported += 3
        time.sleep(max(0.0, start + (tick + 1) / _TICKS_PER_SECOND - time.monotonic()))
    took = time.monotonic() - start
    log.close()
    reader.join()
    counters = log.counters()
    print(
        f"{reported / took:,.0f} events/s: {read[0]:,} of {reported:,} read, {read[1]:,} bytes; "
        f"dropped in the channel {counters.not_channeled:,}, lost to the stream {counters.lost_to_streams:,}"
    )


def main(arguments: Sequence[str]) -> int:
    """Measure what the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    costs = commands.add_parser("cost")
    costs.add_argument("--of", default="events", choices=["events", "history"])
    costs.add_argument("--workload", default="u1000")
    costs.add_argument("--engine", default="actors", choices=["actors", "direct", "threads"])
    costs.add_argument("--rounds", type=int, default=7)
    rates = commands.add_parser("rate")
    rates.add_argument("per_second", type=int, nargs="*", default=[50_000])
    rates.add_argument("--seconds", type=float, default=10)
    options = parser.parse_args(arguments)
    if options.command == "cost":
        cost(options.of, options.workload, options.engine, options.rounds)
    else:
        for per_second in options.per_second:
            rate(per_second, options.seconds)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
