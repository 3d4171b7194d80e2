"""How fast the scheduler is over gRPC: the same workloads through a server on this machine, and in process.

The server is a process of its own, and so is the client. Each run in process stands beside one over gRPC, in
turns.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from rich.table import Table

from .engine import EngineKind
from .errors import BenchError
from .run import run_in_process_of_its_own
from .workloads import BenchWorkload

__all__ = ["ServerFigures", "measure_server", "resident_bytes_of", "server_document", "server_tables"]

_CLIENT: Final = "licorne.proxy.bench.server_client"
_PROCESS_SECONDS_MAX: Final = 3_600
_CONNECTIONS: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFigures:
    """One workload on one engine, in process and over gRPC."""

    workload: str
    engine: str
    in_process_per_second: float
    remote_per_second: float
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
    workloads: Sequence[BenchWorkload], engines: Sequence[EngineKind], repeat: int
) -> Iterator[ServerFigures]:
    """Give the figures of each workload on each engine: those of the run whose ratio is in the middle.

    Raises:
        BenchError: A run gave no figures, or an engine is stepped.
    """
    for workload in workloads:
        for engine in engines:
            if engine is EngineKind.DIRECT:
                raise BenchError("the engine direct is stepped: a server that is measured runs by itself")
            runs = sorted((_run(workload, engine) for _ in range(repeat)), key=lambda run: run.ratio)
            yield runs[(len(runs) - 1) // 2]


def _run(workload: BenchWorkload, engine: EngineKind) -> ServerFigures:
    inside = run_in_process_of_its_own(workload, engine).measurement.pace_per_second
    if inside is None:
        raise BenchError(f"{workload.name} has no pace: choose a workload that places")
    with _server(engine) as (server, address):
        remote = float(_client("pace", workload.name, address)["per_second"])
        latency = _client("latency", address)
        before = resident_bytes_of(server.pid)
        _client("connections", address, str(_CONNECTIONS), str(server.pid))
        held = float(_client("connections", address, str(_CONNECTIONS), str(server.pid))["resident_bytes"])
    return ServerFigures(
        workload=workload.name,
        engine=engine.value,
        in_process_per_second=inside,
        remote_per_second=remote,
        offered_per_second=latency["offered_per_second"],
        latency_p50_seconds=latency["p50"],
        latency_p99_seconds=latency["p99"],
        bytes_per_connection=max(held - before, 0.0) / _CONNECTIONS,
    )


@contextmanager
def _server(engine: EngineKind) -> Iterator[tuple[subprocess.Popen[str], str]]:
    command = [sys.executable, "-m", "licorne", "serve", "--json", "--no-rest", "--address", "127.0.0.1:0"]
    process = subprocess.Popen(  # noqa: S603 - our own command
        [*command, "--engine", engine.value], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
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
        [sys.executable, "-m", _CLIENT, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=_PROCESS_SECONDS_MAX,
    )
    if done.returncode:
        raise BenchError(f"the client of {arguments[0]} failed: {done.stderr.strip().splitlines()[-1:]}")
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def resident_bytes_of(pid: int) -> int:
    """Return the memory that a process occupies; 0 on a system without `/proc`."""
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        return 0
    lines = status.read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmRSS"))


def server_document(runs: Sequence[ServerFigures]) -> str:
    """Return the figures as one JSON document."""
    return json.dumps({"server": [{**asdict(run), "ratio": run.ratio} for run in runs]}, indent=2)


def server_tables(runs: Sequence[ServerFigures]) -> Iterator[Table]:
    """Yield the table for people."""
    table = Table(title="Over gRPC on loopback, client and server in processes of their own")
    for name in ("workload", "engine"):
        table.add_column(name)
    for name in (
        *("in process / s", "over gRPC / s", "ratio", "offered / s"),
        *("p50 ms", "p99 ms", "KiB a connection"),
    ):
        table.add_column(name, justify="right")
    for run in runs:
        table.add_row(
            run.workload,
            run.engine,
            *(f"{value:,.0f}" for value in (run.in_process_per_second, run.remote_per_second)),
            f"{run.ratio:.2f}",
            f"{run.offered_per_second:,.0f}",
            *(f"{1e3 * value:.2f}" for value in (run.latency_p50_seconds, run.latency_p99_seconds)),
            f"{run.bytes_per_connection / 1024:.0f}",
        )
    yield table
