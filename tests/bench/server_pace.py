"""How fast the scheduler is over gRPC: `python tests/bench/server_pace.py [WORKLOAD...]`.

The same workloads run through a server on this machine, and in process.
The server is a process of its own, and so is the client. Each run in process stands beside one over gRPC, in
turns.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from figures import BenchError
from lit_run import run_in_process
from rich.table import Table
from server_client import cpu_seconds_of, resident_bytes_of
from workloads import DEFAULT_NAMES, BenchWorkload, workload_named

from licorne.proxy.base.terminal.standard_output import is_for_people, output_console, print_table
from licorne.proxy.core.scheduler.engine_names import ENGINES, EngineName

_CLIENT: Final = str(Path(__file__).with_name("server_client.py"))
_PROCESS_SECONDS_MAX: Final = 3_600
_CONNECTIONS: Final = 200


def main(arguments: Sequence[str]) -> None:
    """Measure the workloads that are named, or those of `make bench`, and print a table."""
    parser = argparse.ArgumentParser(prog="tests/bench/server_pace.py", description=__doc__)
    parser.add_argument(
        "workloads", nargs="*", default=DEFAULT_NAMES, help="by default those of `make bench`"
    )
    parser.add_argument("--engine", choices=ENGINES, default="actors")
    parser.add_argument("--repeat", type=int, default=1, help="how often; the run in the middle is printed")
    chosen = parser.parse_args(arguments)
    workloads = [workload_named(name) for name in chosen.workloads]
    figures = list(measure_server(workloads, chosen.engine, chosen.repeat))
    print_table(server_table(figures), output_console(), plain=not is_for_people())


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFigures:
    """One workload on one engine, in process and over gRPC."""

    workload: str
    engine: str
    in_process_per_second: float
    remote_per_second: float
    server_cpu_seconds: float
    """What the server used for all of the workload: its registration, nodes, applications and asks."""
    offered_per_second: float
    """Half of the pace of asks that come one in each request: the load for the latencies."""
    latency_p50_seconds: float
    """From the call with an ask to the callback with its placement, at that load."""
    latency_p99_seconds: float
    bytes_per_connection: float
    """What the server's memory grew by for each of 200 sessions that have said hello."""

    @property
    def ratio(self) -> float:
        """The pace over gRPC by that in process."""
        return self.remote_per_second / self.in_process_per_second


def measure_server(
    workloads: Sequence[BenchWorkload], engine: EngineName, repeat: int
) -> Iterator[ServerFigures]:
    """Give the figures of each workload: those of the run whose ratio is in the middle.

    Raises:
        BenchError: A run gave no figures, or the engine is stepped.
    """
    if engine == "direct":
        raise BenchError("the engine direct is stepped: a server that is measured runs by itself")
    for workload in workloads:
        runs = sorted((_run(workload, engine) for _ in range(repeat)), key=lambda run: run.ratio)
        yield runs[(len(runs) - 1) // 2]


def _run(workload: BenchWorkload, engine: EngineName) -> ServerFigures:
    inside = run_in_process(workload, engine).measurement.pace_per_second
    if inside is None:
        raise BenchError(f"{workload.name} has no pace: choose a workload that places")
    with server(engine) as (process, address):
        began = cpu_seconds_of(process.pid)
        remote = float(_client("pace", workload.name, address)["per_second"])
        spent = cpu_seconds_of(process.pid) - began
        latency = _client("latency", address)
        before = resident_bytes_of(process.pid)
        _client("connections", address, str(_CONNECTIONS), str(process.pid))
        held = float(_client("connections", address, str(_CONNECTIONS), str(process.pid))["resident_bytes"])
    return ServerFigures(
        workload=workload.name,
        engine=engine,
        in_process_per_second=inside,
        remote_per_second=remote,
        server_cpu_seconds=spent,
        offered_per_second=latency["offered_per_second"],
        latency_p50_seconds=latency["p50"],
        latency_p99_seconds=latency["p99"],
        bytes_per_connection=max(held - before, 0.0) / _CONNECTIONS,
    )


@contextmanager
def server(engine: EngineName) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run `licorne serve` without REST; yield its process and its address."""
    command = [sys.executable, "-m", "licorne", "serve", "--json", "--no-rest", "--address", "127.0.0.1:0"]
    process = subprocess.Popen(  # noqa: S603 - our own command
        [*command, "--engine", engine], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise BenchError("the server did not start: try `licorne serve`")
        yield process, str(json.loads(line)["address"])
    finally:
        process.terminate()
        process.communicate()


def _client(*arguments: str) -> dict[str, Any]:
    """Return the figures of one run of the client."""
    done = subprocess.run(  # noqa: S603 - our own module
        [sys.executable, _CLIENT, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=_PROCESS_SECONDS_MAX,
    )
    if done.returncode:
        raise BenchError(f"the client of {arguments[0]} failed: {done.stderr.strip().splitlines()[-1:]}")
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def server_table(runs: Sequence[ServerFigures]) -> Table:
    """Return the figures as a table."""
    table = Table(title="Over gRPC on loopback, client and server in processes of their own")
    for name in ("workload", "engine"):
        table.add_column(name)
    for name in (
        *("in process / s", "over gRPC / s", "ratio", "server CPU s", "offered / s"),
        *("p50 ms", "p99 ms", "KiB a connection"),
    ):
        table.add_column(name, justify="right")
    for run in runs:
        table.add_row(
            run.workload,
            run.engine,
            *(f"{value:,.0f}" for value in (run.in_process_per_second, run.remote_per_second)),
            f"{run.ratio:.2f}",
            f"{run.server_cpu_seconds:.1f}",
            f"{run.offered_per_second:,.0f}",
            *(f"{1e3 * value:.2f}" for value in (run.latency_p50_seconds, run.latency_p99_seconds)),
            f"{run.bytes_per_connection / 1024:.0f}",
        )
    return table


if __name__ == "__main__":
    main(sys.argv[1:])
