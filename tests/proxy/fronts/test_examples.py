"""The examples on asyncio do what they say."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient
from support.waiting import PROGRAM_SECONDS, WAIT_SECONDS

EXAMPLES = Path(__file__).parents[3] / "examples"


def test_a_task_graph_runs_where_there_is_room() -> None:
    """Each task once, on both nodes, after those that it needs; the program has at most 100 lines."""
    path = EXAMPLES / "task_graph.py"
    ran = subprocess.run(  # noqa: S603 - our own example
        [sys.executable, "-W", "error", str(path)],
        capture_output=True,
        text=True,
        timeout=PROGRAM_SECONDS,
        check=False,
    )
    assert ("", "84 words in 15 tasks on n1 n2\n") == (ran.stderr, ran.stdout)
    assert len(path.read_text("utf-8").splitlines()) <= 100


def test_a_web_service_waits_for_room_as_long_as_its_client_wants() -> None:
    """A job that has no room in time is withdrawn; one that waits gets the place of one that ends."""
    spec = importlib.util.spec_from_file_location("web_service", EXAMPLES / "web_service.py")
    assert spec is not None
    assert spec.loader is not None
    service: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(service)
    with TestClient(service.app) as client, ThreadPoolExecutor() as threads:
        assert {"n1", "n2"} == {client.post(f"/jobs/{name}?wanted=4").json()["node"] for name in "ab"}
        late = client.post("/jobs/c?patience_seconds=0.05")
        assert (503, "no room for c within 0.05 s") == (late.status_code, late.json()["detail"])
        assert 409 == client.post("/jobs/a").status_code
        waiting = threads.submit(client.post, f"/jobs/c?patience_seconds={WAIT_SECONDS}")
        assert 200 == client.delete("/jobs/a").status_code
        assert (201, "c") == (waiting.result().status_code, waiting.result().json()["job"])
        assert 404 == client.delete("/jobs/a").status_code
        assert 422 == client.post("/jobs/d?wanted=-1").status_code
