"""How long one ask takes from the call to the callback: `python tests/bench/one_ask.py [--pace N]`.

Asks come one in each request at a fixed pace, on 1,000 nodes, to a scheduler in this process and to one of
`licorne serve`, in turns. A latency counts from when an ask was due, so it contains what the client is late.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from figures import percentile
from rich.table import Table
from server_client import LatencyRun, cpu_seconds_of
from server_pace import server

from licorne import RemoteScheduler, Scheduler, prepare_process
from licorne.proxy.base.process import is_compiled
from licorne.proxy.base.terminal.standard_output import is_for_people, output_console, print_table

_PERCENTS: Final = (50, 99, 99.9)


def main(arguments: Sequence[str]) -> None:
    """Print latencies, the processor time of the server for each ask, and the pauses of the collector."""
    parser = argparse.ArgumentParser(prog="tests/bench/one_ask.py", description=__doc__)
    parser.add_argument("--pace", type=float, default=200.0, help="asks a second")
    parser.add_argument("--asks", type=int, default=4_000)
    parser.add_argument("--repeat", type=int, default=1)
    chosen = parser.parse_args(arguments)
    prepare_process()
    build = "compiled" if is_compiled() else "pure Python"
    table = Table(title=f"One ask in each request, {chosen.pace:g} a second, {build}")
    names = (
        "where",
        *(f"p{percent:g} ms" for percent in _PERCENTS),
        "server CPU µs",
        "collections",
        "longest ms",
    )
    for name in names:
        table.add_column(name, justify="right" if table.columns else "left")
    for _ in range(chosen.repeat):
        table.add_row("in process", *_in_process(chosen.asks, chosen.pace))
        table.add_row("licorne serve", *_served(chosen.asks, chosen.pace), "", "")
    print_table(table, output_console(), plain=not is_for_people())
    sys.stdout.write(f"load of the machine: {os.getloadavg()[0]:.1f}\n")


def _in_process(asks: int, pace: float) -> list[str]:
    with Scheduler() as scheduler, _pauses() as pauses:
        run = LatencyRun(scheduler, "rm", asks)
        pauses.clear()
        times = run.send(pace)
    return [*_row(times), "", f"{len(pauses)}", f"{1e3 * max(pauses, default=0.0):.1f}"]


def _served(asks: int, pace: float) -> list[str]:
    with server("actors") as (process, address), RemoteScheduler(address) as scheduler:
        run = LatencyRun(scheduler, "rm", asks)
        began = cpu_seconds_of(process.pid)
        times = run.send(pace)
        return [*_row(times), f"{1e6 * (cpu_seconds_of(process.pid) - began) / asks:.0f}"]


def _row(times: Sequence[float]) -> list[str]:
    return [f"{1e3 * percentile(times, percent):.2f}" for percent in _PERCENTS]


@contextmanager
def _pauses() -> Iterator[list[float]]:
    """Note how long the collector of garbage takes each time, in seconds."""
    pauses: list[float] = []
    began = 0.0

    def note(phase: str, _: dict[str, int]) -> None:
        nonlocal began
        if phase == "start":
            began = time.perf_counter()
        else:
            pauses.append(time.perf_counter() - began)

    gc.callbacks.append(note)
    try:
        yield pauses
    finally:
        gc.callbacks.remove(note)


if __name__ == "__main__":
    main(sys.argv[1:])
