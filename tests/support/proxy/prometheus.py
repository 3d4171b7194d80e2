"""A real Prometheus that scrapes a server of a test."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

import httpx
import pytest
from support.waiting import happens

_STARTS_MAX: Final = 5


class PrometheusServer(NamedTuple):
    """A Prometheus that runs."""

    port: int

    def values(self, expression: str) -> dict[str, float]:
        """Return the values of an expression now, by their labels; nothing before the first scrape."""
        url = f"http://127.0.0.1:{self.port}/api/v1/query"
        answer = httpx.get(url, params={"query": expression}).json()
        assert answer["status"] == "success", answer
        rows = answer["data"]["result"]
        return {json.dumps(row["metric"], sort_keys=True): float(row["value"][1]) for row in rows}

    def wait_for(self, expression: str, is_enough: Callable[[dict[str, float]], bool]) -> dict[str, float]:
        """Return the values of an expression as soon as they are enough."""
        values: dict[str, float] = {}

        def are_enough() -> bool:
            nonlocal values
            values = self.values(expression)
            return is_enough(values)

        assert happens(are_enough), f"{expression} is {values}"
        return values


def prometheus_path() -> str | None:
    """Return where the program is, `None` if it is not installed."""
    return shutil.which("prometheus", path="/usr/bin:/usr/local/bin")


@contextmanager
def scraping(folder: Path, target: str, path: str) -> Iterator[PrometheusServer]:
    """Run a Prometheus that scrapes a path of a server, such as `127.0.0.1:9080`, many times a second."""
    program = prometheus_path()
    assert program is not None, "prometheus is not installed: make prometheus"
    configuration = folder / "prometheus.yml"
    scrape = {"job_name": "licorne", "metrics_path": path, "static_configs": [{"targets": [target]}]}
    settings = {"global": {"scrape_interval": "200ms", "scrape_timeout": "200ms"}, "scrape_configs": [scrape]}
    configuration.write_text(json.dumps(settings), encoding="utf-8")
    for start in range(_STARTS_MAX):
        server = PrometheusServer(_free_port())
        arguments = (
            f"--config.file={configuration}",
            f"--storage.tsdb.path={folder / f'data-{start}'}",
            f"--web.listen-address=127.0.0.1:{server.port}",
            "--log.level=error",
        )
        process = subprocess.Popen([program, *arguments])  # noqa: S603 - no shell
        try:
            if _answers(process, server.port):
                yield server
                return
        finally:
            process.terminate()
            process.wait()
    raise AssertionError(f"prometheus did not start in {_STARTS_MAX} tries; its errors are above")


def _answers(process: subprocess.Popen[bytes], port: int) -> bool:
    """Wait until it answers; return false if it ends before that, as when its port was taken meanwhile."""

    def is_ready() -> bool:
        with suppress(httpx.HTTPError):
            return httpx.get(f"http://127.0.0.1:{port}/-/ready").status_code == httpx.codes.OK
        return False

    return happens(lambda: process.poll() is not None or is_ready()) and process.poll() is None


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


needs_prometheus: Final = pytest.mark.skipif(
    prometheus_path() is None and "CI" not in os.environ,
    reason="prometheus is not installed: make prometheus",
)
"""A test with this mark is skipped where the program is not installed."""
